"""`fretsaw dive`: a full-screen viewer, from a file to its blocks, columns, pages, values.

`file` is what is looked at, `places` what there is to see at each step, `reader` reads it beside
the screen, `table` shows a window of it, `app` puts them together.
"""

import sys
from collections.abc import Mapping

from fretsaw.errors import FretsawError


def dive(path: str, condition: str | None, storage: Mapping[str, str]) -> None:
    """Show a file on the terminal until the user has seen enough; raises what kept it closed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise FretsawError("dive needs a terminal; select and explain write to files and pipes")
    try:
        from fretsaw.cli.dive.app import Viewer
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != "textual":
            raise
        raise FretsawError("dive needs textual: pip install 'fretsaw[cli]'") from None
    viewer = Viewer(path, condition, storage)
    viewer.run()
    if viewer.failure is not None:
        raise viewer.failure
