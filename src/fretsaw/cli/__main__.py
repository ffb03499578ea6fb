"""The command as a module, and as the file that spark-submit is given."""

from fretsaw.cli import main

main()
