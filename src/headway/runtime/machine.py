"""The machine that this process is on, looked at now and then (D-8)."""

from collections.abc import Iterable
from typing import Protocol

from headway.model.time import Instant
from headway.model.value import Value
from headway.model.views import LaneView
from headway.model.worker import LaneLoad, Snapshot

_MOST_LANES = 100
"""Lanes can be made at any time; a snapshot has so many of them, the fullest."""
_GUEST = ("guest", "guest_nice")
"""Times that are counted twice: also as the time of the user who has the guest."""
_AT_REST = ("idle", "iowait")


class Load(Value, frozen=True):
    """How busy a machine is."""

    cpu: float
    """Percent of all cores that were in use since the look before."""
    cores: int
    memory_used: int
    memory_total: int
    load: float


class Gauge(Protocol):
    """Looks at a machine. Tests have one of their own."""

    def look(self) -> Load: ...


class Machine:
    """Reads what the system counts. One look takes a tenth of a millisecond, so it needs no thread."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None
        """How long all cores together have worked, and been there, at the look before."""

    def look(self) -> Load:
        """The first look says nothing yet about the cores: with the next one some time has passed."""
        import psutil  # noqa: PLC0415 - takes longer to load than a short program may want to

        memory = psutil.virtual_memory()
        return Load(
            cpu=self._cpu(psutil.cpu_times()._asdict()),
            cores=psutil.cpu_count() or 1,
            memory_used=memory.total - memory.available,
            memory_total=memory.total,
            load=round(psutil.getloadavg()[0], 2),
        )

    def _cpu(self, times: dict[str, float]) -> float:
        """Counted by ourselves: psutil's own percentage is since whoever asked it last, an agent perhaps."""
        there = sum(times.values()) - sum(times.get(name, 0.0) for name in _GUEST)
        worked = there - sum(times.get(name, 0.0) for name in _AT_REST)
        before, self._before = self._before, (worked, there)
        if before is None or there <= before[1]:
            return 0.0
        share = (worked - before[0]) / (there - before[1])
        return round(100 * min(1.0, max(0.0, share)), 1)


def snapshot_of(
    seen: Load, lanes: Iterable[LaneView], *, host: str, node: int, at: Instant, workers: int
) -> Snapshot:
    """The machine as one of its nodes saw it, with how full that node's lanes were."""
    fullest = sorted(lanes, key=lambda lane: -lane.running - lane.waiting)[:_MOST_LANES]
    return Snapshot(
        host=host,
        node=node,
        at=at,
        cpu=seen.cpu,
        cores=seen.cores,
        memory_used=seen.memory_used,
        memory_total=seen.memory_total,
        load=seen.load,
        workers=workers,
        lanes=tuple(
            LaneLoad(lane.name, lane.width, lane.running, lane.waiting)
            for lane in sorted(fullest, key=lambda lane: lane.name)
        ),
    )
