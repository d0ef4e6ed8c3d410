"""Which rule keeps a run from starting, by the simulator's own picture (X-1)."""

from headway.model.time import Instant
from headway.model.words import Rule
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.seen import FINAL_CUTS, Seen, SeenAgent, SeenLane, Where

Bar = tuple[Rule, Instant | None]


def session_bar(mirror: Mirror, head: Seen, at: Instant) -> Bar | None:
    """What keeps the first in line from being offered to its lane."""
    session = head.session
    if head.until is not None:
        return Rule.RETRY, head.until
    if mirror.draining and not may_start_draining(mirror, head):
        return Rule.DRAINING, None
    if head.collect and session.quiet_until > at:
        return Rule.COLLECTING, session.quiet_until
    if session.running:
        returning = head.interrupts and any(turn.cut in FINAL_CUTS for turn in session.running)
        if returning or len(session.running) >= session.width_for(head.width):
            return Rule.SESSION_BUSY, None
        if mirror.estimating and session.tight is not False:
            return (Rule.SESSION_THROTTLED if session.tight else Rule.ESTIMATING), None
    return None


def may_start_draining(mirror: Mirror, seen: Seen) -> bool:
    """A draining node starts only what a running run has asked for, and that only for a while."""
    return seen.parent is not None and seen.parent.ticket != 0 and not mirror.closing


def agent_bar(mirror: Mirror, seen: Seen, at: Instant) -> Bar | None:
    agent = seen.agent
    if (until := mirror.holds.get(agent.settings.provider or agent.name, 0)) > at:
        return Rule.RATE_LIMITED, until
    if agent.budget is not None and (until := agent.budget.free_at(at)) > at:
        return Rule.AGENT_BUDGET, until
    if seen.task and agent.tasks >= task_quota(mirror, agent):
        return Rule.AGENT_QUOTA, None
    return None


def tasks_bar(mirror: Mirror, seen: Seen) -> Bar | None:
    if seen.task and mirror.tasks >= mirror.limits.max_inflight:
        return Rule.INFLIGHT_LIMIT, None
    return None


def lane_bar(mirror: Mirror, seen: Seen) -> Bar | None:
    lane = seen.lane
    settings = lane.settings
    if settings.width == 0:
        return Rule.LANE_PAUSED, None
    own = lane.own
    if len(own) >= settings.width:
        return Rule.LANE_FULL, None
    if seen.background and settings.reserve:
        background = sum(1 for other in own if other.background)
        if background >= settings.width - settings.reserve:
            return Rule.LANE_RESERVED, None
    return budget_bar(mirror, lane)


def budget_bar(mirror: Mirror, lane: SeenLane) -> Bar | None:
    if lane.budget is not None and (until := lane.budget.free_at(mirror.now)) > mirror.now:
        return Rule.LANE_BUDGET, until
    return None


def task_quota(mirror: Mirror, agent: SeenAgent) -> int:
    quota = agent.settings.max_inflight
    return mirror.limits.max_inflight_per_agent if quota is None else quota


def all_bars(mirror: Mirror, seen: Seen) -> list[Bar]:
    """Every rule that holds this waiting run: a run behind others is held by its place alone."""
    now = mirror.now
    match seen.where:
        case Where.TURN:
            return [(Rule.STEERED, None)]
        case Where.WINDOW:
            assert seen.window is not None
            return [(Rule.DEBOUNCE, seen.session.windows[seen.window].closes_at)]
        case Where.LATER:
            return [(Rule.NOT_DUE, seen.run.due_at)]
        case _:
            pass
    if not seen.ahead:
        if seen.session.line[0] is not seen:
            return [(Rule.SESSION_ORDER, None)]
        bar = session_bar(mirror, seen, now)
        if bar is not None:
            return [bar]
    found = (agent_bar(mirror, seen, now), tasks_bar(mirror, seen), lane_bar(mirror, seen))
    return [bar for bar in found if bar is not None]
