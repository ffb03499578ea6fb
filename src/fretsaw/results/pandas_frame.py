"""Results as pandas data frames."""

import pandas as pd
import pyarrow as pa

from fretsaw.errors import not_text


def from_table(table: pa.Table, sources: str) -> pd.DataFrame:
    """A table of these sources as a data frame."""
    try:
        return table.to_pandas()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        for name, column in zip(table.column_names, table.columns, strict=True):
            if not _is_text(column):
                raise not_text(sources, name) from error
        raise


def _is_text(column: pa.ChunkedArray) -> bool:
    """Whether all strings in a column are UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
