"""Pictures of what is more than a ratio: `curve.png` and `growth.png`.

In: the points of a curve, or growths. Out: a file each, next to this module.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.curve import Point
from benchmarks.growth import Growth
from benchmarks.ours import Plain
from benchmarks.result import OURS

FOLDER = Path(__file__).parent
TIME, PLANNING, MEMORY, LINEAR = "#2a9d8f", "#8ac6bf", "#d1495b", "#999999"


def draw_curve(points: Sequence[Point], path: Path = FOLDER / "curve.png") -> None:
    """Milliseconds over the percentage that matches; a panel for each projection, a line each.

    Percentages are evenly spaced: neither a linear nor a logarithmic axis has room for both ends.
    """
    projections = list(dict.fromkeys(point.projection for point in points))
    figure = Figure(figsize=(6.2 * len(projections), 5), layout="constrained")
    panels = figure.subplots(1, len(projections), squeeze=False)[0]
    for axes, projection in zip(panels, projections, strict=True):
        drawn = [point for point in points if point.projection == projection]
        for name in dict.fromkeys(name for point in drawn for name in point.seconds):
            places = [place for place, point in enumerate(drawn) if name in point.seconds]
            times = [drawn[place].seconds[name] * 1e3 for place in places]
            axes.plot(places, times, label=name, **_line(name))
        axes.set_title(f"{projection} of trips")
        axes.set_xticks(range(len(drawn)), [f"{point.percent:g}" for point in drawn])
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.set_xlabel("% of the rows that match")
        axes.set_ylabel("ms")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=130)


def draw_growth(growths: Sequence[Growth], path: Path = FOLDER / "growth.png") -> None:
    """A panel for each dimension: time, planning and memory over size, and what is linear."""
    across = 3
    down = -(-len(growths) // across)
    figure = Figure(figsize=(4.2 * across, 3.6 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).flatten()
    for axes, growth in zip(panels, growths, strict=False):
        sizes = growth.dimension.sizes
        times = [seconds * 1e3 for seconds in growth.seconds]
        planning = [seconds * 1e3 for seconds in growth.planning]
        linear = [times[-1] * size / sizes[-1] for size in sizes]
        axes.plot(sizes, linear, color=LINEAR, linestyle=":", label="linear")
        axes.plot(sizes, times, color=TIME, marker="o", label="ms")
        axes.plot(sizes, planning, color=PLANNING, marker=".", label="ms of planning")
        axes.plot(sizes, growth.megabytes, color=MEMORY, marker="s", label="MB at the peak")
        axes.set_title(growth.dimension.name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        low = min(*times, *planning, *growth.megabytes)
        axes.set_ylim(bottom=low / 2)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(growths) :]:
        axes.set_visible(False)
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=130)


def _line(name: str) -> dict[str, Any]:
    """fretsaw stands out, and so does what it is to be held against."""
    if name == OURS:
        return {"color": TIME, "linewidth": 2.5, "marker": "o", "zorder": 3}
    if name == Plain.name:
        return {"color": "black", "linewidth": 2, "linestyle": "--"}
    return {"linewidth": 1, "alpha": 0.8}
