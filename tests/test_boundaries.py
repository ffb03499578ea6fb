"""Who may import whom: data flows one way, and the imports say so."""

import ast
from pathlib import Path

import fretsaw

PACKAGE = Path(fretsaw.__file__).parent

# In the order of the data: what has a rank may import its own rank and those above it.
RANKS = (
    {"errors"},
    {"model"},
    {"predicates"},
    {"storage"},
    {"formats"},
    {"engine"},
    {"results"},
    {"scan", "datafile", "arguments", "versions", "cache"},
    {"spark"},
    {"cli", "__main__"},
)
RANK = {name: rank for rank, names in enumerate(RANKS) for name in names}
EXCEPTIONS = {("scan", "spark")}
"""`Scan.to_spark` is the one import the other way."""


def imports(source: str) -> set[str]:
    """The modules and packages at the top of fretsaw that a source imports."""
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


def sources() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def test_the_check_sees_every_kind_of_import() -> None:
    source = (
        "import fretsaw.engine.plan\n"
        "def f():\n    from fretsaw import scan\nfrom fretsaw.model.schema import X"
    )
    assert imports(source) == {"engine", "scan", "model"}


def test_imports_go_up_the_ranks_only() -> None:
    for path in sources():
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        assert name in RANK, f"{name}: say in RANKS where it stands"
        for other in imports(path.read_text()):
            is_above = RANK[other] <= RANK[name] or (name, other) in EXCEPTIONS
            assert is_above, f"{path.relative_to(PACKAGE)} imports {other}, which stands below it"


def test_formats_do_not_know_each_other() -> None:
    for path in sorted((PACKAGE / "formats").rglob("*.py")):
        here = path.parent.name
        others = {"parquet", "orc"} - {here}
        if here == "formats":
            continue
        for other in others:
            assert f"fretsaw.formats.{other}" not in path.read_text(), path


def test_every_package_and_module_says_what_it_is_for() -> None:
    for path in sources():
        described = ast.get_docstring(ast.parse(path.read_text()))
        assert described, f"{path.relative_to(PACKAGE)} has no docstring"


def test_modules_import_no_private_names_of_others() -> None:
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fretsaw"):
                private = [name.name for name in node.names if name.name.startswith("_")]
                assert not private, f"{path.relative_to(PACKAGE)} imports {private}"
