"""A plan as text for people, and beside it what happened when the scan was run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fretsaw.model.shown import listed, size
from fretsaw.model.trace import Trace, Why

if TYPE_CHECKING:
    from fretsaw.engine.summary import Amount, Plan


def explain(plan: "Plan") -> str:
    """The plan in a few lines for a person to read."""
    files = plan.files[0]
    if len(plan.files) > 1:
        files = f"{len(plan.files):,} files, of which {plan.files_opened:,} were opened"
    names = listed(plan.columns)
    lines = [
        f"scan of {files}",
        f"  columns {len(plan.columns):,}: {names or 'only rows'}",
    ]
    if plan.predicate:
        lines.append(f"  filter  {plan.predicate}")
        if not plan.indexes:
            lines.append("  indexes are not believed: every row is tested")
    if plan.window:
        lines.append(f"  window  {plan.window}")
    by = ", ".join(f"{count:,} by {source}" for source, count in plan.dropped.items())
    may = f" may match, {plan.proven:,} surely do" if plan.predicate else ""
    lines += [
        _line("rows", plan.rows, f"{plan.rows.kept:,} of {plan.rows.total:,}{may}"),
        _line("blocks", plan.block_count, _of(plan.block_count))
        + (f": dropped {by}" if by else ""),
        _line("pages", plan.pages, f"{_of(plan.pages)} in these blocks"),
        _line("bytes", plan.bytes, f"{size(plan.bytes.kept)} of {size(plan.bytes.total)}"),
        *_savings(plan),
        *_parts(plan),
        f"  read to plan: {_reasons(plan.planning_bytes)}",
    ]
    return "\n".join(lines)


def compare(plan: "Plan", rows: int, actual: Trace) -> str:
    """What was planned beside what happened when the scan was run."""
    table = [
        ("rows", f"{plan.rows.kept:,}", f"{rows:,}"),
        ("pages", f"{plan.pages.kept:,}", f"{actual.pages_decoded:,}"),
        ("bytes", size(plan.bytes.kept), size(actual.data_bytes)),
        (
            "index bytes",
            size(sum(plan.planning_bytes.values())),
            size(actual.index_bytes + actual.footer_bytes),
        ),
        ("requests", "", f"{actual.requests:,}"),
    ]
    lines = ["", f"  {'':<11} {'planned':>14} {'actual':>14}"]
    lines += [f"  {name:<11} {planned:>14} {found:>14}" for name, planned, found in table]
    lines += [f"  fallback: {f.column} in block {f.block}: {f.reason}" for f in actual.fallbacks]
    return explain(plan) + "\n".join(lines)


def _parts(plan: "Plan") -> list[str]:
    """What each part of the condition rules out by itself, and which cannot."""
    lines = ["  parts of the condition, each by itself:"] if plan.parts else []
    for part in plan.parts:
        proofs = [
            f"{dropped:,} of {asked:,} {level}s ruled out by {source}"
            for source, level, dropped, asked in part.proofs
            if dropped
        ]
        told = ", ".join(proofs) or "nothing rules out a row before it is tested"
        lines.append(f"    {part.text}: {told}")
    return lines


def _savings(plan: "Plan") -> list[str]:
    """What each source of proofs dropped."""
    totals: dict[tuple[str, str], list[int]] = {}
    for pruned in plan.pruned:
        total = totals.setdefault((pruned.source, pruned.level), [0, 0, 0])
        for place, count in enumerate((pruned.kept, pruned.dropped, pruned.bytes_saved)):
            total[place] += count
    return [
        f"  {source}: dropped {dropped:,} of {kept + dropped:,} {level}s"
        + (f", {size(saved)} not read" if saved else "")
        for (source, level), (kept, dropped, saved) in totals.items()
    ]


def _reasons(planning_bytes: Mapping[Why, int]) -> str:
    """What was read to make a plan."""
    read = (f"{size(count)} for {why}" for why, count in planning_bytes.items())
    return ", ".join(read) or "nothing new"


def _of(amount: "Amount") -> str:
    return f"{amount.kept:,} of {amount.total:,}"


def _line(name: str, amount: "Amount", text: str) -> str:
    share = amount.kept / amount.total if amount.total else 0
    return f"  {name:<7} {text} ({share:.2%})"
