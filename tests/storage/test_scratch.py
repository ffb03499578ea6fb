"""Leased memory is used again once nobody refers to it, and never before.

The oracle is a stamp: every buffer is filled with a byte of its own, and must keep it for as long
as somebody holds the buffer.
"""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fretsaw.storage import buffer_pool

KB, MB = 1 << 10, 1 << 20
SMALL = 64 * KB
KEPT = 128 * MB


@pytest.fixture(autouse=True)
def _nothing_leased_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_pool, "FREE", [])


def stamp(buffer: pa.Buffer, byte: int) -> pa.Buffer:
    """The buffer, filled."""
    np.frombuffer(buffer, np.uint8)[:] = byte
    return buffer


def stamps(buffer: Any) -> list[int]:
    """The different bytes that a buffer holds."""
    found: list[int] = np.unique(np.frombuffer(buffer, np.uint8)).tolist()
    return found


def overlap(one: pa.Buffer, other: pa.Buffer) -> bool:
    shared = min(one.address + one.size, other.address + other.size)
    return bool(shared > max(one.address, other.address))


def address(*sizes: int) -> int:
    """Where the first of some buffers lies that are leased together and given back."""
    with buffer_pool.lease() as allocate:
        places = [buffer.address for buffer in [allocate(size) for size in sizes]]
    return int(places[0])


def test_buffers_have_the_size_asked_for_and_can_be_written() -> None:
    sizes = [0, 1, 63, SMALL - 1, SMALL, SMALL + 1, MB + 7]
    for _ in range(3):
        with buffer_pool.lease() as allocate:
            buffers = [stamp(allocate(size), place) for place, size in enumerate(sizes)]
            assert [buffer.size for buffer in buffers] == sizes
            assert [stamps(b) for b in buffers] == [[p] if s else [] for p, s in enumerate(sizes)]
            assert all(buffer.is_mutable for buffer in buffers)
            del buffers


def test_memory_is_used_again() -> None:
    address(MB, MB)  # the first lease tells how much is needed
    address(MB, MB)  # the memory may move once
    assert len({address(MB, MB), address(MB), address(MB // 2, SMALL), address(2 * MB)}) == 1


def test_small_buffers_are_fresh() -> None:
    address(4 * MB)
    with buffer_pool.lease() as allocate:
        leased = stamp(allocate(MB), 1)
        small = [stamp(allocate(SMALL - 1), 2), stamp(allocate(7), 3), allocate(0)]
        following = stamp(allocate(MB), 4)
        # Nothing was given out between the two.
        assert following.address - leased.address == MB
        assert not any(overlap(one, other) for one in small for other in (leased, following))
        del leased, following
    again = address(4 * MB)
    assert all(not again <= buffer.address < again + 4 * MB for buffer in small)


REFERENCES: dict[str, Callable[[pa.Buffer], Any]] = {
    "buffer": lambda buffer: buffer,
    "slice": lambda buffer: buffer.slice(MB - 3, 3),
    "array": lambda buffer: np.frombuffer(buffer, np.uint8)[5:9],
    "view": lambda buffer: memoryview(buffer)[100:],
    "Arrow array": lambda buffer: pa.Array.from_buffers(pa.uint8(), 10, [None, buffer]).slice(3),
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_memory_that_somebody_refers_to_stays_as_it_is(kind: str) -> None:
    address(MB)
    with buffer_pool.lease() as allocate:
        kept = REFERENCES[kind](stamp(allocate(MB), 7))
    for byte in range(5):
        with buffer_pool.lease() as allocate:
            stamp(allocate(MB), 100 + byte)
    assert stamps(kept.to_numpy() if kind == "Arrow array" else kept) == [7]


def test_memory_that_was_kept_is_not_given_out_later() -> None:
    address(MB)
    with buffer_pool.lease() as allocate:
        kept = stamp(allocate(MB), 1)
    addresses = {address(MB) for _ in range(4)}
    assert not any(kept.address <= place < kept.address + MB for place in addresses)
    assert stamps(kept) == [1]


def test_buffers_of_one_lease_do_not_share_bytes() -> None:
    for _ in range(3):
        with buffer_pool.lease() as allocate:
            sizes = [SMALL, SMALL + 1, MB, SMALL + 63, SMALL + 65, 3 * MB]
            buffers = [stamp(allocate(size), byte) for byte, size in enumerate(sizes)]
            assert [stamps(buffer) for buffer in buffers] == [[byte] for byte in range(len(sizes))]
            del buffers


def test_nested_leases_do_not_share_bytes() -> None:
    for _ in range(3):
        with (
            buffer_pool.lease() as outer,
            buffer_pool.lease() as inner,
            buffer_pool.lease() as innermost,
        ):
            leases = [outer, inner, innermost, outer, inner, innermost]
            buffers = [stamp(allocate(MB), byte) for byte, allocate in enumerate(leases)]
            assert [stamps(buffer) for buffer in buffers] == [[byte] for byte in range(6)]
            del buffers


def test_leases_of_several_threads_do_not_share_bytes() -> None:
    workers, turns = 6, 60
    together = threading.Barrier(workers)
    flaws: list[object] = []

    def work(byte: int) -> None:
        together.wait()
        kept = []
        for turn in range(turns):
            with buffer_pool.lease() as allocate:
                buffers = [stamp(allocate(SMALL * (1 + (byte + turn) % 3)), byte) for _ in "ab"]
                if turn % 7 == byte:
                    kept.append(buffers[0])
                flaws.extend(found for b in buffers if (found := stamps(b)) != [byte])
                del buffers
            if turn % 5 == 0:
                buffer_pool.release()
        flaws.extend(found for buffer in kept if (found := stamps(buffer)) != [byte])

    threads = [threading.Thread(target=work, args=(byte,)) for byte in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert flaws == []


def test_leases_grow_to_what_is_asked_for() -> None:
    for size in (SMALL, MB, 5 * MB, 2 * MB):
        address(size, size)
        with buffer_pool.lease() as allocate:
            one, two = stamp(allocate(size), 1), stamp(allocate(size), 2)
            assert two.address - one.address == size  # both out of the one memory
            assert (stamps(one), stamps(two)) == ([1], [2])
            del one, two


def test_no_lease_keeps_more_than_its_limit() -> None:
    """What lies behind the limit is fresh; all of it can be used."""
    limit = 128 * MB
    for _ in range(2):
        with buffer_pool.lease() as allocate:
            buffers = [allocate(100 * MB) for _ in range(3)]
            for byte, buffer in enumerate(buffers):
                np.frombuffer(buffer, np.uint8)[-KB:] = byte
            assert not any(overlap(buffers[i], buffers[j]) for i in range(3) for j in range(i))
            for byte, buffer in enumerate(buffers):
                assert stamps(buffer.slice(buffer.size - KB)) == [byte]
            del buffers, buffer
        assert sum(lease.size for lease in buffer_pool.FREE) <= limit


@pytest.mark.parametrize("sizes", [[40] * 5, [100, 100], [60, 1, 90], [1] * 9], ids=str)
def test_release_keeps_little(sizes: list[int]) -> None:
    for _ in range(2):
        with ExitStack() as stack:
            leases = [stack.enter_context(buffer_pool.lease()) for _ in sizes]
            for allocate, size in zip(leases, sizes, strict=True):
                allocate(size * MB)
    assert sum(lease.size for lease in buffer_pool.FREE) == sum(sizes) * MB
    buffer_pool.release()
    kept = sum(lease.size for lease in buffer_pool.FREE)
    assert kept <= KEPT
    assert kept == sum(sizes) * MB or sum(sizes) * MB > KEPT  # what is little stays
    with buffer_pool.lease() as allocate:
        assert stamps(stamp(allocate(MB), 9)) == [9]


def test_what_is_leased_at_the_moment_outlives_a_release() -> None:
    address(100 * MB)
    with buffer_pool.lease() as allocate:
        buffer = stamp(allocate(MB), 3)
        buffer_pool.release()
        address(MB)
        assert stamps(buffer) == [3]


def test_errors_inside_a_lease_do_no_harm() -> None:
    address(MB)
    kept: list[pa.Buffer] = []

    def fail(byte: int) -> None:
        with buffer_pool.lease() as allocate:
            kept.append(stamp(allocate(MB), byte))
            raise OSError("no such luck")

    for byte in range(4):
        with pytest.raises(OSError, match="no such luck"):
            fail(byte)
        with buffer_pool.lease() as allocate:
            stamp(allocate(MB), 200)
    assert [stamps(buffer) for buffer in kept] == [[0], [1], [2], [3]]
    address(MB)
    assert address(MB) == address(MB)


def test_an_error_that_holds_on_to_a_buffer_keeps_its_memory() -> None:
    """A traceback refers to the locals of the frames it went through."""
    address(MB)
    buffers: list[pa.Buffer] = []

    def fail() -> None:
        with buffer_pool.lease() as allocate:
            local = stamp(allocate(MB), 5)
            buffers.append(local.slice(0, 10))
            raise ValueError

    with pytest.raises(ValueError) as caught:  # noqa: PT011
        fail()
    with buffer_pool.lease() as allocate:
        stamp(allocate(MB), 6)
    assert stamps(buffers[0]) == [5]
    assert caught.value is not None


class Leases(RuleBasedStateMachine):
    """Any order of leases, buffers that live longer than they should, and releases.

    Limits are small here, so that all of them are reached.
    """

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        limits = {"FREE": [], "SMALL": 64, "LARGEST": 2_000, "KEPT": 1_000}
        for name, value in limits.items():
            self.patch.setattr(buffer_pool, name, value)
        address(900)  # the first lease has no memory yet
        self.leases: list[tuple[ExitStack, buffer_pool.Allocate]] = []
        self.buffers: list[tuple[pa.Buffer, int]] = []
        self.number = 0

    @rule()
    def begin(self) -> None:
        stack = ExitStack()
        self.leases.append((stack, stack.enter_context(buffer_pool.lease())))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), size=st.integers(0, 300) | st.sampled_from([63, 64, 65, 999, 2_001]))
    def allocate(self, data: st.DataObject, size: int) -> None:
        _, allocate = data.draw(st.sampled_from(self.leases))
        self.number = (self.number + 1) % 256
        self.buffers.append((stamp(allocate(size), self.number), self.number))
        assert self.buffers[-1][0].size == size

    @precondition(lambda self: self.buffers)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        self.buffers.pop(data.draw(st.integers(0, len(self.buffers) - 1)))

    @rule(sizes=st.lists(st.integers(64, 300), min_size=1, max_size=3), keep=st.booleans())
    def work(self, sizes: list[int], keep: bool) -> None:
        before = len(self.buffers)
        with buffer_pool.lease() as allocate:
            for size in sizes:
                self.number = (self.number + 1) % 256
                self.buffers.append((stamp(allocate(size), self.number), self.number))
            self.every_buffer_keeps_its_stamp()
            if not keep:
                del self.buffers[before:]

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), fails=st.booleans())
    def end(self, data: st.DataObject, fails: bool) -> None:
        stack, _ = self.leases.pop(data.draw(st.integers(0, len(self.leases) - 1)))
        if not fails:
            stack.close()
            return
        error = ValueError("the work failed")
        with pytest.raises(ValueError, match="the work failed"), stack:
            raise error

    @rule()
    def release(self) -> None:
        buffer_pool.release()
        assert sum(lease.size for lease in buffer_pool.FREE) <= 1_000

    @invariant()
    def every_buffer_keeps_its_stamp(self) -> None:
        for buffer, byte in self.buffers:
            assert stamps(buffer) == ([byte] if buffer.size else [])

    def teardown(self) -> None:
        self.buffers.clear()
        self.patch.undo()


Leases.TestCase.settings = settings(max_examples=100, stateful_step_count=30)
TestLeases = pytest.mark.slow(Leases.TestCase)
