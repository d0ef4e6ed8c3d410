"""Whether a run may start, whether another should have come first, and who may be cut for it."""

from collections.abc import Iterator

from headway.model.time import Instant
from headway.model.words import Rule
from headway.testing.simulation.bars import (
    agent_bar,
    budget_bar,
    lane_bar,
    session_bar,
    tasks_bar,
)
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.seen import Seen, SeenAgent, SeenLane
from headway.testing.simulation.violation import Invariant, broken

_BROKEN_BY: dict[Rule, Invariant] = {
    Rule.RETRY: Invariant.WINDOW,
    Rule.COLLECTING: Invariant.WINDOW,
    Rule.DRAINING: Invariant.DRAINING,
    Rule.SESSION_BUSY: Invariant.SESSION_LIMIT,
    Rule.SESSION_THROTTLED: Invariant.SESSION_LIMIT,
    Rule.ESTIMATING: Invariant.SESSION_LIMIT,
    Rule.RATE_LIMITED: Invariant.BUDGET,
    Rule.AGENT_BUDGET: Invariant.BUDGET,
    Rule.LANE_BUDGET: Invariant.BUDGET,
    Rule.AGENT_QUOTA: Invariant.TASK_LIMIT,
    Rule.INFLIGHT_LIMIT: Invariant.TASK_LIMIT,
    Rule.LANE_PAUSED: Invariant.LANE_LIMIT,
    Rule.LANE_FULL: Invariant.LANE_LIMIT,
    Rule.LANE_RESERVED: Invariant.LANE_RESERVE,
}

_SLOT_RULES = frozenset({Rule.LANE_FULL, Rule.LANE_RESERVED})


def check(mirror: Mirror, seen: Seen, since: Instant) -> Seen | None:
    """Object if this run may not start now. Answers who lends it a slot, if one is lent."""
    check_turn(mirror, seen)
    return check_slot(mirror, seen, since)


def check_slot(mirror: Mirror, seen: Seen, since: Instant) -> Seen | None:
    """Object if no slot is this run's now. Answers who lends it one, if one is lent."""
    bar = agent_bar(mirror, seen, mirror.now)
    if bar is not None:
        broken(_BROKEN_BY[bar[0]], f"{seen} starts, but for {bar[0]}")
    bar = tasks_bar(mirror, seen) or lane_bar(mirror, seen)
    lender = mirror.free_lender(seen) if seen.awaited_by else None
    if bar is None:
        if lender is None:
            _check_fair(mirror, seen, since)
        elif seen.lane.owed:
            _use_cleared(seen)
        return None
    if lender is not None and bar[0] is not Rule.INFLIGHT_LIMIT:
        return lender
    if bar[0] not in _SLOT_RULES or not lent_unseen(mirror, seen):
        broken(_BROKEN_BY[bar[0]], f"{seen} starts, but for {bar[0]}")
    return None


def check_turn(mirror: Mirror, seen: Seen) -> None:
    """Object if it is not this run's turn in its session."""
    now = mirror.now
    line = seen.session.line
    if line[0] is not seen and not _beats_may_swap(seen, line):
        broken(Invariant.SESSION_ORDER, f"{seen} starts before {line[0]} of {seen.session.key}")
    if seen.run.deadline_at is not None and seen.run.deadline_at <= now:
        broken(Invariant.DEADLINE, f"{seen} starts after its deadline")
    bar = session_bar(mirror, seen, now)
    if bar is not None:
        broken(_BROKEN_BY[bar[0]], f"{seen} starts, but for {bar[0]}")


def _beats_may_swap(seen: Seen, line: list[Seen]) -> bool:
    """Heartbeats that came back after an attempt have no fixed order among heartbeats."""
    ahead = line[: line.index(seen)]
    return seen.heartbeat and all(
        other.heartbeat and (other.begun or seen.begun) for other in ahead
    )


def lent_unseen(mirror: Mirror, seen: Seen) -> bool:
    """Whether others may be on lent slots: a start does not say which slot it takes."""
    for other in seen.lane.own:
        lender = mirror.free_lender(other) if other.awaited_by else None
        if lender is not None:
            lender.lent_to = other
            other.lender = lender
            if lane_bar(mirror, seen) is None:
                return True
    return False


def ready(mirror: Mirror, lane: SeenLane, since: Instant) -> Iterator[Seen]:
    """Runs that only this lane can still hold, whatever rings first; also those whose start is stored ahead."""
    for seen in lane.next_up:
        instants = {since, mirror.now}
        if all(agent_bar(mirror, seen, at) is None for at in instants):
            yield seen
    yield from heads(mirror, lane, since)


def heads(mirror: Mirror, lane: SeenLane, since: Instant) -> Iterator[Seen]:
    """Those of them that are the first of their sessions, and were not started."""
    for session in mirror.sessions.values():
        if session.line:
            head = session.line[0]
            now_free = head.lane is lane and _is_free(mirror, head, mirror.now)
            if now_free and (since == mirror.now or _is_free(mirror, head, since)):
                yield head


def _is_free(mirror: Mirror, head: Seen, at: Instant) -> bool:
    if session_bar(mirror, head, at) is not None:
        return False
    return (agent_bar(mirror, head, at) or tasks_bar(mirror, head)) is None


def _check_fair(mirror: Mirror, seen: Seen, since: Instant) -> None:
    """Object if another run should have had this slot. Only rivals that were surely ready count."""
    lane = seen.lane
    rivals = _rivals(mirror, seen, since)
    if lane.owed:
        _use_cleared(seen)
        if seen.plain:
            rivals = [other for other in rivals if other.plain]
        elif any(other.plain for other in rivals):
            broken(Invariant.PREEMPTION, f"{seen} got the slot that was cleared for another")
    if seen.yields and any(other.plain for other in rivals):
        broken(Invariant.PREEMPTION, f"{seen} starts, and must yield at once")
    if seen.plain or any(other.plain for other in _rivals(mirror, seen, mirror.now)):
        rivals = [other for other in rivals if not other.yields]
    for other in rivals:
        if comes_first(other, seen):
            broken(
                Invariant.FAIR_PICK,
                f"{seen} of {seen.agent.name} starts before {other} of {other.agent.name}",
            )


def _use_cleared(seen: Seen) -> None:
    """A slot that was cleared is taken. If by other work, nobody waits any more for whom it was."""
    seen.lane.owed = seen.lane.owed - 1 if seen.plain else 0


def _rivals(mirror: Mirror, seen: Seen, since: Instant) -> list[Seen]:
    return [
        other
        for other in ready(mirror, seen.lane, since)
        if other is not seen and lane_bar(mirror, other) is None
    ]


def comes_first(other: Seen, seen: Seen) -> bool:
    if other.agent is seen.agent:
        return (other.rank, other.order) < (seen.rank, seen.order)
    theirs, ours = share(other.agent), share(seen.agent)
    if theirs != ours or other.agent.weighted or seen.agent.weighted:
        return theirs < ours
    return other.agent.served < seen.agent.served


def share(agent: SeenAgent) -> int:
    """How many rounds an agent has in flight: a weight of 3 makes a round of 3 (F-2, X-8)."""
    return agent.inflight // agent.settings.weight


def may_preempt(mirror: Mirror, seen: Seen) -> bool:
    """Whether this attempt may be cut to clear its slot for a user's turn (X-5)."""
    if not seen.yields or seen.lent_to is not None or seen.lender is not None:
        return False
    lane = seen.lane
    if len(lane.own) < lane.settings.width or budget_bar(mirror, lane) is not None:
        return False
    waiting = [
        other
        for other in ready(mirror, lane, mirror.now)
        if other.plain and other.session is not seen.session
    ]
    return len(waiting) > mirror.yielding(lane)
