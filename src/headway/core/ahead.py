"""Starts that are stored before there is a slot for them, so that short runs do not wait for the store.

A start is stored before its attempt begins, and meanwhile its slot stands empty. Where runs take no longer than
that, slots would stand empty most of the time. So the runtime may let a lane have some starts stored ahead: those
runs are `assigned`, and when a slot becomes free the first of them has it at once. They are no part of what the
lane has in use: never more run than it is wide (L-2).

Only runs on which nothing special hangs are started ahead, and only such as may be tried again: should the node
die, nobody can tell those that had begun from those that had not. A run that does not get its slot soon is called
back: it stands in line as before, and the attempt that never began does not count.
"""

from typing import TYPE_CHECKING

from headway.core.bells import SlotAwaited
from headway.core.lifecycle import advance
from headway.core.live import PLAIN, LiveRun
from headway.model.time import MILLISECOND, Span
from headway.model.words import Cut, State

if TYPE_CHECKING:
    from headway.core.lanes import Lane
    from headway.core.stage import Stage

WAITS_AT_MOST: Span = 250 * MILLISECOND
"""How long a run waits for its slot before it is called back."""
_COUNTS_FOR: Span = 100 * MILLISECOND
"""How long it counts that so many starts may be stored ahead."""

# Python 3.11 looks members of an enum up slowly; those of the hot path are looked up once.
_RUNNING = State.RUNNING


def allow(stage: "Stage", lane: "Lane", count: int) -> None:
    """Let the lane have so many starts stored ahead, for a short while."""
    lane.ahead = count
    lane.ahead_until = stage.now + _COUNTS_FOR


def call_up(stage: "Stage", lane: "Lane") -> None:
    """A slot is free: the run whose start was stored first has it."""
    live = lane.next_up.popleft()
    live.next_up = False
    live.state = advance(live.state, _RUNNING)
    live.started_at = stage.now
    lane.in_use += 1
    stage.called.append(live.ticket)


def fill(stage: "Stage", lane: "Lane") -> None:
    """All slots are taken: start ahead what would start next, as far as that is allowed."""
    if stage.now > lane.ahead_until:
        lane.ahead = 0
    if not _suits(stage, lane):
        return
    floor = stage.floor
    while lane.in_use >= lane.width and len(lane.next_up) < lane.ahead:
        flow = floor.next_ahead(lane, stage.now)
        if flow is None:
            return
        live = flow.first()
        if not _may_wait(stage, live):
            floor.pass_over(flow)
            return
        live.next_up = True
        lane.next_up.append(live)
        floor.claim(flow, stage.now)
        lane.in_use -= 1
        stage.start(live)
        _watch(stage, lane)


def leave(live: LiveRun) -> None:
    """The run will not get the slot that it waits for."""
    if live in live.lane.next_up:
        live.lane.next_up.remove(live)


def call_back(stage: "Stage", live: LiveRun) -> None:
    """It stands in line again, as if it had not been started; one that something else cuts is left to that."""
    if live.cut is None:
        stage.cut(live, Cut.PREEMPTED)


def call_all_back(stage: "Stage", lane: "Lane") -> None:
    lane.ahead = 0
    for live in tuple(lane.next_up):
        call_back(stage, live)


def look_after(stage: "Stage", lane: "Lane") -> None:
    """It is time to look whether some run of the lane has waited for its slot too long."""
    lane.awaited = False
    if not lane.next_up:
        return
    if lane.next_up[0].started_at + WAITS_AT_MOST <= stage.now:
        call_all_back(stage, lane)
    else:
        _watch(stage, lane)


def _watch(stage: "Stage", lane: "Lane") -> None:
    if not lane.awaited:
        lane.awaited = True
        at = lane.next_up[0].started_at + WAITS_AT_MOST
        stage.alarms.set(at, SlotAwaited(lane))


def _suits(stage: "Stage", lane: "Lane") -> bool:
    """Whether nothing but their order decides who starts next in this lane."""
    if stage.gated or stage.estimating or stage.halted or not lane.width:
        return False
    if lane.purse is not None or lane.settings.cluster_limit is not None:
        return False
    if lane.preemptible or lane.owed:
        return False
    return not any(lane.ready[kind] for kind in lane.kinds if kind != PLAIN)


def _may_wait(stage: "Stage", live: LiveRun) -> bool:
    run = live.run
    return (
        live.plain
        and live.width == 1
        and not live.collect
        and not live.agent.limited
        and live.attempt + 1 < run.max_attempts
        and run.agent not in stage.outliving
    )
