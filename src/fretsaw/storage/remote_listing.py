"""What stores and file systems list: files below a folder, with their sizes and versions.

Stores list in the order of whole paths, page by page; what is not asked for is not listed.
"""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from fretsaw.model.locks import importing
from fretsaw.storage.attempts import Missing, attempt, missing
from fretsaw.storage.file_system import FileSystemFile, system_of
from fretsaw.storage.file_system import translated as of_system
from fretsaw.storage.location import Location
from fretsaw.storage.loop import wait_for
from fretsaw.storage.remote import RemoteFile, translated, version_of
from fretsaw.storage.source import Version
from fretsaw.storage.stores import bucket_of, is_for_obstore

_PAGE = 1000
"""Files that are listed at a time."""


def find_one(location: Location) -> Version | None:
    """The version of the file that a location names; None if it may be a folder."""
    if not location.target.rstrip("/") or location.target.endswith("/"):
        return None
    is_remote = is_for_obstore(location)
    if is_remote and not bucket_of(location)[1]:
        return None
    try:
        source = RemoteFile(location) if is_remote else FileSystemFile(location)
    except Missing:
        return None
    return source.identity


def find_files(folder: Location) -> Iterator[tuple[str, Version | None]]:
    """The files below a folder by their paths in it, in order, with their versions if told."""
    if is_for_obstore(folder):
        bucket, _ = bucket_of(folder)
        listed = _list_store(folder)
        yield from listed if bucket.lists_in_order else sorted(listed, key=itemgetter(0))
    else:
        yield from _list_system(folder)


def _list_store(folder: Location) -> Iterator[tuple[str, Version]]:
    with importing:
        import obstore
    bucket, key = bucket_of(folder)
    prefix = key.strip("/")
    stream: Any = None
    last: str | None = None

    async def page() -> list[Any]:
        nonlocal stream
        if stream is None:  # the first time, or behind what was listed before it broke off
            stream = obstore.list(
                bucket.store, prefix=prefix or None, offset=last, chunk_size=_PAGE
            )
        try:
            async with bucket.slots:
                return list(await anext(stream))
        except StopAsyncIteration:
            return []
        except BaseException:
            stream = None
            raise

    while True:
        work = attempt(translated(page), folder.url, "its listing", bucket.policy)
        try:
            metas = wait_for(work, folder.url)
        except Missing:
            raise missing(folder.url) from None
        if not metas:
            return
        for meta in metas:
            last = meta["path"]
            yield last[len(prefix) :].lstrip("/"), version_of(meta)


def _list_system(folder: Location) -> Iterator[tuple[str, None]]:
    system, path = system_of(folder)
    with of_system(folder.url, "its listing"):
        system.invalidate_cache(path)
        found = system.find(path)
    begin = len(path.rstrip("/")) + 1
    for file in sorted(found):
        yield file[begin:], None  # of some protocols a listing tells other times than the file
