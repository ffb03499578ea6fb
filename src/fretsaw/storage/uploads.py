"""Files that are put into stores: visible when they are complete, or not at all."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from fretsaw.errors import NotWritableError
from fretsaw.model.locks import importing
from fretsaw.storage.attempts import Missing, attempt
from fretsaw.storage.file_system import system_of, translated
from fretsaw.storage.location import Location
from fretsaw.storage.loop import wait_for
from fretsaw.storage.remote_listing import find_files
from fretsaw.storage.stores import bucket_of, is_for_obstore


def require_writable(location: Location) -> None:
    """Refuse what nothing can be put into."""
    if location.is_http:
        raise NotWritableError(
            f"{location.url}: files of web servers are only read; write to a path or a store"
        )
    if is_for_obstore(location) and not bucket_of(location)[1].strip("/"):
        raise NotWritableError(f"{location.url}: is a bucket; name a file or folder in it")


def upload(path: str, location: Location) -> None:
    """Put a local file into a store; one that is there already is replaced."""
    if not is_for_obstore(location):
        _copy(path, location)
        return
    with importing:
        import obstore
    bucket, key = bucket_of(location)

    async def put() -> None:
        await obstore.put_async(bucket.store, key, Path(path))

    wait_for(attempt(put, location.url, "its upload", bucket.policy), location.url)


def _copy(path: str, location: Location) -> None:
    system, place = system_of(location)
    folder, name = os.path.split(place)
    staging = f"{folder}/.{name[:50]}.{secrets.token_hex(6)}.tmp"
    try:
        with translated(location.url, "its upload"):
            system.makedirs(folder, exist_ok=True)
            system.put_file(path, staging)
            system.mv(staging, place)
    except BaseException:
        with suppress(Exception):
            system.rm_file(staging)
        raise


def is_empty(folder: Location) -> bool:
    """Whether there is no file below a folder."""
    try:
        return next(find_files(folder), None) is None
    except Missing:
        return True


def remove_below(folder: Location) -> None:
    """Remove all files below a folder."""
    for path, _ in list(find_files(folder)):
        location = folder.file(path)
        if not is_for_obstore(location):
            system, place = system_of(location)
            with translated(location.url, "its removal"):
                system.rm_file(place)
            continue
        with importing:
            import obstore
        bucket, key = bucket_of(location)

        async def delete(bucket=bucket, key=key) -> None:  # type: ignore[no-untyped-def]
            await obstore.delete_async(bucket.store, key)

        wait_for(attempt(delete, location.url, "its removal", bucket.policy), location.url)
