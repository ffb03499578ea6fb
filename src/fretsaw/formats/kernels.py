"""The compiled kernels (the package `fretsaw-kernels`), or None: everything works without them.

They are looked for when they are first asked for, so that `import fretsaw` stays cheap, and
`FRETSAW_KERNELS=0` leaves them alone. Who changes that variable in a running process calls
`load_kernels.cache_clear()`.
"""

import functools
import importlib
import os
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pyarrow as pa

from fretsaw.model.locks import importing

PROTOCOL = 3
"""What the functions of the kernels take and give, as a number that both sides must agree on."""


@functools.cache
def load_kernels() -> ModuleType | None:
    """The kernels, if they are installed, speak our protocol and are not turned off."""
    if os.environ.get("FRETSAW_KERNELS") == "0":
        return None
    try:
        with importing:  # no process is forked meanwhile
            kernels = importlib.import_module("fretsaw_kernels")
    except ModuleNotFoundError:
        return None
    except ImportError as error:
        misfit = f"cannot be imported ({error})"
    else:
        protocol = getattr(kernels, "PROTOCOL", None)
        if protocol == PROTOCOL:
            return kernels
        misfit = f"speak protocol {protocol}, and this fretsaw speaks {PROTOCOL}"
    warnings.warn(
        f"fretsaw reads without its kernels, which {misfit}. Install the fretsaw-kernels of the "
        "same release (pip install ./kernels), or uninstall them, or set FRETSAW_KERNELS=0.",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def chain_array(column: Any, kind: pa.DataType, has_slots: Iterator[bool]) -> pa.Array:
    """A column of a leaf as an array of its chain, whose types lie in each other.

    `has_slots` tells for each list and struct from the row down whether the column has its slots:
    structs that are never null may be left out.
    """
    return _below(kind, column, has_slots, iter(column.layers))


def _below(
    kind: pa.DataType, column: Any, has_slots: Iterator[bool], slots: Iterator[Any]
) -> pa.Array:
    if not pa.types.is_nested(kind):
        buffers = list(map(_buffer, column.buffers))
        return pa.Array.from_buffers(kind, column.length, buffers, column.null_count)
    length, nulls, *buffers = next(slots) if next(has_slots) else (None, 0, None)
    inner = kind.field(0).type if pa.types.is_struct(kind) else kind.value_type
    child = _below(inner, column, has_slots, slots)
    if pa.types.is_struct(kind):
        del buffers[1:]
    return pa.Array.from_buffers(
        kind,
        len(child) if length is None else length,
        list(map(_buffer, buffers)),
        nulls,
        children=[child],
    )


def _buffer(memory: Any) -> pa.Buffer | None:
    return None if memory is None else pa.py_buffer(memory)
