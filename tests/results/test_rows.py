"""A row by itself: its fields, its names, its errors."""

import pickle
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.expected_rows import ROWS, assert_rows, fingerprint, orders, written

# A row


PEOPLE: list[dict[str, Any]] = [
    {"id": 1, "name": "Ada", "tags": ["x"], "home": {"city": "London"}},
    {"id": 2, "name": None, "tags": ["x"], "home": {"city": "London"}},
    {"id": 3, "name": "Bo", "tags": [], "home": None},
]


@cache
def people() -> bytes:
    return written(pa.Table.from_pylist(PEOPLE))


def first_row() -> fs.Row:
    return next(iter(fs.scan(people()).rows()))


def test_a_row_has_its_values_by_name() -> None:
    row = first_row()
    assert isinstance(row, fs.Row)
    assert (row["id"], row["name"], row["tags"]) == (1, "Ada", ["x"])
    assert row["home"] == {"city": "London"}
    assert type(row["home"]) is dict


def test_a_row_is_a_mapping_in_the_order_of_the_columns() -> None:
    row = first_row()
    assert len(row) == 4
    assert list(row) == list(row.keys()) == ["id", "name", "tags", "home"]
    assert list(row.values()) == list(PEOPLE[0].values())
    assert list(row.items()) == list(PEOPLE[0].items())
    assert isinstance(row, Mapping)
    assert "id" in row
    assert "age" not in row
    (chosen,) = fs.scan(people()).select("home", "id").head(1)
    assert list(chosen) == ["home", "id"]


@pytest.mark.parametrize("name", ["age", "home.city", "ID", "", "näme"])
def test_a_missing_column_is_a_key_error_that_prints_its_message(name: str) -> None:
    with pytest.raises(KeyError) as caught:
        first_row()[name]
    assert isinstance(caught.value, fs.ColumnNotFoundError)
    assert str(caught.value) == f"Column not in projection: {name}"


def test_columns_that_are_not_selected_are_missing() -> None:
    (row,) = fs.scan(people()).select("id").filter(col("name") == "Ada").rows()
    with pytest.raises(fs.ColumnNotFoundError) as caught:
        row["name"]
    assert str(caught.value) == "Column not in projection: name"
    assert row.get("name") is None


def test_get_has_a_default() -> None:
    rows = list(fs.scan(people()))
    assert rows[0].get("id") == rows[0].get("id", 7) == 1
    assert rows[0].get("age") is None
    assert rows[0].get("age", 7) == 7
    assert rows[1].get("name", "nobody") is None


def test_as_dict_is_a_plain_dict_of_its_own() -> None:
    row = first_row()
    plain = row.as_dict()
    assert type(plain) is dict
    assert plain == PEOPLE[0]
    assert list(plain) == list(PEOPLE[0])
    plain["id"] = 99
    assert row["id"] == 1


def test_rows_equal_dicts() -> None:
    first, second, third = fs.scan(people())
    assert first == PEOPLE[0]
    assert PEOPLE[1] == second
    assert third == {**PEOPLE[2]}
    assert first != second
    assert first != {**PEOPLE[0], "age": 1}
    assert {**first} == dict(first) == PEOPLE[0]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_rows_can_be_pickled(protocol: int) -> None:
    for row in fs.scan(orders()[0]).head(8):
        again = pickle.loads(pickle.dumps(row, protocol))
        assert type(again) is fs.Row
        assert fingerprint(dict(again)) == fingerprint(dict(row))
        with pytest.raises(fs.ColumnNotFoundError, match=r"^Column not in projection: age$"):
            again["age"]


def test_a_row_shows_its_values() -> None:
    assert all(text in repr(first_row()) for text in ("'id'", "'Ada'", "'London'"))


def test_rows_share_nothing_that_can_change() -> None:
    table = pa.table(
        {
            "list": pa.array([[1]] * 3),
            "struct": pa.array([{"l": [1]}] * 3),
            "map": pa.array([[("k", [1])]] * 3, pa.map_(pa.string(), pa.list_(pa.int64()))),
            "none": pa.array([[]] * 3, pa.list_(pa.int64())),
        }
    )
    source = fs.scan(written(table))
    expected = table.to_pylist()
    rows = list(source)
    rows[0]["list"].append(2)
    rows[0]["struct"]["l"].append(2)
    rows[0]["struct"]["other"] = 2
    rows[0]["map"][0][1].append(2)
    rows[0]["map"].append(("z", []))
    rows[0]["none"].append(2)
    assert rows[1:] == expected[1:]
    assert list(source) == expected


def test_rows_cannot_be_changed() -> None:
    row: Any = first_row()
    with pytest.raises(TypeError):
        row["id"] = 2
    with pytest.raises(TypeError):
        row["age"] = 2
    with pytest.raises(TypeError):
        del row["id"]
    assert row == PEOPLE[0]


def test_a_row_outlives_the_next_ones() -> None:
    iterator = iter(fs.scan(orders()[0]))
    first = next(iterator)
    before = fingerprint(dict(first))
    assert len(list(iterator)) == ROWS - 1
    assert fingerprint(dict(first)) == before == fingerprint(orders()[1][0])


# Names that come twice


def test_columns_of_one_name_raise_and_say_what_to_do() -> None:
    data = written(pa.table([[1], [2], [3]], names=["a", "a", "b"]))
    for rows in (fs.scan(data).rows(), iter(fs.scan(data))):
        with pytest.raises(ValueError, match=r"(?s)\ba\b.*batches\(\)") as caught:
            next(rows)
        assert "select" in str(caught.value)
    assert_rows(fs.scan(data).select("b"), [{"b": 3}])
    assert_rows(fs.scan(data).select(), [{}])


@pytest.mark.parametrize("where", ["struct", "list", "map", "struct in a struct"])
def test_fields_of_one_name_raise(where: str) -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["v", "v"])
    ends = pa.array([0, 1], pa.int32())
    column = {
        "struct": lambda: twice,
        "list": lambda: pa.ListArray.from_arrays(ends, twice),
        "map": lambda: pa.MapArray.from_arrays(ends, pa.array(["k"]), twice),
        "struct in a struct": lambda: pa.StructArray.from_arrays([twice], names=["in"]),
    }[where]()
    data = written(pa.table({"x": column, "b": [3]}))
    with pytest.raises(ValueError, match=r"batches\(\)"):
        next(iter(fs.scan(data)))
    assert_rows(fs.scan(data).select("b"), [{"b": 3}])


def test_one_name_in_two_structs_is_no_trouble() -> None:
    data = written(pa.table({"v": [{"v": 1}], "w": [{"v": [{"v": 2}]}]}))
    assert_rows(fs.scan(data), [{"v": {"v": 1}, "w": {"v": [{"v": 2}]}}])


# Errors


def test_names_and_types_are_checked_before_data_is_read() -> None:
    data, _ = orders()
    with fs.trace() as trace:
        with pytest.raises(fs.ColumnNotFoundError, match="text"):
            next(iter(fs.scan(data).select("txet").rows()))
        with pytest.raises(fs.PredicateTypeError, match="text"):
            next(iter(fs.scan(data).filter(col("text") == 1).rows()))
    assert trace.data_bytes == 0


def test_rows_before_a_damage_are_given_or_none(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    table = pa.table({"n": np.arange(20_000), "x": np.random.default_rng(1).normal(size=20_000)})
    options = {"row_group_size": 5_000, "use_dictionary": False, "write_page_checksum": True}
    data = bytearray(written(table, compression="none", **options))
    data[len(data) * 3 // 4] ^= 1
    path.write_bytes(bytes(data))
    found: list[int] = []
    with pytest.raises(fs.FileFormatError, match=r"file\.parquet"):
        found.extend(row["n"] for row in fs.scan(path))
    rows = iter(fs.scan(path))
    assert next(rows)["n"] == 0
