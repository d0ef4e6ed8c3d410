"""What would happen if nothing else arrived: a copy of the kernel is played forward.

The copy decides by the kernel's own rules, so a forecast cannot drift from them. Running attempts are taken to
end in the order of their start, each after its agent's recent mean.
"""

from copy import deepcopy

from headway.core.actions import Done, Merge, Start
from headway.core.kernel import Kernel
from headway.core.live import LiveRun
from headway.model.outcome import Reply
from headway.model.time import SECOND, Instant, Span
from headway.model.value import Value
from headway.model.words import State

MOST_RUNS = 1_000
"""Above this many live runs a forecast would take too long; the place is then counted by rank."""

DEFAULT_SPAN: Span = 10 * SECOND
_DONE = Done(Reply())


class Forecast(Value, frozen=True):
    place: int | None
    exact: bool = True
    starts_in: Span | None = None


def forecast(kernel: Kernel, live: LiveRun) -> Forecast:
    """How many runs of its lane start before this one, and in how long."""
    stage = kernel.stage
    if len(stage.runs) > MOST_RUNS:
        ahead = sum(
            1
            for other in stage.runs.values()
            if not other.ticket and other.lane is live.lane and other.rank < live.rank
        )
        return Forecast(ahead, exact=False)
    twin = deepcopy(kernel)
    twin.set_estimating(False)
    twin.take_actions()
    began_at = twin.stage.now
    place = 0
    wanted = live.run.id
    for _ in range(4 * MOST_RUNS):
        if wanted not in twin.stage.runs or not _step(twin):
            return Forecast(None)
        for action in twin.take_actions():
            if isinstance(action, Merge) and wanted in action.run.merged_from:
                wanted = action.run.id
            elif isinstance(action, Start):
                if action.run.id == wanted:
                    return Forecast(place, starts_in=twin.stage.now - began_at)
                started = twin.stage.attempts.get(action.ticket)
                place += started is not None and started.lane.name == live.lane.name
    return Forecast(None)


def _step(twin: Kernel) -> bool:
    """Let the next thing happen: an attempt ends, or an alarm rings. False if nothing ever will."""
    stage = twin.stage
    next_end: tuple[Instant, int] | None = None
    for ticket, live in stage.attempts.items():
        if live.ties is not None and live.ties.awaiting:
            continue
        ends_at = live.started_at + (live.agent.mean_span or DEFAULT_SPAN)
        end = (max(ends_at, stage.now), ticket)
        if next_end is None or end < next_end:
            next_end = end
    alarm_at = twin.wake_at
    if alarm_at is not None and (next_end is None or alarm_at <= next_end[0]):
        twin.time_passed(alarm_at)
        return True
    if next_end is None:
        return False
    ends_at, ticket = next_end
    if stage.attempts[ticket].state is State.ASSIGNED:
        twin.began(ticket, ends_at)
    twin.finished(ticket, _DONE, ends_at)
    return True
