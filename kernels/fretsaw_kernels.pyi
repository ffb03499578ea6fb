"""Compiled decoders for fretsaw; `fretsaw.formats.kernels` is who calls them."""

PROTOCOL: int
__version__: str
