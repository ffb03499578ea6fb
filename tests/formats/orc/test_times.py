"""Times as microseconds reach from the year 1 to 9999; as nanoseconds the error says so."""

import datetime as dt
import zoneinfo
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyorc
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.kernels import each_decoder
from tests.support.orc_files import orc_bytes, pyarrow_orc, pyorc_bytes

pytestmark = each_decoder("fast")

FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)
SENTINELS = [FIRST, LAST, None, dt.datetime(2024, 2, 29, 1, 2, 3, 4), dt.datetime(1582, 10, 4)]


class AsStored(pyorc.converters.ORCConverter):
    """Times as pairs of seconds in UTC and nanoseconds."""

    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, timezone: Any) -> tuple[int, int]:
        return seconds, nanoseconds

    @staticmethod
    def to_orc(value: tuple[int, int], timezone: Any) -> tuple[int, int]:
        return value


def stored(kind: str, values: Sequence[Any], zone: str = "UTC", **options: Any) -> bytes:
    """A file of times given as pairs, by pyorc."""
    return pyorc_bytes(
        f"struct<n:bigint,t:{kind}>",
        enumerate(values),
        timezone=zoneinfo.ZoneInfo(zone),
        converters=dict.fromkeys(
            (pyorc.TypeKind.TIMESTAMP, pyorc.TypeKind.TIMESTAMP_INSTANT), AsStored
        ),
        **options,
    )


def pair(time: dt.datetime | None) -> tuple[int, int] | None:
    if time is None:
        return None
    since = time - dt.datetime(1970, 1, 1)
    return since.days * 86_400 + since.seconds, 1_000 * since.microseconds


@pytest.mark.parametrize("codec", ["zlib", "uncompressed"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp with local time zone"])
def test_sentinels_are_read_as_microseconds(kind: str, codec: str) -> None:
    data = stored(
        kind,
        [pair(time) for time in SENTINELS],
        compression=pyorc.CompressionKind[codec.upper()]
        if codec == "zlib"
        else pyorc.CompressionKind.NONE,
    )
    zone = dt.UTC if "local" in kind else None
    expected = [time and time.replace(tzinfo=zone) for time in SENTINELS]
    scan = fs.scan(data, timestamps="us")
    assert scan.schema.field("t").type == pa.timestamp("us", zone and "UTC")
    assert scan.to_arrow()["t"].to_pylist() == expected
    assert [row["t"] for row in scan.rows()] == expected
    assert scan.take([1, 0])["t"].to_pylist() == [expected[1], expected[0]]
    with fs.open(data, timestamps="us") as file:
        assert file.scan().to_arrow()["t"].to_pylist() == expected


def test_the_error_without_it_names_the_option() -> None:
    data = stored("timestamp", [pair(time) for time in SENTINELS])
    with pytest.raises(fs.FileFormatError, match=r'fs\.scan\(\.\.\., timestamps="us"\)'):
        fs.scan(data).to_arrow()
    with pytest.raises(ValueError, match="timestamps must be 'ns' or 'us', not 'ms'"):
        fs.scan(data, timestamps="ms")  # type: ignore[arg-type]


def test_times_inside_lists_maps_and_structs() -> None:
    kind = "array<struct<m:map<string,timestamp>>>"
    rows = [None if n % 5 == 4 else [({"a": pair(FIRST), "b": None},)] * (n % 3) for n in range(40)]
    data = stored(kind, rows, row_index_stride=10)
    expected = [
        None if n % 5 == 4 else [{"m": [("a", FIRST), ("b", None)]}] * (n % 3) for n in range(40)
    ]
    scan = fs.scan(data, timestamps="us")
    assert scan.to_arrow()["t"].to_pylist() == expected
    assert scan.skip(13).head(20).to_arrow()["t"].to_pylist() == expected[13:33]


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Europe/Dublin", "Asia/Kolkata"])
def test_times_of_any_zone_are_those_of_nanoseconds_where_both_reach(zone: str) -> None:
    rng = np.random.default_rng(len(zone))
    seconds = np.sort(rng.integers(-9_200_000_000, 9_200_000_000, 1_500))
    near = rng.integers(-90_000, 90_000, 300)
    values = [
        (int(second), int(rest))
        for second, rest in zip(
            np.concatenate([seconds, near]), rng.integers(0, 10**9, 1_800), strict=True
        )
    ]
    data = stored("timestamp", values, zone, row_index_stride=100)
    exact = pyarrow_orc(data)["t"].cast(pa.int64()).to_numpy() // 1_000
    found = fs.scan(data, timestamps="us").to_arrow()["t"].cast(pa.int64()).to_numpy()
    assert (found == exact).all()
    window = fs.scan(data, timestamps="us").skip(333).head(50).to_arrow()["t"]
    assert (window.cast(pa.int64()).to_numpy() == exact[333:383]).all()


def test_zones_beyond_nanoseconds_go_on_as_they_did() -> None:
    """Clocks change by rules that repeat after 400 years; before there were any, they stood."""
    cycle = 146_097 * 86_400
    summer = 1_719_792_000  # of 2024, in UTC
    values = [(summer + n * cycle, 0) for n in range(6)] + [(-60_000_000_000, 0)]
    data = stored("timestamp", values, "Europe/Berlin")
    found = fs.scan(data, timestamps="us").to_arrow()["t"].cast(pa.int64()).to_numpy() // 10**6
    ahead = found - [second for second, _ in values]
    assert ahead.tolist() == [7_200] * 6 + [3_600]


def test_predicates_prune_and_match_in_microseconds() -> None:
    times = [dt.datetime(1, 1, 1) + dt.timedelta(days=n * 365) for n in range(9_000)]
    data = stored("timestamp", [pair(time) for time in times], row_index_stride=500)
    condition = col("t").is_between(dt.datetime(8_000, 1, 1), dt.datetime(8_100, 1, 1))
    for indexes in (True, False):
        with fs.trace() as seen:
            scan = fs.scan(data, timestamps="us", indexes=indexes).filter(condition)
            found = scan.to_arrow()["t"].to_pylist()
        assert found == [
            t for t in times if dt.datetime(8_000, 1, 1) <= t <= dt.datetime(8_100, 1, 1)
        ]
        assert (seen.pages_decoded < 9) == indexes
    one = times[5_000]
    assert fs.scan(data, timestamps="us").filter(col("t") == one).count() == 1


def test_microseconds_cut_nanoseconds_off() -> None:
    table = pa.table({"t": pa.array([1_999, -1, 10**18 + 7_654], pa.timestamp("ns"))})
    data = orc_bytes(table)
    exact = pyarrow_orc(data)["t"].cast(pa.int64()).to_numpy()
    found = fs.scan(data, timestamps="us").to_arrow()["t"].cast(pa.int64()).to_numpy()
    assert (found == exact // 1_000).all()
