"""Pictures: `results.png`, `curve.png` and `growth.png`.

In: results, the points of a curve, or growths. Out: a file each, next to this module.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.curve import Point
from benchmarks.growth import Growth
from benchmarks.ours import Plain
from benchmarks.result import OURS, Result

MET, AHEAD, BEHIND, GOAL = "#2a9d8f", "#a8d5cf", "#d1495b", "#ffd166"
FOLDER = Path(__file__).parent
TIME, PLANNING, MEMORY, LINEAR = "#2a9d8f", "#8ac6bf", "#d1495b", "#999999"


def draw_ratios(results: Sequence[Result], path: Path = FOLDER / "results.png") -> None:
    """A bar for each workload, from 1.0 (as fast as the best peer) to its ratio."""
    drawn = [(result, result.ratio) for result in results if result.ratio is not None]
    if not drawn:
        return
    figure = Figure(figsize=(8, 1.6 + 0.25 * len(drawn)), layout="constrained")
    axes = figure.subplots()
    for place, (result, ratio) in enumerate(drawn):
        color = MET if result.met else AHEAD if ratio <= 1.0 else BEHIND
        axes.barh(place, ratio - 1.0, left=1.0, color=color, height=0.7)
    aims = {place: one.goal for place, (one, _) in enumerate(drawn) if not one.goal_in_seconds}
    goals, ratios = list(aims.values()), [ratio for _, ratio in drawn]
    axes.axvline(1.0, color="black", linewidth=1)
    axes.scatter(goals, list(aims), marker="D", s=24, c=GOAL, ec="black", zorder=3)
    marks = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    low, high = min(1.0, *ratios, *goals) / 1.3, max(1.0, *ratios, *goals) * 1.3
    axes.set_xscale("log")
    axes.set_xticks([mark for mark in marks if low <= mark <= high])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.minorticks_off()
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.set_xlim(low, high)
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    axes.set_yticks(range(len(drawn)), [f"{one.name}  {ratio:.2f}" for one, ratio in drawn])
    axes.tick_params(left=False)
    axes.set_xlabel("time of fretsaw / time of the best peer, log scale: left of 1 is ahead")
    axes.spines[["top", "right", "left"]].set_visible(False)
    kinds = {"goal met": MET, "ahead": AHEAD, "behind": BEHIND}
    shown = [Patch(color=color, label=label) for label, color in kinds.items()]
    aim = Line2D([], [], marker="D", ls="", mfc=GOAL, mec="black", label="goal")
    figure.legend(handles=[*shown, aim], loc="outside upper right", ncols=4, frameon=False)
    figure.savefig(path, dpi=130)


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
        axes.grid(axis="y", color="#dddddd")
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
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
        axes.grid(color="#eeeeee")
        axes.set_xscale("log")
        axes.set_yscale("log")
        low = min(*times, *planning, *growth.megabytes)
        axes.set_ylim(bottom=low / 2)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(growths) :]:
        axes.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=130)


def _line(name: str) -> dict[str, Any]:
    """fretsaw stands out, and so does what it is to be held against."""
    if name == OURS:
        return {"color": TIME, "linewidth": 2.5, "marker": "o", "zorder": 3}
    if name == Plain.name:
        return {"color": "black", "linewidth": 2, "linestyle": "--"}
    return {"linewidth": 1, "alpha": 0.8}
