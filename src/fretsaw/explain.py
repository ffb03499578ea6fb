"""A plan as text: what is read, what is not, and what decided it."""

from fretsaw.plan import Amount, Plan

_UNITS = ("bytes", "KB", "MB", "GB", "TB")


def explain(plan: Plan) -> str:
    """The plan in a few lines for a person to read."""
    files = plan.files[0]
    if len(plan.files) > 1:
        files = f"{len(plan.files):,} files, of which {plan.files_opened:,} were opened"
    names = ", ".join(plan.columns[:8]) + (", ..." if len(plan.columns) > 8 else "")
    lines = [
        f"scan of {files}",
        f"  columns {len(plan.columns):,}: {names or 'only rows'}",
    ]
    if plan.window:
        lines.append(f"  window  {plan.window}")
    by = ", ".join(f"{count:,} by {source}" for source, count in plan.dropped.items())
    lines += [
        _line("rows", plan.rows, f"{plan.rows.kept:,} of {plan.rows.total:,}"),
        _line("blocks", plan.block_count, _of(plan.block_count))
        + (f": dropped {by}" if by else ""),
        _line("pages", plan.pages, f"{_of(plan.pages)} in these blocks"),
        _line("bytes", plan.bytes, f"{size(plan.bytes.kept)} of {size(plan.bytes.total)}"),
    ]
    return "\n".join(lines)


def size(count: int) -> str:
    """A number of bytes as people say it.

    >>> size(153_600)
    '150 KB'
    """
    amount = float(count)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if amount >= 10 or unit == "bytes" else f"{amount:.1f} {unit}"


def _of(amount: Amount) -> str:
    return f"{amount.kept:,} of {amount.total:,}"


def _line(name: str, amount: Amount, text: str) -> str:
    share = amount.kept / amount.total if amount.total else 0
    return f"  {name:<7} {text} ({share:.2%})"
