"""ORC: stripes, streams, strides of the row index.

- `metadata`: the protobuf messages; `footer`, `schema`, `fields`: what a file says about itself
- `streams`, `index`: the streams of a stripe, and its row indexes
- `statistics`, `bloom`: what can be known before values are decoded
- `cut`, `stream_cut`: the bytes of the strides of a leaf; `compiled`: decoded by the kernels
- `runs`, `decode`: the strides of a leaf as a small file for Arrow
- `times`, `zones`: times in microseconds, which Arrow does not read, and clocks of their zones
- `lengths`, `sizes`: what streams claim, held against what they have
- `file`, `block`, `reader`: all of it as the answers of a format, of a file and of its stripes
"""
