"""The footers that are kept between scans: `fretsaw.cache.clear()` forgets them."""

from fretsaw.storage.footer_cache import clear

__all__ = ["clear"]
