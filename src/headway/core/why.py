"""Why is it waiting? (X-1) Reads the kernel and changes nothing that a later decision would see."""

from typing import TypeAlias

from headway.core import forecast
from headway.core.kernel import Kernel
from headway.core.live import LiveRun, kind_of
from headway.core.session import SessionQueue
from headway.model.run import Route, Run, RunId, SessionKey, SessionMemory
from headway.model.settings import MAIN
from headway.model.time import Instant, Span, span_text
from headway.model.views import LaneView, SessionView, Why
from headway.model.words import Rule, State

_SESSION_RULES = frozenset({Rule.SESSION_BUSY, Rule.SESSION_THROTTLED})

Held: TypeAlias = tuple[Rule, Instant | None, RunId | None]
"""A rule, until when it holds, and the run that is in the way."""


def explain(kernel: Kernel, run_id: RunId) -> Why | None:
    """The rule that holds this run, its place and an estimate; None if the kernel does not have it."""
    live = kernel.stage.runs.get(run_id)
    if live is None:
        return None
    if live.ticket and not live.awaits_slot:
        starting = Rule.STARTING if live.state is State.ASSIGNED else None
        return Why(run_id, live.state, starting, lane=live.lane.name, agent=live.agent.name)
    rule, until, by = holding_rule(kernel, live)
    place, exact, starts_in = _place(kernel, live)
    return Why(
        run_id,
        live.state,
        rule,
        until,
        by,
        live.lane.name,
        live.agent.name,
        live.session.key,
        place,
        exact,
        starts_in,
    )


def _place(kernel: Kernel, live: LiveRun) -> tuple[int | None, bool, Span | None]:
    """Its place, whether that is exact, and in how long it starts; no place if it is not seen to start in time."""
    seen = forecast.forecast(kernel, live.run.id)
    if seen is None:
        return None, True, None
    if seen.starts_at is None:
        counted = len(kernel.stage.runs) > forecast.MOST_RUNS
        return (seen.place, False, None) if counted else (None, True, None)
    deadline_at = live.run.deadline_at
    if deadline_at is not None and deadline_at <= seen.starts_at:
        return None, True, None
    return seen.place, True, max(0, seen.starts_at - kernel.stage.now)


def holding_rule(kernel: Kernel, live: LiveRun) -> Held:
    """The one rule to lift before this run could start, in the order in which they are asked."""
    stage = kernel.stage
    session = live.session
    if live.ties is not None and live.ties.absorbed_by is not None:
        return Rule.STEERED, None, live.ties.absorbed_by.run.id
    if live.held is Rule.DEBOUNCE:
        return Rule.DEBOUNCE, _window_end(live), None
    if live.held is Rule.NOT_DUE:
        return Rule.NOT_DUE, live.run.due_at, None
    if not live.awaits_slot:
        head = session.waiting[0]
        if head is not live:
            return Rule.SESSION_ORDER, None, head.run.id
        bar = stage.session_bar(live)
        if bar is not None:
            by = session.running[0].run.id if bar[0] in _SESSION_RULES else None
            return *bar, by
    bar = stage.floor.bar(live, stage.now)
    if bar is not None:
        return *bar, None
    return Rule.STARTING, None, None


def bar_here(kernel: Kernel, run: Run) -> tuple[Rule, Instant | None] | None:
    """What keeps this node from taking a run that nobody has taken yet; None if nothing here does."""
    stage, floor = kernel.stage, kernel.stage.floor
    agent = floor.agents.get(run.agent)
    if agent is None or (stage.here is not None and run.agent not in stage.here):
        return None
    if stage.halted:
        return Rule.SUSPENDED if stage.suspended else Rule.DRAINING, None
    kind, lane = kind_of(run), floor.lanes.get(run.lane) or floor.lanes[MAIN]
    now = stage.now
    return floor.agent_bar(agent, kind, now) or floor.tasks_bar(kind) or lane.bar(kind, now)


def lane_views(kernel: Kernel) -> tuple[LaneView, ...]:
    """Every lane with what runs and what waits in it."""
    stage = kernel.stage
    waiting = dict.fromkeys(stage.floor.lanes, 0)
    for live in stage.runs.values():
        if not live.has_slot:
            waiting[live.lane.name] += 1
    running = dict.fromkeys(stage.floor.lanes, 0)
    for live in stage.attempts.values():
        if live.has_slot:
            running[live.lane.name] += 1
    return tuple(
        LaneView(
            name,
            lane.settings.width,
            running[name],
            waiting[name],
            lane.reserve,
            lane.started,
            lane.settings.width == 0,
            lane.settings.cluster_limit,
            lane.settings.budget,
        )
        for name, lane in stage.floor.lanes.items()
    )


def session_views(kernel: Kernel) -> tuple[SessionView, ...]:
    """Every session that is not idle here."""
    return tuple(session_view(session) for session in kernel.stage.busy_sessions)


def session_view(session: SessionQueue) -> SessionView:
    buffers = (session.buffers or {}).values()
    buffered = [live for buffer in buffers for live in buffer.messages]
    runs = (*session.running, *session.waiting, *buffered)
    return SessionView(
        session.key,
        tuple(live.run.id for live in session.running if live.has_slot),
        tuple(live.run.id for live in (*session.running, *session.waiting) if not live.has_slot),
        tuple(live.run.id for live in buffered),
        session.memory.options,
        tuple(sorted({live.run.agent for live in runs})),
    )


def _window_end(live: LiveRun) -> Instant | None:
    for buffer in (live.session.buffers or {}).values():
        if live in buffer.messages:
            return buffer.closes_at
    return None


def queue_status(
    kernel: Kernel,
    key: SessionKey,
    memory: SessionMemory | None,
    route: Route | None,
    elsewhere: tuple[int, int] = (0, 0),
) -> str:
    """One line for `/queue status`: what runs, what waits, and by which settings.

    `memory` and `elsewhere`, how many run and wait, are what the store knows of the session; they count if nothing
    is known here.
    """
    session = kernel.stage.sessions.get(key)
    running, waiting = elsewhere
    if session is not None:
        memory = session.memory
        running = sum(live.has_slot for live in session.running)
        waiting = len(session.running) - running + len(session.waiting) + session.buffered
    settings = kernel.queue_settings(memory.options if memory else None, route)
    return (
        f"{running} running, {waiting} waiting; mode {settings.mode}, cap {settings.cap}, "
        f"drop {settings.drop}, debounce {span_text(settings.debounce)}"
    )
