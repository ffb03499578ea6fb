"""What the user gets: tables, columns, rows and files.

In come decoded leaves of a run; out come Arrow tables, NumPy arrays, Python objects or files.

- `tables`, `pandas_frame`: leaves zipped into Arrow tables, and those as data frames of pandas
- `leaves`, `columns`, `numpy_values`: leaves side by side, as batches of NumPy arrays
- `rows`, `python_values`: rows of Python objects
- `write`: files in Parquet, ORC, CSV, JSON lines and Arrow
"""
