"""Tests of the elements of lists and maps: several conditions at once, places and keys."""

from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col, element
from tests.support.formats import written

ITEM = pa.struct({"price": pa.int64(), "qty": pa.int32(), "name": pa.string()})
ITEMS: list[Any] = [
    [{"price": 5, "qty": 9, "name": "a"}, {"price": 20, "qty": 1, "name": "b"}],
    [{"price": 20, "qty": 5, "name": "Abc"}],
    [],
    None,
    [{"price": None, "qty": 5, "name": None}, {"price": 1, "qty": None, "name": "abc"}],
    [None, {"price": 30, "qty": 30, "name": "x"}],
]
XS: list[Any] = [[1, 2, 3], [], None, [None, 7], [5], [2, 2]]
MAPS: list[Any] = [
    [("k", 1), ("j", 2)],
    [],
    None,
    [("k", None)],
    [("j", 4)],
    [("k", 5), ("k", 6)],
]
LIMITS = [10, 2, 1, None, 6, 3]
TABLE = pa.table(
    {
        "items": pa.array(ITEMS, pa.list_(ITEM)),
        "xs": pa.array(XS, pa.list_(pa.int64())),
        "m": pa.array(MAPS, pa.map_(pa.string(), pa.int64())),
        "limit": pa.array(LIMITS, pa.int64()),
        "s": pa.array([{"xs": xs} for xs in XS], pa.struct({"xs": pa.list_(pa.int64())})),
    }
)
price, quantity = element("price"), element("qty")


@pytest.mark.parametrize("writer", ["parquet", "orc"])
@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        (col("items").any((price > 10) & (quantity > 2)), [1, 5]),
        (~col("items").any((price > 10) & (quantity > 2)), [0, 2]),
        (col("items").all(price > 3), [0, 1, 2]),
        (~col("items").all(price > 3), [4]),
        (col("items").any(price == quantity), [5]),
        (col("items").any(element("name").lower() == "abc"), [1, 4]),
        (col("items").any(element("name").like("%b%")), [0, 1, 4]),
        (col("items").any(price.is_null()), [4, 5]),
        (col("items").any(price > col("limit")), [0, 1, 5]),
        (col("items").length() == 2, [0, 4, 5]),
        (col("items").length() == 0, [2]),
        (col("items").length().is_null(), [3]),
        (col("xs").any(element() % 2 == 0), [0, 5]),
        (col("xs").all(element() > 1), [1, 4, 5]),
        (col("xs").any(element() == col("limit")), []),
        (col("xs").get(0) == 1, [0]),
        (col("xs").get(1) == 7, [3]),
        (col("xs").get(1) > col("limit") - 2, [5]),
        (col("xs").get(2).is_null(), [1, 2, 3, 4, 5]),
        (col("s.xs").get(0) + 1 == 6, [4]),
        (col("s.xs").any(element() > 6), [3]),
        (col("m").get("k") == 1, [0]),
        (col("m").get("k") == 6, [5]),
        (col("m").get("k") == 5, []),
        (col("m").get("j") < 5, [0, 4]),
        (col("m").get("k").is_null(), [1, 2, 3, 4]),
        (col("m").length() == 2, [0, 5]),
        (col("m").any((element("key") == "k") & (element("value") > 4)), [5]),
        ("m['k'] = 1", [0]),
        ("xs[1] = 1 or xs[2] = 7", [0, 3]),
        ("list_contains(xs, 2)", [0, 5]),
        ("length(xs) > 1", [0, 3, 5]),
        (fs.when(col("xs").length() > 0).then(col("xs").get(0)).otherwise(0) == 0, [1, 2]),
    ],
    ids=repr,
)
def test_elements_are_tested(predicate: Any, rows: list[int], writer: str) -> None:
    data = written(TABLE, writer, [2, 2, 2])
    for indexes in (True, False):
        scan = fs.scan(data, indexes=indexes).filter(predicate).with_row_index("n")
        assert scan.select().to_arrow()["n"].to_pylist() == rows


@pytest.mark.parametrize(
    ("predicate", "says"),
    [
        (element("price") > 1, "for tests of elements"),
        (col("limit").any(element() > 1), "no list and no map"),
        (col("items").any(element() > 1), "no single value"),
        (col("items").any(element("cost") > 1), "not in an element, which has price, qty, name"),
        (col("items").any(element("price") > "x"), "compares with"),
        (col("xs").get(-1) > 1, "counted from 0"),
        ("xs[0] = 1", "counted from 1"),
        (col("m").get(1) > 1, "compares with a str"),
        (col("items.price") + 1 > 2, r"below a list or map.*any"),
        (col("items") + 1 > 2, "does not work on"),
    ],
    ids=repr,
)
def test_what_is_no_element_is_refused(predicate: Any, says: str) -> None:
    data = written(TABLE, "parquet", [6])
    with pytest.raises(fs.PredicateTypeError, match=says):
        fs.scan(data).filter(predicate).to_arrow()


ORDERS: list[Any] = [
    [{"id": 1, "lines": [{"sku": "ab", "n": 1}, {"sku": "xab", "n": 7}], "tags": ["Red", "tin"]}],
    [{"id": 2, "lines": [], "tags": []}, {"id": 3, "lines": [{"sku": "b", "n": 9}], "tags": None}],
    [],
    None,
    [{"id": 4, "lines": None, "tags": [None, "Tin"]}],
    [{"id": None, "lines": [{"sku": None, "n": 2}, None], "tags": ["rust"]}, None],
]
LINE = pa.struct({"sku": pa.string(), "n": pa.int64()})
ORDER = pa.struct({"id": pa.int64(), "lines": pa.list_(LINE), "tags": pa.list_(pa.string())})
NESTED = pa.table(
    {
        "orders": pa.array(ORDERS, pa.list_(ORDER)),
        "names": pa.array(
            [["Abe", "Bo"], ["bob"], [], None, [None, "ab"], ["x%"]], pa.list_(pa.string())
        ),
        "by": pa.array(
            [[("k", {"v": 1})], [("j", None)], [], None, [("k", {"v": 2}), ("k", {"v": 3})], []],
            pa.map_(pa.string(), pa.struct({"v": pa.int64()})),
        ),
        "few": pa.array([3, 8, 0, 0, None, 1], pa.int64()),
        "rows": pa.array([[[1, 2], []], [None, [7]], [], None, [[8], [9, None]], [[1]]]),
    }
)
lines, tags = element("lines"), element("tags")


@pytest.mark.parametrize("writer", ["parquet", "orc"])
@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        # a list in a list's struct
        (col("orders").any(lines.any(element("n") > 5)), [0, 1]),
        (col("orders").any(lines.all(element("n") > 5)), [1]),
        (col("orders").all(lines.any(element("n") > 5)), [0, 2]),
        (col("orders").all(lines.all(element("n") > 5)), [1, 2]),
        (~col("orders").any(lines.any(element("n") > 8)), [0, 2]),
        (col("orders").any(lines.any((element("sku") == "xab") & (element("n") == 7))), [0]),
        (col("orders").any(lines.any((element("sku") == "ab") & (element("n") == 7))), []),
        (col("orders").any(lines.any(element("n") > col("few"))), [0, 1, 5]),
        (col("orders").any((element("id") == 3) & lines.any(element("n") == 9)), [1]),
        (col("orders").any((element("id") == 2) & lines.any(element("n") == 9)), []),
        (col("orders").any(lines.length() == 0), [1]),
        (col("orders").any(lines.is_null()), [4, 5]),
        (col("orders").any(lines.get(0).is_null() & element("id").is_not_null()), [1, 4]),
        (col("orders").any(tags.get(1) == "Tin"), [4]),
        (col("orders").any(tags.any(element().lower() == "tin")), [0, 4]),
        (col("orders").any(col("names").any(element() == "Bo")), [0]),
        (col("orders").any(col("orders").length() == element("id")), [0, 1]),
        # the tests of text without a predicate
        (col("names").any().contains("b"), [0, 1, 4]),
        (col("names").all().contains("b"), [1, 2]),
        (~col("names").any().contains("b"), [2, 5]),
        (~col("names").all().contains("b"), [0, 5]),
        (col("names").any().ends_with("b"), [1, 4]),
        (col("names").any().ilike("A%"), [0, 4]),
        (col("names").any().like("_b%"), [0, 4]),
        (col("names").any().like("x!%", escape="!"), [5]),
        (col("names").all().matches("^[bx]"), [1, 2, 5]),
        (col("orders.tags").any().contains("t"), [0, 5]),
        (col("orders.tags").any() == "rust", [5]),
        (col("orders.tags").all().ilike("%t%"), [2]),
        (col("orders.lines.sku").any().ends_with("ab"), [0]),
        (col("orders.lines.n").any() > col("few"), [0, 1, 5]),
        (col("by.key").any().contains("k"), [0, 4]),
        ("any(names) like '%b%'", [0, 1, 4]),
        ("all(names) ilike 'b%'", [1, 2]),
        ("any(names) not like '%b%'", [0, 5]),
        # one element of structs
        (col("orders").get(1).is_not_null(), [1]),
        (col("orders.id").get(0) == 2, [1]),
        (col("orders.id").get(0) + 1 == 5, [4]),
        (col("orders.lines").get(0).length() == 2, [0, 5]),
        (col("rows").get(1).length() == 2, [4]),
        (col("by.v").get("k") == 3, [4]),
        (col("by").get("k").is_null(), [1, 2, 3, 5]),
        ("orders[1].id = 2", [1]),
        ("by['k'].v < 3", [0]),
    ],
    ids=repr,
)
def test_lists_in_elements_and_texts(predicate: Any, rows: list[int], writer: Any) -> None:
    data = written(NESTED.append_column("row", pa.array(range(6))), writer, [6])
    found = fs.scan(data).filter(predicate).select("row").to_arrow()
    assert found.column("row").to_pylist() == rows
