"""What the commands do: ask an engine for rows, and put them where they belong.

What writes rows is imported by who needs it: a count needs none of it.
"""

import sys
from typing import TYPE_CHECKING

from fretsaw.cli.engines import Engines, is_submitted
from fretsaw.cli.options import CommandOptions
from fretsaw.cli.progress import Reporter, counted

if TYPE_CHECKING:
    from fretsaw.cli.output import Target


def show(options: CommandOptions, engines: Engines) -> None:
    """Print the first rows as a table, and how many more there are."""
    from fretsaw.cli import preview

    reporter = Reporter(_not_to_mix(engines))
    most = preview.MOST_ROWS if options.has_window else preview.USUAL_ROWS
    with engines.open(options.at_most(most + 1)) as engine:
        with reporter.watch(engine.status):
            rows = preview.first_rows(engine.batches(), engine.schema, most + 1)
        preview.show(rows.slice(0, most))
        status = engine.status()
    if rows.num_rows > most:
        with engines.open(options) as engine:
            with reporter.watch(engine.status):
                more = engine.count() - most
            print(f"... and {counted(more, 'more row')}; for all, --format csv or json")
            status = engine.status().behind(status)
    reporter.summarize(status)


def stream(options: CommandOptions, engines: Engines, format: str) -> None:
    """Write all rows to stdout as they come."""
    from fretsaw.cli.output import write_stdout

    reporter = Reporter(_not_to_mix(engines), beside_rows=sys.stdout.isatty())
    with engines.open(options) as engine:
        with reporter.watch(engine.status):
            write_stdout(engine.batches(), engine.schema, format)
        reporter.summarize(engine.status())


def write(options: CommandOptions, engines: Engines, target: "Target") -> None:
    """Write all rows to a file or into a directory."""
    reporter = Reporter(engines.quiet)
    with engines.open(options) as engine:
        with reporter.watch(engine.status):
            engine.write(target)
        reporter.summarize(engine.status())


def count(options: CommandOptions, engines: Engines) -> None:
    """Print how many rows there are."""
    reporter = Reporter(_not_to_mix(engines))
    with engines.open(options) as engine:
        with reporter.watch(engine.status):
            rows = engine.count()
        print(rows, flush=True)
        reporter.summarize(engine.status())


def explain(options: CommandOptions, engines: Engines, run: bool) -> None:
    """Print what would be read and why; with `run`, also what was."""
    reporter = Reporter(_not_to_mix(engines))
    with engines.open(options) as engine:
        with reporter.watch(engine.status):
            text = engine.explain(run)
        print(text, flush=True)


def _not_to_mix(engines: Engines) -> bool:
    """Whether to say nothing: where nobody listens, or it would get among the rows."""
    return engines.quiet or is_submitted()
