"""The row evaluator of the tests against DuckDB, where both mean the same."""

import random
from typing import Any

import pyarrow as pa
import pytest

from tests.support.random_trees import Trees
from tests.support.row_evaluator.evaluator import evaluate
from tests.support.row_evaluator.kinds import kind_of, rows_of
from tests.support.row_evaluator.trees import Node
from tests.support.tree_files import made_table
from tests.support.tree_wording import Unsayable, as_sql
from tests.support.writers import need

COLUMNS = [
    *("i8", "i32", "i64", "n64", "f64", "d9", "s", "t", "few", "flag", "day", "eve", "at"),
    *("clock", "xs", "ys", "m"),
]


def means_the_same(node: Node) -> bool:
    """Whether DuckDB means the same by one operation.

    There zeros have no sign, `trim` removes spaces of every width, `ilike` is of lower case only,
    only quotients of integers are cut off, floats are rounded when they become integers, and the
    microseconds count the seconds; there are no elements and no lengths of maps.
    """
    floats = any(arg.kind.name == "float" for arg in node.args)
    match node.op, node.extra:
        case "strip" | "fold", _:
            return False
        case "compare" | "distinct" | "nullif", _:
            one, other = node.args
            computed = not (one.op == other.op == "column" or one.is_literal or other.is_literal)
            return not (computed and one.kind.name == other.kind.name == "float")
        case "like", (_, _, True):
            return False
        case "arithmetic", "//":
            return node.kind.name == "int"
        case "cast" | "try_cast", _:
            return not floats
        case "part", "microsecond":
            return False
        case "length", _:
            return node.args[0].kind.name != "map"
    return True


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Zeros have no sign in DuckDB, so there is only one here."""
    made = made_table(99, COLUMNS)
    floats = [value and float(value) for value in made["f64"].to_pylist()]
    return made.set_column(
        made.schema.get_field_index("f64"), "f64", pa.array([0.0 if x == 0 else x for x in floats])
    )


@pytest.fixture(scope="module")
def database(table: pa.Table) -> Any:
    connection = need("duckdb").connect()
    connection.execute("set timezone = 'UTC'; set error_on_division_by_zero = false")
    connection.register("source", table.append_column("n", pa.array(range(table.num_rows))))
    connection.execute("create table odd as from source")
    return connection


def test_rows_are_those_of_duckdb(table: pa.Table, database: Any) -> None:
    duckdb = need("duckdb")
    rows = rows_of(table)
    kinds = {field.name: kind_of(field.type) for field in table.schema}
    compared = 0
    for number in range(800):
        tree = Trees(random.Random(number), kinds, depth=2).tree()
        expected = evaluate(tree, rows, sql=True)
        if expected.failing or not all(map(means_the_same, tree.walk())):
            continue
        try:
            text = as_sql(tree)
            query = f"select n from odd where {text} order by n"
            found = [row for (row,) in database.execute(query).fetchall()]
        except (Unsayable, duckdb.OutOfRangeException, duckdb.ConversionException):
            continue  # integers compute in fewer bits there, and rows fail that need not
        assert expected.rows == found, text
        compared += 1
    assert compared > 400
