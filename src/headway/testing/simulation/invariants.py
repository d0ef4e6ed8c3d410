"""What must hold between two steps: nothing is overdue, nothing waits that could start, and every answer to
"why does it wait?" is true.
"""

from headway.core.actions import AskEstimate
from headway.core.kernel import Kernel
from headway.core.why import explain, holding_rule
from headway.model.time import Instant
from headway.model.words import Cut, Rule
from headway.testing.simulation.ledger import Ledger
from headway.testing.simulation.mirror import Bar, Mirror
from headway.testing.simulation.seen import FINAL_CUTS, Seen, SeenLane, Where
from headway.testing.simulation.starting import ready
from headway.testing.simulation.violation import Invariant, broken


def check_instants(mirror: Mirror) -> None:
    """Time has passed: what had an instant was done at it."""
    now = mirror.now
    for seen in mirror.runs.values():
        deadline_at = seen.run.deadline_at
        if seen.ticket:
            _check_attempt(mirror, seen)
        elif seen.where is not Where.TURN:
            if deadline_at is not None and deadline_at <= now:
                broken(Invariant.DEADLINE, f"{seen} still waits after its deadline {deadline_at}")
            if seen.until is not None and seen.until <= now:
                broken(Invariant.WINDOW, f"{seen} should have been tried again at {seen.until}")
            if seen.where is Where.LATER and seen.run.due_at is not None:
                if seen.run.due_at <= now:
                    broken(Invariant.WINDOW, f"{seen} has been due since {seen.run.due_at}")
            elif seen.where is Where.NOWHERE:
                broken(Invariant.LOST_CALLER, f"{seen} is nowhere")
    for session in mirror.sessions.values():
        for window in session.windows.values():
            if window.closes_at <= now:
                broken(Invariant.WINDOW, f"the window of {window.parts} has not closed")


def _check_attempt(mirror: Mirror, seen: Seen) -> None:
    now, run = mirror.now, seen.run
    if run.deadline_at is not None and run.deadline_at <= now and seen.cut not in FINAL_CUTS:
        broken(Invariant.DEADLINE, f"{seen} goes on after its deadline {run.deadline_at}")
    if seen.cut is None:
        if run.timeout is not None and seen.started_at + run.timeout <= now:
            broken(Invariant.WINDOW, f"{seen} goes on after its timeout")
    elif seen.cut_at + mirror.settings.cancel_grace <= now:
        broken(Invariant.SLOT_HELD, f"{seen} was to be abandoned when its grace was over")


def check_standing(mirror: Mirror, ledger: Ledger) -> None:
    """No run waits that no rule holds, and background work makes room where it must."""
    now = mirror.now
    for session in mirror.sessions.values():
        if not session.line:
            continue
        head = session.line[0]
        bar = mirror.session_bar(head, now)
        if bar is None:
            _check_held(mirror, head, now)
        elif bar[0] is Rule.SESSION_BUSY and head.message:
            if any(turn.heartbeat and turn.cut is None for turn in session.running):
                broken(Invariant.PREEMPTION, f"{head} waits for a heartbeat of its session")
    for lane in mirror.lanes.values():
        _check_yielding(mirror, lane)
    for seen in mirror.runs.values():
        if seen.parent is not None and seen.ends_with_parent:
            if seen.where is not Where.TURN and seen.cut not in FINAL_CUTS:
                broken(Invariant.STOPPED, f"{seen} goes on, though its turn was cut")
    if mirror.draining and not mirror.keeps_waiting:
        for seen in mirror.runs.values():
            if seen.waits and not mirror.may_start_draining(seen):
                broken(Invariant.LOST_CALLER, f"{seen} waits for a start that will never be")
    if ledger.memories != mirror.memories:
        broken(Invariant.MEMORY, f"remembered is {ledger.memories}, not {mirror.memories}")


def _check_held(mirror: Mirror, head: Seen, now: Instant) -> None:
    if mirror.agent_bar(head, now) is not None:
        return
    bar = mirror.tasks_bar(head) or mirror.lane_bar(head, now)
    if bar is None:
        broken(Invariant.IDLE_SLOT, f"{head} waits in {head.lane.name}, held by nothing")
    if head.awaited_by and bar[0] is not Rule.INFLIGHT_LIMIT:
        lender = mirror.free_lender(head)
        if lender is not None:
            broken(
                Invariant.LENDING, f"{head} waits, though {lender} waits for it with a free slot"
            )


def _check_yielding(mirror: Mirror, lane: SeenLane) -> None:
    """A user's turn that waits for nothing but a slot has one cleared for it (X-5)."""
    own = lane.own
    if len(own) < lane.settings.width:
        return
    if not any(seen.yields for seen in own):
        return
    if lane.budget is not None and lane.budget.free_at(mirror.now) > mirror.now:
        return
    waiting = [head.session for head in ready(mirror, lane, mirror.now) if head.plain]
    for seen in own:
        others = sum(1 for session in waiting if session is not seen.session)
        if others <= mirror.yielding(lane):
            continue
        if seen.yields and seen.cut is None and seen.lent_to is None:
            broken(Invariant.PREEMPTION, f"{seen} does not yield in lane {lane.name}")


def check_why(mirror: Mirror, kernel: Kernel, seen: Seen, *, whole: bool) -> None:
    """The rule that is said to hold this run really holds it; now and then the whole answer is asked for."""
    live = kernel.stage.runs[seen.run.id]
    rule, until, by = holding_rule(kernel, live)
    true = dict(bars(mirror, seen))
    if rule not in true:
        broken(Invariant.WHY, f"{seen} is said to be held by {rule}; true are {list(true)}")
    if until != true[rule] or (until is not None and until < mirror.now):
        broken(Invariant.WHY, f"{seen} is said to be held by {rule} until {until}")
    blocker = _blocker(seen, rule)
    if by != blocker:
        broken(Invariant.WHY, f"{seen} is said to be held by {rule} of {by}, not {blocker}")
    if whole:
        answer = explain(kernel, seen.run.id)
        if answer is None or (answer.rule, answer.until, answer.by) != (rule, until, by):
            broken(Invariant.WHY, f"{seen}: {answer} does not say {rule}")
    if any(not isinstance(action, AskEstimate) for action in kernel.stage.actions):
        broken(Invariant.TWIN, f"asking why {seen} waits made {kernel.stage.actions}")


def bars(mirror: Mirror, seen: Seen) -> list[Bar]:
    """Every rule that holds this run, by the mirror."""
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
    if seen.session.line[0] is not seen:
        return [(Rule.SESSION_ORDER, None)]
    found = (
        mirror.session_bar(seen, now),
        mirror.agent_bar(seen, now),
        mirror.tasks_bar(seen),
        mirror.lane_bar(seen, now),
    )
    if found[0] is not None:
        return [found[0]]
    return [bar for bar in found if bar is not None]


def _blocker(seen: Seen, rule: Rule) -> str | None:
    if rule is Rule.STEERED and seen.taken_by is not None:
        return seen.taken_by.run.id
    if rule is Rule.SESSION_ORDER:
        return seen.session.line[0].run.id
    if rule in {Rule.SESSION_BUSY, Rule.SESSION_THROTTLED}:
        return seen.session.running[0].run.id
    return None
