"""From options to stores of `obstore`, one for each bucket and all its files.

Options are those of `object_store` and polars. Ours are `max_requests` (side by side),
`max_retries` and `retry_timeout` (seconds for one request, retries included).
"""

import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from fretsaw.errors import StorageError
from fretsaw.model.locks import Lock, importing
from fretsaw.storage.location import Access, Location, divide
from fretsaw.storage.profiles import with_profile

if TYPE_CHECKING:
    import asyncio

MOST_STORES = 32
"""Stores that are kept, with their connections."""
SCHEMES = {
    **{"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"},
    **dict.fromkeys(("az", "azure", "adl", "abfs", "abfss"), "az"),
    **{"http": "http", "https": "http"},
}
"""What obstore reads, and as what; the rest is left to fsspec."""
_CLIENT = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_headers",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "randomize_addresses",
    "read_timeout",
    "root_certificate",
    "timeout",
    "user_agent",
)
_PREFIXES = ("aws_", "azure_", "google_")
_STALLED = timedelta(seconds=20)
"""A connection on which nothing comes for this long is given up."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How much is asked for at a time, and how long."""

    max_requests: int = 32
    max_retries: int = 5
    retry_timeout: float = 120.0
    """Seconds for one request, with all that is tried."""

    def __post_init__(self) -> None:
        if self.max_requests < 1 or self.max_retries < 0 or self.retry_timeout <= 0:
            raise ValueError(
                "storage_options: max_requests is at least 1, max_retries at least 0, and "
                "retry_timeout is above 0 seconds"
            )


@dataclass(slots=True, eq=False)
class Bucket:
    """A store, and what is under way in it."""

    store: Any
    kind: str
    policy: Policy
    slots: "asyncio.Semaphore" = field(init=False)

    def __post_init__(self) -> None:
        with importing:
            import asyncio

        self.slots = asyncio.Semaphore(self.policy.max_requests)

    @property
    def knows_suffixes(self) -> bool:
        """Whether the end of a file can be asked for without its size."""
        return self.kind != "AzureStore"

    @property
    def lists_in_order(self) -> bool:
        """Whether keys are listed in their order."""
        return self.kind in ("S3Store", "GCSStore", "AzureStore", "MemoryStore")


_buckets: OrderedDict[Any, Bucket] = OrderedDict()
_finding = Lock()


def bucket_of(location: Location) -> tuple[Bucket, str]:
    """The store that a location is in, and its key there."""
    if location.access.store is not None:
        base, key = "", location.target
    elif location.is_http and urlsplit(location.target).query:
        base, key = location.target, ""  # which signs this file alone
    elif location.is_http:
        base, path = divide(location.target)
        key = unquote(path)
    else:
        base, key = divide(location.target)
    known = (base, *location.access.key)
    with _finding:
        bucket = _buckets.get(known)
        if bucket is None:
            bucket = _buckets[known] = _open(location, base)
        _buckets.move_to_end(known)
        while len(_buckets) > MOST_STORES:
            _buckets.popitem(last=False)
    return bucket, key


def policy_of(options: Mapping[str, Any]) -> tuple[Policy, dict[str, Any]]:
    """What is asked for at a time, and the other options."""
    rest = dict(options)
    given: dict[str, Any] = {}
    for name, convert in (("max_requests", int), ("max_retries", int), ("retry_timeout", float)):
        if name in rest:
            try:
                given[name] = convert(rest.pop(name))
            except (TypeError, ValueError):
                raise ValueError(f"storage_options: {name} is a number") from None
    return Policy(**given), rest


def _open(location: Location, base: str) -> Bucket:
    if location.access.store is not None:
        store = location.access.store
        return Bucket(store, type(store).__name__, Policy())
    with importing:
        try:
            from obstore import store as stores
        except ImportError:
            raise StorageError(
                f"{location.url}: reading URLs needs obstore; pip install 'fretsaw[remote]'"
            ) from None
    scheme = SCHEMES[location.scheme]
    policy, options = policy_of(location.access.options)
    if scheme == "s3":
        options = with_profile(options)
    config, client = _divided(options)
    client.setdefault("read_timeout", _STALLED)
    client.setdefault("timeout", timedelta(seconds=policy.retry_timeout))
    if scheme == "http" or _asks_for_http(config):
        client.setdefault("allow_http", True)
    common: Any = {"client_options": client, "retry_config": {"max_retries": 0}}
    url = base if scheme == "http" else scheme + base[len(location.scheme) :].rstrip("/")
    if location.scheme.startswith("abfs"):
        url = base
    try:
        if scheme == "http":
            opened: Any = stores.HTTPStore.from_url(url, **common)
        else:
            from_url: Any = stores.from_url
            opened = from_url(url, config=config, **common)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise _refused(location, error, options) from None
    return Bucket(opened, type(opened).__name__, policy)


def _divided(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the store, and those of its client."""
    config: dict[str, Any] = {}
    client: dict[str, Any] = {}
    for name, value in options.items():
        prefix = next((one for one in _PREFIXES if name.lower().startswith(one)), "")
        plain = name.lower()[len(prefix) :]
        if plain in _CLIENT:
            is_flag = plain.startswith(("allow_", "http1_", "http2_only", "randomize_"))
            client[plain] = _is_true(value) if is_flag else value
        else:
            config[name] = value
    for prefix in ("AWS_", "AZURE_", "GOOGLE_"):
        if prefix + "ALLOW_HTTP" in os.environ:
            client.setdefault("allow_http", _is_true(os.environ[prefix + "ALLOW_HTTP"]))
    return config, client


def _is_true(value: object) -> bool:
    return str(value).lower() in ("true", "1", "yes", "on")


def _asks_for_http(config: Mapping[str, Any]) -> bool:
    """Whether an endpoint is named that has no TLS: who names it means it."""
    named = [value for name, value in config.items() if "endpoint" in name.lower()]
    named += [os.environ.get(name) for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT")]
    return any(str(value).startswith("http://") for value in named if value)


def _refused(location: Location, error: BaseException, options: Mapping[str, Any]) -> Exception:
    """The error for options that obstore does not take; their values are never shown."""
    text = str(error)
    unknown = [name for name in options if f"'{name}'" in text or f"'{name.lower()}'" in text]
    if unknown:
        return ValueError(
            f"{location.url}: there is no storage option {unknown[0]!r} for this kind of store; "
            "see docs/remote.md"
        )
    return StorageError(
        f"{location.url}: its storage options cannot be used ({type(error).__name__}); check "
        f"{', '.join(sorted(options)) or 'the environment'}"
    )


def is_for_obstore(location: Location) -> bool:
    """Whether obstore reads it; fsspec reads what it does not know."""
    access: Access = location.access
    if access.store is not None:
        return type(access.store).__module__.startswith("obstore")
    return location.scheme in SCHEMES
