"""ORC: stripes, streams, strides of the row index.

- `metadata`: the protobuf messages; `footer`, `schema`, `fields`: what a file says about itself
- `index`: streams and row indexes of a stripe
- `statistics`, `bloom`: what can be known before values are decoded
- `runs`, `cut`, `decode`: the strides of a leaf as a small file that Arrow reads
- `lengths`, `sizes`: what streams claim, held against what they have
- `reader`: all of it as the answers of a format
"""
