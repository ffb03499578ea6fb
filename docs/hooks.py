"""What the site has beyond the pages of this folder; mkdocs calls it (`mkdocs.yml`).

In: the README, the changelog, the public names of fretsaw, the results of the benchmarks. Out: the
home page, a reference made of docstrings, the numbers of the page about benchmarks; and a
navigation with all the pages that there are.
"""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
GROUPS = {
    "Scans": ("scan", "Scan"),
    "Files": ("open", "DataFile", "Block", "SchemaNode"),
    "Predicates": (
        *("col", "when", "coalesce", "element", "Expression", "Column", "Predicate"),
        *("byte_range", "blocks", "BlockPredicate"),
    ),
    "Row selections": ("RowSelection", "RowSelector"),
    "Rows and columns": ("Row", "ColumnBatch", "ColumnBatches", "Layer", "LayerKind", "Validity"),
    "What is read": ("Plan", "trace", "Trace"),
    "Errors": (),
    "More": (),
}
"""The pages of the reference. What is in none is in the last one, or among the errors."""


def on_config(config: "MkDocsConfig") -> None:
    """Leave out pages that are not there, and add those that are not listed."""
    there = {"index.md", "changelog.md", *(path.name for path in (ROOT / "docs").glob("*.md"))}
    nav: list[Any] = _only(config.nav or [], there)
    unlisted = sorted(there - set(_pages(nav)))
    reference = {"Reference": [_api_page(group) for group in _names_of_groups()]}
    config.nav = [*nav, reference, *([{"More": unlisted}] if unlisted else [])]


def on_files(files: "Files", config: "MkDocsConfig") -> None:
    """Make the pages that are written elsewhere."""
    from mkdocs.structure.files import File

    made = {
        "index.md": _moved((ROOT / "README.md").read_text()),
        "changelog.md": _moved((ROOT / "CHANGELOG.md").read_text()),
        **{_api_page(group): _reference(group, n) for group, n in _names_of_groups().items()},
    }
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))


def on_page_markdown(markdown: str, page: "Page", **_: Any) -> str:
    """Fill in the numbers of the benchmarks, and have sessions coloured as sessions."""
    if page.file.src_uri == "benchmarks.md":
        sys.path.insert(0, str(ROOT))
        from benchmarks import site_page

        markdown = site_page.filled(markdown)
    markdown = re.sub(r"\n\n```(?=\n)", "\n```", markdown)
    return _moved(re.sub(r"```python\n(?=>>>)", "```pycon\n", markdown))


def _names_of_groups() -> dict[str, list[str]]:
    """The public names, each in one group; no group is empty."""
    import fretsaw

    grouped = {name for names in GROUPS.values() for name in names}
    groups = {group: [n for n in names if n in fretsaw.__all__] for group, names in GROUPS.items()}
    for name in fretsaw.__all__:
        if name not in grouped:
            groups["Errors" if name.endswith(("Error", "Warning")) else "More"].append(name)
    return {group: names for group, names in groups.items() if names}


def _api_page(group: str) -> str:
    return f"api/{group.lower().replace(' ', '-')}.md"


def _reference(group: str, names: list[str]) -> str:
    """A page that has mkdocstrings describe each of these names where it is defined."""
    import fretsaw

    found = [getattr(fretsaw, name) for name in names]
    listed = (f"::: {each.__module__}.{each.__qualname__}" for each in found)
    intro = "All of these are names of the package: `import fretsaw as fs`."
    return "\n\n".join([f"# {group}", intro, *listed]) + "\n"


def _moved(text: str) -> str:
    """The same with links as they are in the site, and without those to what is not in it."""
    text = text.replace("](docs/", "](").replace('srcset="docs/', 'srcset="')
    text = text.replace('src="docs/', 'src="')
    text = re.sub(r"\]\((\.\./)?benchmarks/\w+\.md\)", "](benchmarks.md)", text)
    text = re.sub(r"\]\((\.\./)?CHANGELOG\.md\)", "](changelog.md)", text)
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?:\.\./)?(?:kernels/README\.md|LICENSE)\)", r"\1", text)


def _only(nav: list[Any], there: set[str]) -> list[Any]:
    """A navigation without the pages that are not there."""
    kept: list[Any] = []
    for entry in nav:
        if isinstance(entry, str):
            kept += [entry] * (entry in there)
            continue
        ((title, below),) = entry.items()
        if isinstance(below, list):
            kept.append({title: _only(below, there)})
        elif below in there:
            kept.append(entry)
    return kept


def _pages(nav: list[Any]) -> list[str]:
    """All pages of a navigation."""
    found: list[str] = []
    for entry in nav:
        below = entry if isinstance(entry, str) else next(iter(entry.values()))
        found += [below] if isinstance(below, str) else _pages(below)
    return found
