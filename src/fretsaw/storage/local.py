"""A file on a local disk."""

from collections.abc import Sequence

import pyarrow as pa

from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.descriptor import (
    WHILE_READ,
    Descriptor,
    changed,
    is_settled,
    open_path,
    read_ranges,
)
from fretsaw.storage.source import Identity, Near, Range


class LocalFile(Near):
    """A file on a local disk, read by position; `expected` is what it was when it was planned."""

    def __init__(self, path: str, expected: Identity | None = None) -> None:
        self.name = path
        self.closed = False
        self._descriptor: Descriptor | None = open_path(path)
        status = self._descriptor.status
        self.size = status.st_size
        self._opened_as = Identity.of(status)
        self.identity: Identity | None = self._opened_as
        self.is_settled = is_settled(status)
        if expected is not None and not self._opened_as.is_of(expected):
            raise changed(path, "since the scan was planned; plan it anew")

    def read_ranges(self, ranges: Sequence[Range], allocate: Allocate) -> list[pa.Buffer]:
        descriptor = self._descriptor or self._reopened()
        try:
            return read_ranges(self.name, descriptor.number, self._opened_as, ranges, allocate)
        finally:
            del descriptor  # which closes it if it was put to rest; an error may keep this frame

    def _reopened(self) -> Descriptor:
        descriptor = open_path(self.name)
        if Identity.of(descriptor.status) != self._opened_as:
            raise changed(self.name, WHILE_READ)
        if not self.closed:
            self._descriptor = descriptor
        return descriptor

    def rest(self) -> None:
        self._descriptor = None

    def close(self) -> None:
        self.closed = True
        self._descriptor = None
