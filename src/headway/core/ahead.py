"""Starts that are stored before there is a slot for them, so that short runs do not wait for the store.

A start is stored before its attempt begins, and meanwhile its slot stands empty. Where runs take no longer than
that, slots would stand empty most of the time. So the runtime may let a lane have some starts stored ahead. Those
runs are `assigned` and stand in their lane as they did before: who gets a slot is decided when it becomes free, by
the same rules and among all that wait (F-2). If it is one whose start is stored, it begins at once.

Only runs on which nothing special hangs are started ahead, and only such as may be tried again: should the node
die, nobody can tell those that had begun from those that had not. A run that does not get its slot soon is called
back: it waits in its session as before, and the attempt that never began does not count.
"""

from typing import TYPE_CHECKING

from headway.core.bells import SlotAwaited
from headway.core.lifecycle import advance
from headway.core.live import PLAIN, LiveRun
from headway.core.session import BLANK
from headway.model.time import MILLISECOND, Span
from headway.model.words import Cut, State

if TYPE_CHECKING:
    from headway.core.lanes import Flow, Lane
    from headway.core.stage import Stage

WAITS_AT_MOST: Span = 250 * MILLISECOND
"""How long a run waits for its slot before it is called back."""
COUNTS_FOR: Span = 100 * MILLISECOND
"""How long it counts that so many starts may be stored ahead."""
_MOST_FLOWS = 16
"""From about so many agents of those that are served next some runs are started ahead."""

# Python 3.11 looks members of an enum up slowly; those of the hot path are looked up once.
_ASSIGNED = State.ASSIGNED
_RUNNING = State.RUNNING
_CALLED = advance(_ASSIGNED, _RUNNING)


def allow(stage: "Stage", lane: "Lane", count: int) -> None:
    """Let the lane have so many starts stored ahead, for a short while."""
    lane.ahead = count
    lane.ahead_until = stage.now + COUNTS_FOR


def fill(stage: "Stage", lane: "Lane") -> None:
    """All slots are taken: have some of those stored that will be served next, as far as that is allowed."""
    if stage.now > lane.ahead_until:
        lane.ahead = 0
        return
    missing = lane.ahead - len(lane.next_up)
    if missing <= 0 or lane.in_use < lane.width or not lane.width:
        return
    if stage.gated or stage.estimating or stage.halted:
        return
    flows = lane.flows[PLAIN]
    if len(flows) == 1:
        for flow in flows.values():
            _start_some(stage, flow, missing)
        return
    if missing * 4 < lane.ahead:
        # To look at many agents takes some time: not for each single run.
        return
    first = lane.heaps[PLAIN][:_MOST_FLOWS]
    served_next = [flow for _, stamp, flow in first if stamp == flow.stamp and flow.count]
    for flow in served_next:
        share = -(-lane.ahead // len(served_next)) - len(flow.next_up)
        _start_some(stage, flow, min(share, lane.ahead - len(lane.next_up)))


def _start_some(stage: "Stage", flow: "Flow", count: int) -> None:
    if flow.parked:
        return
    floor = stage.floor
    while count > 0:
        live = floor.first_unstarted(flow)
        if live is None or not _may_wait(stage, live):
            return
        floor.set_aside(flow)
        stage.start_ahead(live)
        flow.lane.next_up[live.ticket] = live
        if not flow.lane.awaited:
            _watch(stage, flow.lane, live)
        count -= 1


def call_up(stage: "Stage", live: LiveRun) -> None:
    """It has its slot: what was stored ahead is so now."""
    live.next_up = False
    live.begun = True
    del live.lane.next_up[live.ticket]
    live.state = _CALLED if live.state is _ASSIGNED else advance(live.state, _RUNNING)
    live.started_at = stage.now
    stage.called.append(live.ticket)


def leave(stage: "Stage", live: LiveRun) -> None:
    """The run will not get the slot that it waits for."""
    if live.posted:
        stage.floor.withdraw(live)
    live.lane.next_up.pop(live.ticket, None)


def undo(stage: "Stage", lane: "Lane") -> None:
    """Put all back into line as if they had never been started: in a copy, to see how things will go."""
    lane.ahead = 0
    for live in tuple(lane.next_up.values()):
        stage.step_down(live)
        live.attempt -= 1
        live.state = advance(live.state, State.QUEUED)
        live.session.rejoin(live)
        stage.refresh(live.session)


def call_back(stage: "Stage", live: LiveRun) -> None:
    """It stands in line again, as if it had not been started; one that something else cuts is left to that."""
    if live.cut is None:
        stage.cut(live, Cut.PREEMPTED)


def call_all_back(stage: "Stage", lane: "Lane") -> None:
    lane.ahead = 0
    for live in tuple(lane.next_up.values()):
        call_back(stage, live)


def look_after(stage: "Stage", lane: "Lane") -> None:
    """It is time to look whether some run of the lane has waited for its slot too long."""
    lane.awaited = False
    for live in lane.next_up.values():
        if live.started_at + WAITS_AT_MOST <= stage.now:
            call_all_back(stage, lane)
        else:
            _watch(stage, lane, live)
        return


def _watch(stage: "Stage", lane: "Lane", oldest: LiveRun) -> None:
    lane.awaited = True
    stage.alarms.set(oldest.started_at + WAITS_AT_MOST, SlotAwaited(lane))


def _may_wait(stage: "Stage", live: LiveRun) -> bool:
    """A wide session is left out: another of its runs might begin before this one (S-1)."""
    run = live.run
    return (
        live.plain
        and live.width == 1
        and not live.collect
        and not live.begun
        and live.attempt + 1 < run.max_attempts
        and live.session.memory is BLANK
        and run.agent not in stage.outliving
    )
