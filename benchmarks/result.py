"""What a workload came to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.ours import OWN, Fretsaw

OURS = Fretsaw.name
FAILED = "FAILED:"
OTHER_ROWS = "WRONG: other rows than the first peer returns"


@dataclass(frozen=True, slots=True)
class Reads:
    """What fretsaw read, and the fewest bytes with which it could have been done."""

    requests: int
    bytes_read: int
    bytes_needed: int

    @property
    def ratio(self) -> float:
        """Bytes read over the fewest possible."""
        return self.bytes_read / self.bytes_needed


@dataclass(frozen=True, slots=True)
class Result:
    """What one workload came to: the best seconds of each contestant, and why some have none."""

    name: str
    what: str
    goal: float
    """The ratio to reach, or seconds if `goal_in_seconds`."""
    seconds: Mapping[str, float]
    contestants: Sequence[str]
    """Everybody who takes part, in the order of the table."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    reads: Reads | None = None
    limit: float | None = None
    """Seconds that decompression alone takes, see `limit`."""
    goal_in_seconds: bool = False
    bytes_read: Mapping[str, int] = field(default_factory=dict)
    """What each contestant read, where that is known of the peers too: on Spark."""

    @property
    def ratio(self) -> float | None:
        """fretsaw's time over that of the best peer."""
        peers = [seconds for name, seconds in self.seconds.items() if name not in OWN]
        if OURS not in self.seconds or not peers:
            return None
        return self.seconds[OURS] / min(peers)

    @property
    def to_limit(self) -> float | None:
        """fretsaw's time over that of decompression alone."""
        if self.limit is None or OURS not in self.seconds:
            return None
        return self.seconds[OURS] / self.limit

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None if there is nothing to hold against it."""
        reached = self.seconds.get(OURS) if self.goal_in_seconds else self.ratio
        return None if reached is None else reached <= self.goal

    @property
    def wrong(self) -> bool:
        """Whether anybody failed, or returned other rows than the first peer."""
        return any(reason.startswith((FAILED, OTHER_ROWS)) for reason in self.left_out.values())
