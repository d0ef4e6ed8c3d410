"""What would happen if nothing else arrived: a copy of the kernel is played forward.

The copy decides by the kernel's own rules, so a forecast cannot drift from them. Running attempts are taken to
end in the order of their start, each after its agent's recent mean. One play answers for all runs that wait.
"""

from collections import Counter
from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from headway.core.actions import Done, Merge, Start
from headway.core.ahead import undo
from headway.core.kernel import Kernel
from headway.core.live import LiveRun
from headway.core.stage import Stage
from headway.core.twin import twin_of
from headway.model.outcome import Reply
from headway.model.run import LaneName, RunId
from headway.model.time import SECOND, Instant, Span
from headway.model.value import Value
from headway.model.words import State

MOST_RUNS = 2_000
"""Above this many live runs a forecast would take too long; the place is then counted by rank."""

DEFAULT_SPAN: Span = 10 * SECOND
_STEPS = 4
"""What happens to a run until it has ended: seldom more, and the play must end."""
_DONE = Done(Reply())


class Forecast(Value, frozen=True):
    """Where one run stands."""

    place: int
    """How many runs of its lane start before it."""
    exact: bool = True
    """False: it was counted by rank, because too much waits, or because nothing shows that it will start."""
    starts_at: Instant | None = None


class Foreseen:
    """What was found out about the lines of a kernel. It counts until something changes there."""

    def __init__(self, changes: int) -> None:
        self.changes = changes
        self.played: Mapping[RunId, Forecast] | None = None
        self.counted: Mapping[RunId, int] | None = None

    def __deepcopy__(self, memo: object) -> "Foreseen":
        return self


def forecast(kernel: Kernel, run_id: RunId) -> Forecast | None:
    """Where a run stands; None if it does not wait in a line."""
    seen = _foreseen(kernel)
    if seen.played is None:
        found = _Play(kernel).found if len(kernel.stage.runs) <= MOST_RUNS else {}
        _count_rest(kernel.stage, found)
        seen.played = found
    return seen.played.get(run_id)


def place(kernel: Kernel, run_id: RunId) -> int | None:
    """How many runs of its lane start before it. Where one agent's runs wait alone, nothing need be played."""
    seen = _foreseen(kernel)
    if seen.played is None:
        if seen.counted is None:
            seen.counted = _plain_lines(kernel.stage)
        if run_id in seen.counted:
            return seen.counted[run_id]
    standing = forecast(kernel, run_id)
    return None if standing is None else standing.place


def _foreseen(kernel: Kernel) -> Foreseen:
    known = kernel.foreseen
    if known is None or known.changes != kernel.changes:
        known = kernel.foreseen = Foreseen(kernel.changes)
    return known


def _plain_lines(stage: Stage) -> dict[RunId, int]:
    """The places in lanes where all that waits is ready and one agent's: there runs start by rank."""
    waiting = Counter(
        live.lane.name for live in stage.runs.values() if _waits(live) and not live.absorbed
    )
    places: dict[RunId, int] = {}
    for name, count in waiting.items():
        lane = stage.floor.lanes[name]
        flows = [flow for kind in lane.flows for flow in kind.values() if flow.count]
        if len(flows) == 1 and flows[0].count == count and not lane.preemptible:
            flow = flows[0]
            entries = (entry for entry in (*flow.heads, *flow.next_up) if entry[3].posted)
            # One that was withdrawn and posted again may have an entry of each time.
            line = list({entry[3]: entry for entry in entries}.values())
            if any(live.ties is not None for *_, live in line):
                # A slot may be lent to it (L-4), whatever its rank.
                continue
            line.sort()
            places |= {live.run.id: ahead for ahead, (*_, live) in enumerate(line)}
    return places


def _count_rest(stage: Stage, found: dict[RunId, Forecast]) -> None:
    """What is not seen to start stands behind all that is, by rank."""
    ahead: Counter[LaneName] = Counter()
    rest: list[LiveRun] = []
    for live in stage.runs.values():
        if _waits(live) and not live.absorbed:
            if live.run.id in found:
                ahead[live.lane.name] += 1
            else:
                rest.append(live)
    rest.sort(key=lambda live: (live.rank, live.order))
    for live in rest:
        found[live.run.id] = Forecast(ahead[live.lane.name], exact=False)
        ahead[live.lane.name] += 1


class _Play:
    """A copy of the kernel, played until all that waits has started or nothing happens any more."""

    def __init__(self, kernel: Kernel) -> None:
        self.found: dict[RunId, Forecast] = {}
        self._twin = twin = twin_of(kernel)
        twin.set_estimating(False)
        self._stage = stage = twin.stage
        self._parts: dict[RunId, tuple[RunId, ...]] = {}
        """Of a merged turn, the messages that it was made of."""
        self._starts: Counter[LaneName] = Counter()
        for lane in stage.floor.lanes.values():
            undo(stage, lane)
        now = stage.now
        self._ends = [(max(_end(live), now), ticket) for ticket, live in stage.attempts.items()]
        heapify(self._ends)
        self._waiters: list[int] = []
        """Attempts that only wait for others."""
        self._waiting = {run_id for run_id, live in stage.runs.items() if not live.ticket}
        for _ in range(_STEPS * len(stage.runs)):
            if not self._waiting or not self._step():
                break
            self._note()

    def _note(self) -> None:
        """Write down what has started."""
        stage = self._stage
        for action in self._twin.take_actions():
            if type(action) is Start:
                live = stage.attempts.get(action.ticket)
                if live is None:
                    continue
                heappush(self._ends, (_end(live), action.ticket))
                lane = live.lane.name
                seen = Forecast(self._starts[lane], starts_at=action.at)
                self._starts[lane] += 1
                for run_id in self._parts.get(action.run.id, (action.run.id,)):
                    if run_id in self._waiting:
                        self._waiting.remove(run_id)
                        self.found[run_id] = seen
            elif type(action) is Merge:
                parts = action.run.merged_from
                self._parts[action.run.id] = tuple(
                    part for each in parts for part in self._parts.get(each, (each,))
                )

    def _step(self) -> bool:
        """Let the next thing happen: an attempt ends, or an alarm rings. False if nothing ever will."""
        stage, ends = self._stage, self._ends
        self._look_at_waiters()
        while ends and not self._may_end(ends[0][1]):
            heappop(ends)
        alarm_at = self._twin.wake_at
        if alarm_at is not None and (not ends or alarm_at <= ends[0][0]):
            self._twin.time_passed(alarm_at)
            return True
        if not ends:
            return False
        ends_at, ticket = heappop(ends)
        if stage.attempts[ticket].state is State.ASSIGNED:
            self._twin.began(ticket, ends_at)
        self._twin.finished(ticket, _DONE, ends_at)
        return True

    def _may_end(self, ticket: int) -> bool:
        live = self._stage.attempts.get(ticket)
        if live is not None and live.ties is not None and live.ties.awaiting:
            self._waiters.append(ticket)
            return False
        return live is not None

    def _look_at_waiters(self) -> None:
        """Whoever waits for nobody any more goes on, and is about to end."""
        waiters, self._waiters = self._waiters, []
        for ticket in waiters:
            live = self._stage.attempts.get(ticket)
            if live is not None:
                heappush(self._ends, (max(_end(live), self._stage.now), ticket))


def _waits(live: LiveRun) -> bool:
    """For a slot, also if its start is stored already."""
    return not live.ticket or live.awaits_slot


def _end(live: LiveRun) -> Instant:
    if live.next_up:
        # It was started ahead and is called back: it has done nothing.
        return 0
    return live.started_at + (live.agent.mean_span or DEFAULT_SPAN)
