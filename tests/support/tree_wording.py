"""Expression trees as users write them: in Python, and as SQL text where that can say it."""

import datetime as dt
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

import fretsaw as fs
from tests.support.row_evaluator.calendar import EPOCH
from tests.support.row_evaluator.kinds import BOOL, Kind
from tests.support.row_evaluator.trees import Node


class Unsayable(Exception):
    """What one of the two ways of writing has no words for."""


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
NAIVE = dt.datetime(1970, 1, 1)


def moment(value: int) -> dt.datetime:
    return NAIVE + dt.timedelta(microseconds=value // 1000)


def python_literal(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    match kind.name:
        case "date":
            return dt.date.fromordinal(value + EPOCH)
        case "time":
            return moment(value).time()
        case "local":
            return moment(value)
        case "instant":
            return moment(value).replace(tzinfo=dt.UTC)
        case "duration":
            return dt.timedelta(microseconds=value // 1000)
    return value


def type_name(kind: Kind, sql: bool) -> str:
    match kind.name:
        case "int" if sql:
            names = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
            return ("" if kind.signed else "u") + names[kind.width]
        case "int":
            return f"{'' if kind.signed else 'u'}int{kind.width}"
        case "float":
            return {32: "real", 64: "double"}[kind.width] if sql else f"float{kind.width}"
        case "decimal":
            return f"decimal({kind.precision}, {kind.scale})"
        case "text":
            return "varchar" if sql else "string"
        case "date":
            return "date" if sql else "date32"
        case "local" if sql:
            return "timestamp"
    raise Unsayable(kind.name)


def arrow_type(kind: Kind) -> Any:
    """A type to cast to: its name, or for decimals, which have none, the type."""
    if kind.name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    return type_name(kind, False)


def as_python(node: Node) -> Any:
    """The tree as an expression of the library."""
    if node.op in ("distinct", "nullif", "try_cast"):
        raise Unsayable(node.op)
    if node.op == "null" and node.args[0].kind == BOOL and node.args[0].op != "column":
        raise Unsayable("a condition as a value")
    if node.op == "in" and not all(arg.is_literal for arg in node.args[1:]):
        raise Unsayable("columns in a list")
    if node.op == "literal":
        return python_literal(node.extra, node.kind)
    if node.op in ("column", "element"):
        path = ".".join(node.extra)
        return fs.col(path) if node.op == "column" else fs.element(path) if path else fs.element()
    if node.op == "fold":
        return python_fold(node)
    args: list[Any] = [as_python(arg) for arg in node.args]
    one = args[0]
    match node.op:
        case "and":
            return one & args[1]
        case "or":
            return one | args[1]
        case "not":
            return ~one
        case "compare" | "arithmetic" | "moved":
            return SIGNS[node.extra](one, args[1])
        case "negative":
            return -one
        case "between":
            return one.is_between(*args[1:])
        case "in":
            return one.is_in(args[1:])
        case "null":
            return one.is_null() if node.extra else one.is_not_null()
        case "nan":
            return one.is_nan()
        case "coalesce":
            return fs.coalesce(*args)
        case "when":
            chain: Any = fs
            for test, value in zip(args[:-1:2], args[1:-1:2], strict=True):
                chain = chain.when(test).then(value)
            return chain.otherwise(args[-1])
        case "cast":
            return one.cast(arrow_type(node.kind))
        case "like":
            pattern, escape, any_case = node.extra
            return (one.ilike if any_case else one.like)(pattern, escape)
        case "part":
            return getattr(one, node.extra)()
    method = getattr(one, node.op)
    return method() if node.extra is None else method(node.extra)


def python_fold(node: Node) -> Any:
    listed, test = node.args
    fold, style = node.extra
    if style == "contains":
        raise Unsayable(style)
    if style == "each":
        return getattr(as_python(listed), fold)(as_python(test))
    path = ".".join((*listed.extra, *test.args[0].extra))
    value = as_python(test.args[1])
    return SIGNS[test.extra](getattr(fs.col(path), fold)(), value)


# SQL


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def sql_literal(value: Any, kind: Kind) -> str:
    if value is None:
        return "NULL"
    plain = python_literal(value, kind)
    match kind.name:
        case "bool":
            return str(value).upper()
        case "text":
            return quoted(value)
        case "date":
            return f"DATE '{plain}'"
        case "time":
            return f"TIME '{plain}'"
        case "local":
            return f"TIMESTAMP '{plain}'"
        case "instant":
            return f"TIMESTAMPTZ '{plain}'"
        case "duration":
            return interval(value)
        case "float" | "decimal" | "int":
            return number(value)
    raise Unsayable(kind.name)


def number(value: Any) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        raise Unsayable("not a finite number")
    text = f"{value:f}" if isinstance(value, Decimal) else repr(value)
    return f"({text})" if text.startswith("-") else text


def interval(value: int) -> str:
    for unit, length in (("DAY", 86_400), ("HOUR", 3600), ("MINUTE", 60), ("SECOND", 1)):
        count, rest = divmod(value, length * 10**9)
        if not rest:
            return f"INTERVAL '{count}' {unit}"
    raise Unsayable("a fraction of a second")


FUNCTIONS = {
    "strip": "trim",
    "nan": "isnan",
    "matches": "regexp_matches",
    "truncate": "date_trunc",
}


def as_sql(node: Node) -> str:
    """The tree as a condition."""
    match node.op:
        case "literal":
            return sql_literal(node.extra, node.kind)
        case "column":
            return ".".join(f'"{name}"' if name in ("at", "on") else name for name in node.extra)
        case "fold" if node.extra[1] == "contains":
            return f"list_contains({as_sql(node.args[0])}, {as_sql(node.args[1].args[1])})"
        case "fold" if node.extra[1] == "plain":
            listed, test = node.args
            path = ".".join((*listed.extra, *test.args[0].extra))
            return f"({node.extra[0]}({path}) {sql_sign(test.extra)} {as_sql(test.args[1])})"
        case "fold" | "element":
            raise Unsayable(node.op)
    args = [as_sql(arg) for arg in node.args]
    one = args[0]
    match node.op:
        case "and" | "or":
            return f"({one} {node.op} {args[1]})"
        case "not":
            return f"(not {one})"
        case "compare" | "arithmetic" | "moved":
            sign = "||" if node.kind.name == "text" else sql_sign(node.extra)
            return f"({one} {sign} {args[1]})"
        case "negative":
            return f"(- {one})"
        case "between":
            return f"({one} between {args[1]} and {args[2]})"
        case "in":
            return f"({one} in ({', '.join(args[1:])}))"
        case "null":
            return f"({one} is {'' if node.extra else 'not '}null)"
        case "distinct":
            return f"({one} is {'not ' if node.extra else ''}distinct from {args[1]})"
        case "when":
            pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
            whens = " ".join(f"when {test} then {value}" for test, value in pairs)
            return f"(case {whens} else {args[-1]} end)"
        case "cast" | "try_cast":
            return f"{node.op}({one} as {type_name(node.kind, True)})"
        case "like":
            pattern, escape, any_case = node.extra
            word = "ilike" if any_case else "like"
            return (
                f"({one} {word} {quoted(pattern)}{f' escape {quoted(escape)}' if escape else ''})"
            )
        case "part":
            return f"{'isodow' if node.extra == 'weekday' else node.extra}({one})"
        case "get":
            key = quoted(node.extra) if isinstance(node.extra, str) else node.extra + 1
            return f"{one}[{key}]"
        case "truncate":
            return f"date_trunc({quoted(node.extra)}, {one})"
    if node.extra is not None:
        args.append(str(node.extra) if isinstance(node.extra, int) else quoted(node.extra))
    listed_args = ", ".join(args)
    return f"{FUNCTIONS.get(node.op, node.op)}({listed_args})"


def sql_sign(sign: str) -> str:
    return "=" if sign == "==" else sign
