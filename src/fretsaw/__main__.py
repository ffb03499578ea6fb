"""The command, as `python -m fretsaw`."""

from fretsaw.cli import main

main()
