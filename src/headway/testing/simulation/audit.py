"""Holds the kernel's own records and counters against the mirror; knows it from inside."""

from headway.core.kernel import Kernel
from headway.core.lanes import Flow, Lane
from headway.core.live import KINDS, LiveRun
from headway.core.session import SessionQueue
from headway.model.run import RunId
from headway.testing.simulation.bars import session_bar
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.seen import Seen, SeenSession
from headway.testing.simulation.violation import Invariant, broken


def audit(kernel: Kernel, mirror: Mirror) -> None:
    """Object to every counter that is not what a recount says."""
    stage = kernel.stage
    if stage.runs.keys() != mirror.runs.keys():
        broken(Invariant.COUNTERS, f"runs {stage.runs.keys() ^ mirror.runs.keys()}")
    if stage.attempts.keys() != mirror.attempts.keys():
        broken(Invariant.COUNTERS, f"attempts {stage.attempts.keys() ^ mirror.attempts.keys()}")
    for run_id, seen in mirror.runs.items():
        live = stage.runs[run_id]
        if live.next_up is not seen.ahead:
            broken(Invariant.COUNTERS, f"{run_id} is ahead, or not: {live.next_up}")
        if live.state is not seen.state or live.cut is not seen.cut:
            broken(Invariant.COUNTERS, f"{run_id} is {live.state}/{live.cut}, not {seen.state}")
    for session in stage.sessions.values():
        _audit_session(session, mirror.sessions.get(session.key), mirror)
    _audit_tasks(kernel, mirror)
    for lane in stage.floor.lanes.values():
        _audit_lane(lane, mirror)
    for name, agent in stage.floor.agents.items():
        known = mirror.agents.get(name)
        counted = (known.inflight, known.tasks) if known is not None else (0, 0)
        if (agent.inflight, agent.tasks) != counted:
            broken(Invariant.COUNTERS, f"agent {name}: {agent.inflight}, {agent.tasks}")


def _audit_session(session: SessionQueue, known: SeenSession | None, mirror: Mirror) -> None:
    if known is None:
        if not session.is_idle:
            broken(Invariant.COUNTERS, f"session {session.key} should be idle")
        return
    waiting = [live.run.id for live in session.waiting]
    if waiting != [seen.run.id for seen in known.line] and not _swap_beats(waiting, known):
        broken(Invariant.SESSION_ORDER, f"{session.key} waits as {waiting}, not {known.line}")
    running = [live.run.id for live in session.running]
    if running != [seen.run.id for seen in known.running]:
        broken(Invariant.COUNTERS, f"{session.key} runs {running}, not {known.running}")
    if (session.later, session.is_idle) != (known.later, known.idle):
        broken(Invariant.COUNTERS, f"{session.key}: {session.later} later, not {known.later}")
    head = known.line[0] if known.line else None
    ready = head is not None and session_bar(mirror, head, mirror.now) is None
    if ready != (session.posted is not None):
        offered = session.posted.run.id if session.posted is not None else None
        broken(Invariant.IDLE_SLOT, f"{session.key} offers {offered}; its first is {head}")


def _swap_beats(waiting: list[RunId], known: SeenSession) -> bool:
    """Whether only heartbeats that came back changed places; the mirror then does the same."""
    line = known.line
    by_id = {seen.run.id: seen for seen in line}
    if sorted(waiting) != sorted(by_id):
        return False
    swapped = [by_id[run_id] for run_id in waiting]
    moved = [seen for seen, other in zip(swapped, line, strict=True) if seen is not other]
    fresh = [seen for seen in line if seen.heartbeat and not seen.begun]
    if not all(seen.heartbeat for seen in moved) or fresh != [s for s in swapped if s in fresh]:
        return False
    places = [seen.place for seen in line]
    for seen, place in zip(swapped, places, strict=True):
        seen.place = place
    known.line[:] = swapped
    return True


def _audit_tasks(kernel: Kernel, mirror: Mirror) -> None:
    stage = kernel.stage
    if stage.waiting_tasks != mirror.waiting_tasks():
        broken(Invariant.COUNTERS, f"{stage.waiting_tasks} waiting tasks")
    if stage.floor.tasks != mirror.tasks:
        broken(Invariant.COUNTERS, f"{stage.floor.tasks} tasks in flight, not {mirror.tasks}")
    for name, agent in stage.floor.agents.items():
        if agent.waiting_tasks:
            known = mirror.agents[name]
            if agent.waiting_tasks != mirror.waiting_tasks(known):
                broken(Invariant.COUNTERS, f"agent {name}: {agent.waiting_tasks} waiting tasks")


def follow_lending(kernel: Kernel, mirror: Mirror) -> None:
    """A start does not say whether its slot is lent: the mirror learns it here, if it is right."""
    for ticket, live in kernel.stage.attempts.items():
        seen = mirror.attempts.get(ticket)
        if seen is not None and (live.ties is not None or seen.lender is not None):
            _follow_lender(live, seen, mirror)


def _follow_lender(live: LiveRun, seen: Seen, mirror: Mirror) -> None:
    lender = live.ties.borrowed_from if live.ties is not None else None
    if lender is None:
        if seen.lender is not None:
            seen.lender.lent_to = None
            seen.lender = None
        return
    known = mirror.runs.get(lender.run.id)
    if known is None or not known.awaiting or known.lane is not seen.lane:
        broken(Invariant.LENDING, f"{seen} runs on the slot of {lender.run.id}")
    if seen.lender is not known:
        if seen.lender is not None:
            seen.lender.lent_to = None
        if known.lent_to is not None:
            known.lent_to.lender = None
        seen.lender = known
        known.lent_to = seen


def _audit_lane(lane: Lane, mirror: Mirror) -> None:
    own = mirror.lanes[lane.name].own
    background = sum(1 for seen in own if seen.background)
    if (lane.in_use, lane.background) != (len(own), background):
        counted = (len(own), background)
        broken(
            Invariant.COUNTERS,
            f"lane {lane.name} has {(lane.in_use, lane.background)} in use, not {counted}",
        )
    next_up = [seen.run.id for seen in mirror.lanes[lane.name].next_up]
    if [live.run.id for live in lane.next_up.values()] != next_up:
        broken(Invariant.COUNTERS, f"lane {lane.name}: {lane.next_up} are next, not {next_up}")
    for kind in range(KINDS):
        flows = lane.flows[kind].values()
        if lane.ready[kind] != sum(flow.count for flow in flows if not flow.parked):
            broken(Invariant.COUNTERS, f"lane {lane.name}: {lane.ready} ready")
        for flow in flows:
            _audit_flow(flow)


def _audit_flow(flow: Flow) -> None:
    posted = {entry[3] for entry in (*flow.heads, *flow.next_up) if entry[3].posted}
    if len(posted) != flow.count:
        broken(Invariant.COUNTERS, f"{flow.agent.name} has {len(posted)} posted, not {flow.count}")
    aside = {entry[3] for entry in flow.next_up if entry[3].posted}
    if not aside >= {live for live in posted if live.next_up}:
        broken(Invariant.COUNTERS, f"{flow.agent.name}: one ahead stands among those that are not")


def audit_end(kernel: Kernel) -> None:
    """All is over: nothing of it is left."""
    stage = kernel.stage
    left = [*stage.runs, *stage.attempts, *stage.sessions]
    if left or len(stage.alarms) or stage.waiting_tasks or stage.borrowers or stage.actions:
        broken(Invariant.LEFT_OVER, f"{left}, {len(stage.alarms)} alarms, {stage.actions}")
    for lane in stage.floor.lanes.values():
        if lane.in_use or lane.background or lane.yielding or lane.preemptible or any(lane.ready):
            broken(Invariant.LEFT_OVER, f"lane {lane.name} is not empty: {lane}")
        if lane.next_up or lane.awaited:
            broken(Invariant.LEFT_OVER, f"lane {lane.name} waits for slots: {lane.next_up}")
        for kind in range(KINDS):
            if any(flow.count for flow in lane.flows[kind].values()):
                broken(Invariant.LEFT_OVER, f"lane {lane.name} has posted runs")
