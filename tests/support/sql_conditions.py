"""Conditions as people write them, on odd data, for every part of SQL that the contract lists."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

NAN, INF = float("nan"), float("inf")
START = dt.datetime(2024, 2, 29, 13, 14, 15, 123456)
TIMES = [
    *(
        START,
        dt.datetime(2023, 12, 31, 23, 59),
        None,
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    ),
    *(dt.datetime(1970, 1, 1), dt.datetime(2024, 1, 1), dt.datetime(2024, 3, 3, 3, 3, 3)),
    *(dt.datetime(1900, 1, 1), dt.datetime(2100, 6, 15, 12), dt.datetime(2024, 2, 28, 1)),
]
PRICES = ["0.10", "1.55", "-2.45", "10.00", None, "0.00", "99.99", "-0.01", "5.00", "3.00"]

TABLE = pa.table(
    {
        "n": pa.array(range(10), pa.int32()),
        "i": pa.array([0, 1, -1, 7, -7, None, 12, 100, -100, 3], pa.int64()),
        "j": pa.array([1, 0, 3, -2, 2, 5, None, 7, 7, 3], pa.int32()),
        "k": pa.array([2, 3, -3, 4, 5, 7, 8, None, -7, 1], pa.int64()),
        "big": pa.array([2**62, 2**53 + 1, 0, -(2**62), 1, None, 2, 3, 4, 5], pa.int64()),
        "u8": pa.array([1, 255, None, 2, 3, 5, 7, 8, 9, 10], pa.uint8()),
        "u64": pa.array([2**64 - 1, 2**63, 0, 1, None, 2, 3, 4, 5, 6], pa.uint64()),
        "f": pa.array([0.5, -0.5, 2.5, 3.5, NAN, None, INF, -INF, 1e10, 3.0], pa.float64()),
        "g": pa.array([1.5, 2.0, None, 0.25, 4.0, 8.0, -2.5, 3.0, 1.0, 3.0], pa.float64()),
        "z": pa.array([0.0, -0.0, 1.0, -1.0, None, 0.0, -0.0, NAN, 2.0, 0.1], pa.float64()),
        "r": pa.array([0.1, 0.2, None, 0.5, 1e-45, 3e38, -0.0, NAN, 16777216.0, 3.0], pa.float32()),
        "d": pa.array([x and Decimal(x) for x in PRICES], pa.decimal128(9, 2)),
        "e": pa.array(
            [Decimal(x) for x in (0, 1, 1, -1, 2, 3, 4, 5, 2, "0.10")], pa.decimal128(9, 2)
        ),
        "s": ["abc", "ABC", "a_c", "a%c", "", None, " pad ", "Äpfel", "zebra\nline", "abcabc"],
        "t": ["abc", "abc", "a", "c", "", "x", " ", "äpfel", "line", "abc"],
        "num": ["5", "-3", "1.5", "abc", "", None, "007", "12", "1e3", "100"],
        "w": ["\ttab\n", "Straße", "STRASSE", "🎸", "é", "e\u0301", None, "\u212a", "x ", " x"],
        "ts": pa.array(TIMES, pa.timestamp("us")),
        "utc": pa.array(TIMES, pa.timestamp("us", "UTC")),
        "day": pa.array(
            [
                *(dt.date(2024, 2, 29), dt.date(2023, 12, 31), dt.date(2000, 1, 1), None),
                *(dt.date(1970, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 3, 4)),
                *(dt.date(1900, 1, 1), dt.date(2100, 1, 1), dt.date(2024, 2, 28)),
            ],
            pa.date32(),
        ),
        "b": pa.array([True, False, None, True, False, True, None, False, True, True]),
        "xs": pa.array(
            [[1, 2], [], None, [3], [None], [1, None], [5, 6, 7], [2], [1, 1], [3, 2, 1]],
            pa.list_(pa.int32()),
        ),
        "m": pa.array(
            [
                *([("k", 1)], [], None, [("k", None)], [("a", 1), ("k", 2)], [("", 3)], [("K", 1)]),
                *([("k", -1)], [("b", 1)], [("k", 1)]),
            ],
            pa.map_(pa.string(), pa.int64()),
        ),
        "p": pa.array(
            [None if row == 4 else {"x": row, "y": f"y{row}"} for row in range(10)],
            pa.struct([("x", pa.int32()), ("y", pa.string())]),
        ),
    }
)

CONDITIONS = """
i > 1
1 >= i
i = '5'
i in ('7', 1, null)
i not in (7, null)
i not in (7, 1)
i between -1 and 3
i not between -1 and 3
not (i between -1 and 3)
i between 3 and -1
i != 7 or i is null
i <> 7
i < 99999999999999999999
i > -99999999999999999999
i = 1.5
i < 1.5
i >= 0.5
i = 7.0
i == 7
i < j
i = j
i != j
i <= f
f > i
f = g
f < g
f >= g
d > i
d = j
d < f
big > f
big = 9007199254740993
big = 9007199254740992.0
j < big
i + j = 1
i - j > 0
i * j < 0
i + 1 > j * 2
-i > 5
-f < 0
-d > 0
- (i + j) < 0
i / k > 1
i / 2 = 3.5
f / g > 1
d / k > 1
i / j > 1
f / 0 > 0
i / 0 > 0
i // k = 0
i // 2 = -3
i % 2 = -1
i % k = 1
mod(i, 2) = -1
f % 2 = 0.5
g % 2 = 1
d % 1 = 0.55
i % 0 is null
i // 0 is null
d + 1 > 2.5
d * 2 = 3.10
d - d = 0
d + d > 3
d * d > 2
d = 0.1
d in (-2.45, '0.10')
d >= 0.1 and d < 1.56
i + 0.5 > j
i * 1.5 = 10.5
f + i > 2
i - 1 < 0
1 - i < 0
2 * i >= 14
f - f = 0
(i + j) * 2 > (i - j)
f > 0.5 + 1
2 + 3 * 4 = 14
i = 0x7
i > 0x0A
i > 1e1
abs(i) = 7
abs(f) = 0.5
abs(d) > 2
abs(i - j) > abs(j)
round(f) = 3
round(f) = 2
round(f) = -1
round(g) = 3
round(g, 1) = 1.5
round(g, 1) = 0.3
round(d, 1) = 1.6
round(d, 1) = -2.5
round(d) = 0
round(i, -1) = 10
round(i, -1) = -10
z = 0
z = 0.0
z < 0
z <= 0
z > 0
z != 0
z in (0)
z = 0.1
z > 1
z < 1
not z > 1
z = 'nan'
z >= 'nan'
isnan(z)
not isnan(z)
isnan(f) or f > 1e9
r = 0.1
r > 0.1
r = 16777217
r = 0.2 or r = 3
i is distinct from j
i is not distinct from j
i is distinct from null
i is not distinct from null
f is distinct from f
z is distinct from 0
coalesce(i, j) > 4
coalesce(i, 0) = 0
coalesce(s, t) = 'x'
coalesce(i, j, 1) = 5
nullif(i, 7) is null
nullif(s, '') is null
case when i > 0 then j else i end = 7
case when i > j then i end = 7
case j when 7 then i when 3 then 0 end = 0
case when b then i else j end > 2
case when i is null then 'none' when i > 0 then 'up' else 'down' end = 'up'
cast(i as double) = 7.0
cast(j as bigint) = i
cast(i as varchar) = '7'
cast(i as string) like '%0%'
cast(g as bigint) = 2
cast(g as int) = 1
cast(d as int) = 1
cast(d as double) > 1.5
cast(b as int) = 1
try_cast(num as int) = 5
try_cast(num as bigint) is null
try_cast(num as double) = 1.5
try_cast(num as int) > 10
try_cast(f as int) = 3
cast('2024-02-29' as date) = day
cast(day as timestamp) <= ts
cast(ts as date) = day
cast(day as varchar) = '2024-02-29'
i::double > f
i::varchar = '7'
s = 'abc'
s >= 'a'
s < 'b'
s = t
s < t
s >= t
s in ('abc', 'Äpfel', '')
s not in ('abc', '')
s between 'a' and 'b'
s like 'a%c'
s like 'a_c'
s like '%'
s like ''
s like '_'
s like '%b%'
s like '%line'
s like 'zebra%'
s like '%a%c%'
s like '__c'
s like 'a!%c' escape '!'
s like 'a!_c' escape '!'
s not like 'a%'
s ilike 'ABC'
s ilike '%B%'
s not ilike 'a%'
s ilike 'äpfel'
w ilike 'k'
w ilike 'straße'
regexp_matches(s, '^a')
regexp_matches(s, 'b|z')
regexp_matches(s, '[A-Z]{3}')
regexp_matches(s, 'c$')
regexp_like(s, '^a')
s ~ 'b'
s || t = 'abcabc'
s || '!' like '%c!'
s || t is null
lower(s) = 'abc'
upper(s) = 'ABC'
lower(s) = t
upper(t) = s
lower(s) in ('abc', 'äpfel')
upper(w) = 'STRASSE'
lower(w) = 'k'
trim(s) = 'pad'
trim(w) = 'x'
length(s) = 3
length(s) > length(t)
length(s || t) = 6
length(trim(s)) between 1 and 3
length(w) = 1
char_length(s) = 3
starts_with(s, 'a')
startswith(s, 'a')
contains(s, 'b')
contains(s, '')
not contains(s, 'c')
ends_with(s, 'c')
endswith(s, 'c')
day = '2024-02-29'
day > DATE '2024-02-28'
day between '2024-02-28' and DATE '2024-03-01'
day in ('2024-02-29', '1970-01-01')
ts = '2024-01-01'
ts = '2024-02-29 13:14:15.123456'
ts >= TIMESTAMP '2024-02-28 01:00:00'
ts < '2024-02-29'
ts >= DATE '2024-02-29'
utc = '2024-01-01 00:00:00'
utc > TIMESTAMP '2024-01-01 00:00:00'
ts < day
ts >= day
ts = day
year(ts) = 2024
month(ts) = 12
day(ts) = 29
hour(ts) = 23
minute(ts) = 59
second(ts) = 15
year(day) < 2000
month(day) = 2
day(day) = 1
hour(utc) = 13
isodow(ts) = 4
extract(year from ts) = 1969
extract(month from day) = 1
extract(hour from ts) >= 12
extract(isodow from day) = 7
extract(second from ts) = 15
date(ts) = day
date_trunc('year', ts) = timestamp '2024-01-01'
date_trunc('month', ts) < ts
date_trunc('day', ts) = ts
date_trunc('hour', ts) = ts
date_trunc('second', ts) < ts
date_trunc('quarter', ts) = timestamp '2024-01-01'
date_trunc('month', day) = day
date_trunc('week', day) = day
ts + interval 1 day > day
ts - interval '1 hour' < day
ts - interval 90 minute > timestamp '2024-01-01'
ts + interval '1' day > timestamp '2024-03-01'
ts > timestamp '2024-01-01' + interval 1 month
day + interval 1 day > ts
day - interval 1 day < ts
day > date '2024-03-31' - interval 1 month
day < current_date
day > current_date + interval 10 year
b
not b
b and i > 0
b or i > 0
b = true
b = (true)
b != false
b is true
b is not true
b is false
b is null
true
false
1 = 1
i is null
i is not null
i + j is null
i + j is not null
not (i < j)
not (i + j = 1) and b
i < j or s = t
i > 0 and s like 'a%' or f < 0
not (i > 0 or f < 0) and day is not null
not not i > 0
i in (j, 7)
i not in (j, 7)
j in (i)
i between j and 10
xs[1] = 1
xs[1] is null
xs[4] is null
list_contains(xs, 1)
not list_contains(xs, 1)
array_contains(xs, 1)
not array_contains(xs, 1)
length(xs) = 2
len(xs) = 2
m['k'] = 1
m['k'] is null
p.x > 3
p.y = 'y3'
p.x is null
p is null
xs is null
m is not null
microsecond(ts) = 123456
extract(microsecond from ts) = 123456
g // 2 = 1
try_cast(g as bigint) = 2
case when f > -1 and f < 5 then cast(f as bigint) end = 3
z in (0.0, 1)
z between 0 and 0
z is not distinct from 0.0
coalesce(b, false)
not coalesce(b, true)
xs[1] + 1 = 2
m['a'] > 0
m['k'] + 1 = 2
lower(p.y) = 'y3'
p.x + 1 = j
big + 1 > big
big * 1 = big
big - i > 0
u8 + 1 = 256
u8 - 1 >= 0
u64 > i
u64 = 18446744073709551615
u64 > 9223372036854775807
d % 0.1 = 0
e = z
e < z
e >= i
e + z > 1
e * f > 2
d // 0.1 = 1
d // 2 = 1
z = -0.0
z in (-0.0, 7)
trim(w) = 'tab'
ts - timestamp '2024-01-01' > interval 10 day
coalesce(b, i > 0)
(i > 0) is true
(i > 0) is null
(i > j) = true
(i > 0) is not true
b = (i > 0)
""".strip().splitlines()
