"""Who may import whom: data flows one way, and the imports say so."""

import ast
from pathlib import Path

import fretsaw

PACKAGE = Path(fretsaw.__file__).parent

# In the order of the data; a module may import what is listed for it, and nothing else of ours.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "locks": set(),
    "trace": {"locks"},
    "selection": {"errors"},
    "schema": {"errors"},
    "layout": {"schema", "selection"},
    "predicate": {"errors", "schema"},
    "text": set(),
    "sql": {"errors", "locks", "predicate", "schema", "text"},
    "values": set(),
    "literals": {"schema", "text", "values"},
    "condition": {"predicate", "schema", "values"},
    "matching": {"condition", "layout", "locks", "schema", "values"},
    "resolve": {
        "condition",
        "errors",
        "literals",
        "matching",
        "predicate",
        "schema",
        "values",
    },
    "prune": {"condition", "layout", "selection", "values"},
    "vectors": {"schema"},
    "arrays": {"layout", "selection", "vectors"},
    "plan": {"layout", "predicate", "selection", "trace"},
    "explain": {"plan", "trace"},
    "scratch": set(),
    "cache": {"locks"},
    "threads": set(),
    "storage": {"errors", "locks", "scratch", "trace"},
    "sources": {"errors", "storage"},
    "jsonlines": {"layout"},
    "write": {"errors", "jsonlines", "schema", "sources", "storage"},
    "formats": {"errors", "schema", "layout", "locks", "scratch", "selection", "trace"},
    "parquet": {
        "cache",
        "errors",
        "schema",
        "values",
        "layout",
        "locks",
        "selection",
        "arrays",
        "scratch",
        "formats",
    },
    "orc": {
        "errors",
        "schema",
        "values",
        "layout",
        "locks",
        "selection",
        "arrays",
        "scratch",
        "formats",
    },
    "nested": {"schema", "vectors"},
    "objects": {"schema", "vectors"},
    "files": {
        "cache",
        "formats",
        "layout",
        "plan",
        "schema",
        "scratch",
        "sources",
        "storage",
        "threads",
        "trace",
    },
    "projection": {"arrays", "errors", "formats", "nested", "schema", "selection"},
    "leaves": {"errors", "locks", "nested", "projection", "schema", "selection"},
    "probe": {
        "condition",
        "errors",
        "files",
        "formats",
        "layout",
        "matching",
        "plan",
        "schema",
        "selection",
        "trace",
        "values",
    },
    "survey": {
        "condition",
        "files",
        "formats",
        "layout",
        "plan",
        "probe",
        "prune",
        "schema",
        "selection",
        "trace",
        "values",
    },
    "search": {
        "arrays",
        "condition",
        "errors",
        "files",
        "formats",
        "layout",
        "matching",
        "plan",
        "schema",
        "scratch",
        "selection",
        "survey",
        "threads",
        "trace",
        "values",
    },
    "execute": {
        "arrays",
        "condition",
        "files",
        "layout",
        "plan",
        "schema",
        "scratch",
        "search",
        "selection",
        "survey",
        "threads",
    },
    "reading": {
        "condition",
        "errors",
        "execute",
        "files",
        "formats",
        "leaves",
        "matching",
        "locks",
        "plan",
        "predicate",
        "projection",
        "resolve",
        "schema",
        "selection",
        "sources",
        "storage",
        "survey",
        "trace",
    },
    "planning": {
        "condition",
        "files",
        "layout",
        "plan",
        "projection",
        "reading",
        "schema",
        "selection",
        "sources",
        "storage",
        "survey",
        "trace",
    },
    "rows": {"arrays", "errors", "objects", "schema"},
    "columns": {"arrays", "errors", "leaves", "nested", "schema", "vectors"},
    "scan": {
        "columns",
        "explain",
        "files",
        "errors",
        "formats",
        "layout",
        "locks",
        "plan",
        "planning",
        "predicate",
        "projection",
        "reading",
        "rows",
        "schema",
        "selection",
        "sources",
        "sql",
        "storage",
        "trace",
        "write",
    },
    "datafile": {
        "files",
        "formats",
        "layout",
        "locks",
        "planning",
        "predicate",
        "scan",
        "schema",
        "selection",
        "sources",
        "storage",
    },
}
ALLOWED["spark"] = set(ALLOWED) - {"datafile"}
ALLOWED["cli"] = set(ALLOWED)


def imports(source: str) -> set[str]:
    """The modules of fretsaw that a source imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                targets = [name.name for name in names]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                targets = [f"{module}.{name.name}" for name in names]
            case ast.ImportFrom(level=level) if level:
                raise AssertionError("relative imports hide who imports whom")
            case _:
                continue
        found |= {target.split(".")[1] for target in targets if target.startswith("fretsaw.")}
    return found


def owner(path: Path) -> str:
    """The module, or the package for the modules of a format."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_the_check_sees_every_kind_of_import() -> None:
    source = (
        "import fretsaw.plan\ndef f():\n    from fretsaw import scan\nfrom fretsaw.schema import X"
    )
    assert imports(source) == {"plan", "scan", "schema"}


def test_modules_import_only_what_stands_above_them() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path == PACKAGE / "__init__.py":
            continue
        name = owner(path)
        assert name in ALLOWED, f"{name}: say in ALLOWED what it may import"
        beyond = imports(path.read_text()) - ALLOWED[name] - {name}
        if name == "scan":
            beyond -= {"spark"}  # to_spark() is the one import the other way
        assert not beyond, f"{path.name} imports {sorted(beyond)}, which it may not"


def test_the_order_has_no_cycles() -> None:
    done: set[str] = set()
    for name, above in ALLOWED.items():
        assert above <= done, f"{name} imports {sorted(above - done)}, which come after it"
        done.add(name)
