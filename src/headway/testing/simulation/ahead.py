"""Starts stored before there are slots for them: which ones may be, and who is called back (L-2).

Who of them gets a slot is judged as any start is, when they are called up.
"""

from collections.abc import Iterator

from headway.core.stage import Stage
from headway.model.time import MILLISECOND, Instant, Span
from headway.testing.simulation import starting
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.phase import Phase
from headway.testing.simulation.seen import Seen
from headway.testing.simulation.violation import Invariant, broken

COUNTS_FOR: Span = 100 * MILLISECOND
"""So long it counts that a lane may have some starts stored ahead."""
CALLED_BACK_AFTER: Span = 250 * MILLISECOND
"""Who has waited for a slot so long stands in line again."""


class Calls(list[int]):
    """A kernel's list of those that it has called up; keeps also what had been decided by then."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage
        self.places: dict[int, int] = {}
        """How many actions there were when each was called up."""

    def append(self, ticket: int) -> None:
        self.places[ticket] = len(self._stage.actions)
        super().append(ticket)


def check_start(mirror: Mirror, seen: Seen, since: Instant) -> None:
    """Object if this run's start may not be stored ahead of its slot now."""
    lane = seen.lane
    starting.check_turn(mirror, seen)
    if len(lane.own) < lane.settings.width:
        broken(Invariant.IDLE_SLOT, f"{seen} has no slot, though {lane.name} has a free one")
    if mirror.now > lane.ahead_until or len(lane.next_up) >= lane.ahead:
        broken(Invariant.AHEAD, f"{seen} starts behind {lane.next_up}, allowed are {lane.ahead}")
    odd = [*_odd_about_node(mirror), *_odd_about_run(mirror, seen)]
    if odd:
        broken(Invariant.AHEAD, f"{seen} starts ahead in spite of {odd}")
    for other in starting.heads(mirror, lane, since):
        if other.plain and other.agent is seen.agent and starting.comes_first(other, seen):
            broken(Invariant.AHEAD, f"{seen} starts ahead before {other} of the same agent")


def _odd_about_node(mirror: Mirror) -> Iterator[str]:
    if mirror.draining:
        yield "draining"
    if mirror.gated:
        yield "hooks"
    if mirror.estimating:
        yield "estimates"


def _odd_about_run(mirror: Mirror, seen: Seen) -> Iterator[str]:
    run = seen.run
    if seen.lane.settings.width == 0:
        yield "its lane's pause"
    if not seen.plain:
        yield "being a task, or background"
    if run.deadline_at is not None or run.timeout is not None:
        yield "its deadline or timeout"
    if run.parent is not None or seen.awaited_by or seen.offered_to is not None:
        yield "its ties"
    if seen.collect or seen.width > 1:
        yield "its session's ways"
    if run.session in mirror.memories.kept:
        yield "what its session remembers"
    if seen.begun:
        yield "having begun before"
    if seen.attempt + 1 >= run.max_attempts:
        yield "being tried for the last time"


def may_be_called_back(mirror: Mirror, phase: Phase, seen: Seen) -> bool:
    """Whether there is a cause for it to stand in line again."""
    lane, now = seen.lane, mirror.now
    ahead = [other for other in lane.live if other.ahead]
    waiting = [other for other in ahead if other.cut is None or other.cut_at == now]
    waited = now - min(other.started_at for other in waiting)
    grace = mirror.settings.cancel_grace
    return (
        waited >= CALLED_BACK_AFTER
        or mirror.draining
        or seen is phase.awaited
        or (phase.resized is lane and len(lane.own) >= lane.settings.width)
        or any(other.cut is not None and other.cut_at + grace <= now for other in lane.live)
    )
