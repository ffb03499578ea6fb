"""What the last runs came to, kept from run to run in `results.json`.

In: the results of a run, and its sections, which are tables that a run replaces as a whole. Out: a
`Record` of the last whole run, with what was run by itself since then, and when.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from benchmarks.result import Reads, Result

PATH = Path(__file__).parent / "results.json"


@dataclass(frozen=True, slots=True)
class Record:
    """Results and sections, each with the day of its run."""

    date: str = ""
    """The day of the last whole run; none if there was none."""
    machine: str = ""
    results: Sequence[Result] = ()
    sections: Mapping[str, str] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    """Of each result and section, by name."""

    def with_run(
        self,
        date: str,
        results: Sequence[Result],
        sections: Mapping[str, str],
        order: Sequence[str],
    ) -> Self:
        """The same with what one more run found out, in this order."""
        found = {result.name: result for result in (*self.results, *results)}
        dates = {**self.dates, **dict.fromkeys([*(r.name for r in results), *sections], date)}
        return replace(
            self,
            results=[found[name] for name in order if name in found],
            sections={**self.sections, **sections},
            dates={name: day for name, day in dates.items() if name in order},
        )

    def other_days(self) -> dict[str, list[str]]:
        """What is not of the last whole run, by its day."""
        days: dict[str, list[str]] = {}
        for name, day in self.dates.items():
            if day != self.date:
                days.setdefault(day, []).append(name)
        return dict(sorted(days.items()))


def load(machine: str, path: Path = PATH) -> Record:
    """The record of the runs before; if there was none, an empty one on this machine."""
    if not path.exists():
        return Record(machine=machine)
    kept = json.loads(path.read_text())
    return Record(**{**kept, "results": [_result(each) for each in kept["results"]]})


def save(record: Record, path: Path = PATH) -> None:
    """Keep a record for the next run."""
    path.write_text(json.dumps(asdict(record), indent=1) + "\n")


def _result(kept: Mapping[str, Any]) -> Result:
    reads = kept["reads"] and Reads(**kept["reads"])
    return Result(**{**kept, "reads": reads})
