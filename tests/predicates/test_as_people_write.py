"""Conditions as people write them: each finds rows, or has an error that says where and what."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.sql_conditions import TABLE
from tests.support.sql_engines import by_duckdb

WRITTEN = r"""
s like t
concat(s, t) = 'abcabc'
ltrim(w) = 'x'
rtrim(w) = 'x'
substr(s, 1, 1) = 'a'
left(s, 2) = 'ab'
replace(s, 'a', 'b') = 'bbc'
reverse(s) = 'cba'
dayofweek(day) = 4
quarter(ts) = 1
date_part('year', ts) = 2024
ts < current_timestamp
b = (i > 0)
cardinality(xs) = 2
greatest(i, j) = 7
least(i, j) = -7
if(i > 0, 1, 0) = 1
sqrt(g) = 2
floor(f) = 2
ceil(f) = 4
power(i, 2) = 49
sign(i) = -1
i & 1 = 1
i ^ 2 = 5
log(g) > 0
i =
i = 1 and
and i = 1
i = = 1
i === 1
i = 1;
i = 1; drop table x
select * from t
i = 1 -- comment
i = 1 /* c */
(i = 1
i = 1)
i = 'abc
i = "abc"
s = "abc"
s = abc
i = NULL
i != null
i is 5
i is nan
f is nan
f = nan
f = NaN
f = inf
f = 'inf'
f < infinity
i in ()
i in 5
i in (1,2
i in (select 1)
exists (select 1)
count(*) > 1
sum(i) > 5
max(i) = i
row_number() over () = 1
i between 1
i between 1, 5
i between 5 and
not
true and
1
'abc'
i
i + 1
b + 1 = 2
s + t = 'abcabc'
s + 1 = 2
s - t = 1
i || j = '12'
i * s = 1
day + 1 > day
ts + 1 > ts
ts - day > 1
day - day = 0
ts > 5
ts > '2024-13-01'
ts > 'yesterday'
day > '2024-02-30'
day > '01/02/2024'
ts > '2024-01-01T00:00:00'
ts > '2024-01-01T00:00:00Z'
utc > '2024-01-01T00:00:00+02:00'
utc > '2024-01-01 00:00:00 Europe/Berlin'
day > today()
day > now()
ts > now() - interval 1 day
ts > current_timestamp - interval '7 days'
ts > interval 1 day
ts + interval 1 month > ts
ts + interval '1 fortnight' > ts
i > 1_000
i > 1,000
i > .5
i > 5.
i > +1
i > --1
i > - 1
i > 1e400
i = 99999999999999999999999999999
s like 'a\_c'
s like 'a!' escape '!'
s like 5
s like null
s rlike '^a'
s regexp '^a'
s similar to 'a%'
s glob 'a*'
s ~* 'A'
s !~ 'a'
regexp_matches(s, '(')
regexp_matches(s, '(?<=a)b')
s = 'it''s'
s = 'it\'s'
s = ''
lower(s, t) = 'a'
lower() = 'a'
lower(i) = 'a'
round(s) = 1
round(i, 'a') = 1
year(s) = 2024
year(i) = 2024
cast(i as foo) = 1
cast(i as) = 1
cast(s as int) = 1
try_cast(s as foo) = 1
i::foo = 1
coalesce() = 1
coalesce(i, s) = 1
case when i > 1 then 2
case when i then 1 else 2 end = 1
case i when 1 then 'a' else 2 end = 'a'
extract(foo from ts) = 1
extract(year from s) = 1
date_trunc('foo', ts) = ts
date_trunc('day', s) = s
xs[0] = 1
xs[-1] = 3
xs['a'] = 1
m[1] = 1
m.k = 1
p['x'] = 1
p.z = 1
xs = 1
xs > 1
xs.element > 1
any(xs) > 1
any(i) > 1
all(xs) > 1
1 = any(xs)
any(xs > 1)
list_contains(xs, 'a')
list_contains(i, 1)
unnest(xs) = 1
nope = 1
I = 7
"I" = 7
`i` = 7
[i] = 7
t.i = 7
i = :x
i = ?
i = $1
i = @x
isnull(i)
i isnull
i notnull
ifnull(i, 0) = 0
nvl(i, 0) = 0
iif(i > 0, 1, 0) = 1
decode(i, 1, 2) = 2
date '2024-01-01' = day
day = date('2024-02-29')
day = to_date('2024-02-29')
strftime(ts, '%Y') = '2024'
to_char(ts, 'YYYY') = '2024'
datediff(day, ts) > 1
date_add(day, 1) > day
dateadd(day, 1, ts) > ts
i xor j
i and j
i or b
b and 1
!b
i <=> j
i = 1 && j = 2
i = 1 || j = 2
i > 1 AND s IS NOT NULL or NOT b
i not null
i not = 1
not i = 1
i is not 5
is_nan(f)
isnan(i)
isfinite(f)
u64 - 1 >= 0
length(i) = 1
length(xs) > 1
upper(s) like 'A%'
s collate nocase = 'ABC'
i % 2
mod(i) = 1
é = 1
🎸 = 1
""".strip().splitlines()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "odd.parquet"
    pq.write_table(TABLE, path, row_group_size=3)
    return path


def found(file: Path, text: str) -> list[int] | str:
    """The rows, or the message of an error of ours; any other error is none to be read."""
    try:
        rows: list[int] = fs.scan(file).filter(text).select("n").to_arrow()["n"].to_pylist()
    except fs.PredicateSyntaxError as error:
        message, line, below = str(error).rsplit("\n", 2)
        assert below.strip() == "^", text
        assert below.index("^") <= len(line), text
        assert len(message) > 20, text
        return message
    except fs.FretsawError as error:
        message = str(error)
    else:
        return rows
    assert message.startswith(f"{file}: "), text
    return message


def test_each_finds_the_rows_of_duckdb_or_is_refused_in_words(file: Path) -> None:
    run = by_duckdb(TABLE)
    refused = 0
    for text in WRITTEN:
        rows = found(file, text)
        if isinstance(rows, str):
            refused += 1
        elif isinstance(theirs := run(text), list):
            assert rows == theirs, text
    assert len(WRITTEN) > 190
    assert refused > 100
