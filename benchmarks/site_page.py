"""The results on the site's page: a picture, where fretsaw loses, the day and the machine.

In: `results.json`, and the page with a mark. Out: the page with all of it at the mark.
"""

from collections.abc import Sequence
from math import log2

from benchmarks.ours import OWN
from benchmarks.record import load
from benchmarks.result import Result

MARK = "<!-- results -->"
LEFT, WIDTH, STEP = 130, 620, 20
AHEAD, BEHIND = "#2a9d8f", "#d1495b"


def filled(page: str) -> str:
    """The page with the results of the last runs at its mark."""
    record = load("")
    results = [result for result in record.results if result.ratio is not None]
    days = sorted({day for day in (record.date, *record.dates.values()) if day})
    behind = [result for result in results if (result.ratio or 0) > 1]
    told = [
        bars(results),
        f"## Where fretsaw loses\n\nIn {len(behind)} of {len(results)} workloads a peer is faster:",
        "\n".join(f"- {_told(result)}" for result in behind),
        f"Measured on {' and '.join(days)}: {record.machine}",
    ]
    return page.replace(MARK, "\n\n".join(told))


def bars(results: Sequence[Result]) -> str:
    """A bar for each workload, on a logarithmic scale around 1.0."""
    reach = max(abs(log2(result.ratio or 1)) for result in results)
    middle = LEFT + (WIDTH - LEFT) / 2
    unit = (WIDTH - LEFT) / 2 / reach * 0.85
    drawn = []
    for place, result in enumerate(results):
        ratio = result.ratio or 1
        end = middle + log2(ratio) * unit
        top, color = place * STEP + 3, BEHIND if ratio > 1 else AHEAD
        anchor, gap = ("start", 4) if ratio > 1 else ("end", -4)
        drawn.append(
            f'<text x="0" y="{top + 11}">{result.name}</text>'
            f'<rect x="{min(end, middle):.1f}" y="{top}" width="{abs(end - middle):.1f}" '
            f'height="{STEP - 6}" fill="{color}"/>'
            f'<text x="{end + gap:.1f}" y="{top + 11}" text-anchor="{anchor}">{ratio:.2f}</text>'
        )
    height = len(results) * STEP
    line = f'<path d="M{middle} 0V{height}" stroke="currentColor"/>'
    title = "<title>fretsaw's time over that of the best peer</title>"
    return (
        f'<svg class="bars" viewBox="0 0 {WIDTH} {height}" role="img">{title}'
        f"{''.join(drawn)}{line}</svg>"
    )


def _told(result: Result) -> str:
    peers = {name: s for name, s in result.seconds.items() if name not in OWN}
    best = min(peers, key=peers.__getitem__)
    ours = result.seconds["fretsaw"] * 1e3
    return (
        f"`{result.name}` ({result.what}): {ours:.3g} ms, {best} {peers[best] * 1e3:.3g} ms, "
        f"ratio {result.ratio:.2f}"
    )
