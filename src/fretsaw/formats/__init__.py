"""How a file is laid out. A format names byte ranges and is handed bytes; it never reads.

In come buffers and the rows that are wanted; out come blocks, pages, bounds and Arrow arrays.

- `interface`: what a format answers: for a file, for a block that was opened, for parts of it
- `shared`: errors and the search for what is wrong, alike in all formats
- `registry`: which format a file has, by its magic bytes
- `parquet`, `orc`: the two formats, with the same names for the same parts

All that a format must do, by a toy: blocks of int64 columns, as they are in memory, between magic
bytes; at the end a footer in JSON and its length.

>>> import json
>>> from dataclasses import dataclass
>>> import numpy as np
>>> import pyarrow as pa
>>> from fretsaw.errors import FileFormatError
>>> from fretsaw.formats.interface import BlockReader, FileReader, Part
>>> from fretsaw.formats.shared import Translation
>>> from fretsaw.model.blocks import Block, PageIndex
>>> from fretsaw.model.schema import SchemaNode
>>> from fretsaw.storage.requests import Request

>>> @dataclass(frozen=True, slots=True, eq=False, kw_only=True)
... class ToyPart(Part):
...     data: pa.Buffer
...     wanted: np.ndarray

>>> class ToyBlock(BlockReader):
...     def __init__(self, block):
...         self.block = block
...     def whole_chunk(self, leaf):
...         rows = self.block.num_rows
...         offset = self.block.offset + leaf.leaf_index * 8 * rows
...         return PageIndex(np.array([0, rows]), np.array([offset]), np.array([8 * rows]), width=8)
...     def cut(self, leaf, pages, rows):
...         first, wanted = int(rows.starts[0]), rows.indices() - rows.starts[0]
...         held = int(wanted[-1]) + 1
...         (data,) = yield Request([(int(pages.offsets[0]) + 8 * first, 8 * held)], "data")
...         return ToyPart(leaf=leaf, rows=held, page_rows=held, data=data, wanted=wanted)

>>> class ToyReader(FileReader):
...     format = "toy"
...     def __init__(self, names, row_counts, footer_size):
...         self.footer_size, self.field_names, self.fields = footer_size, names, ("toy", *names)
...         self.blocks, row, width = [], 0, 8 * len(names)
...         for place, rows in enumerate(row_counts):
...             size = width * rows
...             self.blocks.append(Block(place, row, rows, 4 + width * row, size, size))
...             row += rows
...     def describe(self, positions):
...         fields = [pa.field(self.field_names[place], pa.int64(), False) for place in positions]
...         return pa.schema(fields), tuple(
...             SchemaNode(field.name, (field.name,), "leaf", False, field.type, leaf_index=place)
...             for place, field in zip(positions, fields)
...         )
...     def open_blocks(self, blocks):
...         yield from ()  # the footer says where everything is
...         return [ToyBlock(block) for block in blocks]
...     def decode(self, leaves, allocate):
...         columns = [[np.frombuffer(p.data, "<i8")[p.wanted] for p in parts] for parts in leaves]
...         return [pa.chunked_array(chunks, pa.int64()) for chunks in columns]

>>> def open_file(name, size, tail, options, like):
...     length = int.from_bytes(tail.to_pybytes()[-8:-4], "little")
...     (stored,) = yield Request([(size - 8 - length, length)], "footer")
...     with Translation(name, (ValueError, LookupError, TypeError)).of("its footer"):
...         footer = json.loads(stored.to_pybytes())
...         reader = ToyReader(footer["names"], footer["row_counts"], length)
...     if 4 + sum(block.compressed_size for block in reader.blocks) + length + 8 != size:
...         raise FileFormatError(f"{name}: its blocks are truncated, write or copy it again")
...     return reader

With its magic bytes in the `registry` any scan takes its files. What the engine does with one:

>>> from functools import partial
>>> from fretsaw.formats.interface import ReadOptions
>>> from fretsaw.model.selection import RowSelection
>>> from fretsaw.storage.memory import MemoryFile
>>> from fretsaw.storage.requests import fetch, run
>>> footer = json.dumps({"names": ["a", "b"], "row_counts": [3]}).encode()
>>> values = np.array([[1, 2, 3], [10, 20, 30]], "<i8").tobytes()
>>> data = b"TOY1" + values + footer + len(footer).to_bytes(4, "little") + b"TOY1"
>>> tail, read = pa.py_buffer(data[-8:]), partial(fetch, MemoryFile(data))
>>> file = run(open_file("some.toy", len(data), tail, ReadOptions(), None), read)
>>> schema, (a, b) = file.describe([0, 1])
>>> (block,) = run(file.open_blocks(file.blocks), read)
>>> rows = RowSelection.from_indices([0, 2], 3)
>>> part = run(block.cut(b, block.whole_chunk(b), rows), read)
>>> file.decode([[part]], pa.allocate_buffer)[0].to_pylist()
[10, 30]
"""
