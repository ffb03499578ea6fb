"""Parquet: footer, page indexes, the cut, and the reader that ties them together."""
