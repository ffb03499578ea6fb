"""URLs as sources: what is shown of them, and what it takes to reach them.

A `Location` is one URL, or a path in a store that was handed over, with the `Access` that all
sources of a scan share. Neither ever shows a secret; both can be pickled, with all that they hold.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

StorageOptions: TypeAlias = Mapping[str, Any] | Any
"""How to reach URLs: options by their names, or a store of `obstore`, or a file system of `fsspec`.
"""

_URL = re.compile(r"((?:[A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]*)://")
"""Protocols may be chained, as fsspec has it: `simplecache::https://host/file`."""
HTTP = ("http", "https")


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """How to reach what is named: options, or a store that was handed over."""

    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    store: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, given: StorageOptions) -> "Access":
        """What was given as `storage_options`."""
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            if is_store(given) or is_file_system(given):
                return cls(store=given)
            raise TypeError(
                "storage_options are options by their names, a store of obstore or a file system "
                f"of fsspec, not a {type(given).__name__}"
            )
        for name in given:
            if not isinstance(name, str):
                raise TypeError(f"a storage option is named by a str, not by a {type(name)}")
        return cls(dict(given))

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for the same options."""
        return (id(self.store), *sorted((name, repr(self.options[name])) for name in self.options))


@dataclass(frozen=True, slots=True, eq=False)
class Location:
    """A URL, or a path in a store that was handed over."""

    url: str
    """As messages show it, without a secret."""
    target: str = field(repr=False)
    """As it is asked for."""
    access: Access

    @property
    def scheme(self) -> str:
        """The protocol, in lower case."""
        found = _URL.match(self.target)
        return found[1].lower() if found else ""

    @property
    def is_http(self) -> bool:
        """Whether it is a file of a web server, which lists nothing."""
        return self.scheme in HTTP and self.access.store is None

    def folder(self, root: str) -> "Location":
        """The folder that its target begins with."""
        behind = len(self.target) - len(root)
        return Location(self.url[: len(self.url) - behind], root, self.access)

    def file(self, path: str) -> "Location":
        """A file below this folder."""
        url, target = (text.rstrip("/") for text in (self.url, self.target))
        return Location(f"{url}/{path}", f"{target}/{path}".lstrip("/"), self.access)


def is_url(text: str) -> bool:
    """Whether a text is a URL, and not one of a local file."""
    found = _URL.match(text)
    return found is not None and found[1].lower() != "file"


def locate(text: str, access: Access) -> Location:
    """The location that a URL, or a path in a store that was handed over, names."""
    if access.store is None:
        return Location(without_secrets(text), text, access)
    if is_file_system(access.store):
        path = access.store._strip_protocol(text)
        return Location(without_secrets(access.store.unstrip_protocol(path)), path, access)
    path = text.strip("/") + ("/" if text.endswith("/") else "")
    return Location(_store_url(access.store) + path, path, access)


def divide(url: str) -> tuple[str, str]:
    """The bucket or host of a URL, with the slash behind it, and the key or path."""
    found = _URL.match(url)
    if found is None:
        return "", url
    host, slash, path = url[found.end() :].partition("/")
    return url[: found.end()] + host + "/", path if slash else ""


def without_secrets(url: str) -> str:
    """A URL, or a chain of them, without password and query, which may sign it."""
    return "::".join(map(_without_secrets, url.split("::")))


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    _, at, host = parts.netloc.rpartition("@")
    user = parts.netloc[: -len(host) - 1] if at else ""
    netloc = host if ":" in user or parts.scheme in HTTP else parts.netloc
    if parts.scheme in HTTP:
        return urlunsplit((parts.scheme, netloc, parts.path, "", ""))
    return url.replace(parts.netloc, netloc, 1) if netloc != parts.netloc else url


def is_store(given: object) -> bool:
    """Whether it is a store of obstore."""
    return type(given).__module__.startswith("obstore")


def is_file_system(given: object) -> bool:
    """Whether it is a file system of fsspec."""
    return hasattr(given, "cat_ranges") and hasattr(given, "_strip_protocol")


_SCHEMES = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}


def _store_url(store: Any) -> str:
    """What a store that was handed over is called, with a slash behind it."""
    kind = type(store).__name__
    config = getattr(store, "config", None) or {}
    bucket = config.get("bucket") or config.get("container_name") or config.get("container")
    prefix = str(getattr(store, "prefix", None) or "").strip("/")
    if kind in _SCHEMES and bucket:
        root = f"{_SCHEMES[kind]}://{bucket}/"
    elif kind == "HTTPStore":
        return without_secrets(store.url).rstrip("/") + "/"
    else:
        root = f"{kind.removesuffix('Store').lower()}://"
    return root + (prefix + "/" if prefix else "")
