"""Numbers rounded to decimal places, also where Arrow would overflow or leave tiny ones be."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_WHOLE = 2.0**52
"""From here on all doubles are whole numbers."""


def rounded(array: pa.Array, places: int, mode: str) -> pa.Array:
    """The numbers rounded to so many places behind the point, or before it."""
    if pa.types.is_integer(array.type):
        return array if places >= 0 else pc.round(array, places, mode)
    if pa.types.is_decimal(array.type):
        return array if places >= array.type.scale else pc.round(array, places, mode)
    values = np.asarray(array.fill_null(0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        if places >= 0:
            kept = (np.abs(values) >= _WHOLE) | ~np.isfinite(values * 10.0**places)
            instead = values
        else:
            kept = np.abs(values) < 10.0**-places / 4
            instead = np.copysign(0.0, values)
    if not kept.any():
        return pc.round(array, places, mode)
    others = pc.round(pa.array(np.where(kept, 0.0, values)), places, mode)
    found = np.where(kept, instead, np.asarray(others))
    return pa.array(found, mask=np.asarray(array.is_null()))
