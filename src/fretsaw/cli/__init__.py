"""The `fretsaw` command, in this process or on Spark.

`app` has the commands, `rows` and its siblings what each takes, `parameters` the options they
share, `options` what they ask for, `engines` who does the work, `output` and `preview` where rows
go, `progress` what is said meanwhile, `failures` what is said when it goes wrong.
"""

import sys
from collections.abc import Sequence

_NEEDED = {"click", "rich"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with these arguments, or those of the process; ends with `SystemExit`."""
    from fretsaw.cli.failures import reporting, stopped_by_signals

    if sys.stdout is None:  # closed by whoever started us
        sys.exit("fretsaw: there is no stdout to write to")
    with stopped_by_signals(), reporting():
        try:
            from fretsaw.cli.app import run
        except ModuleNotFoundError as missing:
            if missing.name not in _NEEDED:
                raise
            sys.exit(f"fretsaw: the command needs {missing.name}: pip install 'fretsaw[cli]'")
        run(sys.argv[1:] if arguments is None else arguments)
