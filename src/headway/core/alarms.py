"""What must happen at a later instant: a heap of alarms that can be cancelled."""

from copy import deepcopy
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from headway.model.time import Instant

Bell = TypeVar("Bell")

_SWEEP_ABOVE = 512
NEVER: Instant = 1 << 62


class Alarm(Generic[Bell]):
    """One instant and what to do then. Cancelling only marks it; the heap is swept now and then."""

    __slots__ = ("at", "bell", "order", "waits")

    def __init__(self, at: Instant, order: int, bell: Bell) -> None:
        self.at = at
        self.order = order
        self.bell: Bell | None = bell
        """None: cancelled, or rung already."""
        self.waits = True
        """Whether it is still in the heap."""

    def __lt__(self, other: "Alarm[Bell]") -> bool:
        return (self.at, self.order) < (other.at, other.order)


class Alarms(Generic[Bell]):
    """Alarms in order of time, then of setting. Cancelled ones never pile up."""

    __slots__ = ("_heap", "_orders", "_silenced", "due_at")

    def __init__(self) -> None:
        self.due_at: Instant = NEVER
        """Nothing rings before this instant. Kept plain, because the kernel looks at each event."""
        self._heap: list[Alarm[Bell]] = []
        self._orders = 0
        self._silenced = 0

    def __len__(self) -> int:
        return len(self._heap) - self._silenced

    def set(self, at: Instant, bell: Bell) -> Alarm[Bell]:
        self._orders += 1
        alarm = Alarm(at, self._orders, bell)
        heappush(self._heap, alarm)
        if at < self.due_at:
            self.due_at = at
        return alarm

    def cancel(self, alarm: Alarm[Bell]) -> None:
        if alarm.bell is None:
            return
        alarm.bell = None
        if not alarm.waits:
            return
        self._silenced += 1
        if self._silenced > _SWEEP_ABOVE and self._silenced * 2 > len(self._heap):
            self._heap = [kept for kept in self._heap if kept.bell is not None]
            heapify(self._heap)
            self._silenced = 0

    def twin(self, without: tuple[type[object], ...], memo: dict[int, object]) -> "Alarms[Bell]":
        """A copy for the copy of a kernel, but for the bells of some kinds."""
        twin: Alarms[Bell] = Alarms()
        for alarm in self._heap:
            if alarm.bell is not None and not isinstance(alarm.bell, without):
                twin._heap.append(deepcopy(alarm, memo))
        heapify(twin._heap)
        twin._orders = self._orders
        if twin._heap:
            twin.due_at = twin._heap[0].at
        return twin

    @property
    def next_at(self) -> Instant | None:
        heap = self._heap
        while heap and heap[0].bell is None:
            heappop(heap)
            self._silenced -= 1
        self.due_at = heap[0].at if heap else NEVER
        return heap[0].at if heap else None

    def take_due(self, now: Instant) -> list[Alarm[Bell]]:
        """All that is due by `now`, in order. Until it is rung, an alarm can still be cancelled."""
        due: list[Alarm[Bell]] = []
        heap = self._heap
        while heap and heap[0].at <= now:
            alarm = heappop(heap)
            alarm.waits = False
            if alarm.bell is None:
                self._silenced -= 1
            else:
                due.append(alarm)
        self.due_at = heap[0].at if heap else NEVER
        return due
