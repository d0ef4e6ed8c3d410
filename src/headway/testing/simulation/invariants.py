"""What must hold between two steps.

Nothing is overdue, nothing waits that could start, and each answer to "why does it wait?" is true.
"""

from headway.core.actions import AskEstimate
from headway.core.kernel import Kernel
from headway.core.why import explain, holding_rule, lane_views
from headway.model.time import Instant
from headway.model.words import Rule
from headway.testing.simulation.ahead import CALLED_BACK_AFTER
from headway.testing.simulation.bars import (
    agent_bar,
    all_bars,
    budget_bar,
    lane_bar,
    may_start_draining,
    session_bar,
    tasks_bar,
)
from headway.testing.simulation.ledger import Ledger
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.seen import FINAL_CUTS, Seen, SeenLane, Where
from headway.testing.simulation.starting import ready
from headway.testing.simulation.violation import Invariant, Violation, broken


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
    if seen.ahead and seen.cut is None and seen.started_at + CALLED_BACK_AFTER <= now:
        broken(Invariant.AHEAD, f"{seen} waits for its slot since {seen.started_at}")
    if seen.cut is None:
        if run.timeout is not None and seen.started_at + run.timeout <= now:
            broken(Invariant.WINDOW, f"{seen} goes on after its timeout")
    elif seen.cut_at + mirror.settings.cancel_grace <= now:
        broken(Invariant.SLOT_HELD, f"{seen} was to be abandoned when its grace was over")


def check_ahead(mirror: Mirror, kernel: Kernel) -> None:
    """Those that wait for their slot are said to wait (X-1)."""
    for view in lane_views(kernel):
        lane = mirror.lanes[view.name]
        waiting = [seen for seen in mirror.runs.values() if seen.lane is lane and not seen.ticket]
        ahead = [seen for seen in lane.live if seen.ahead]
        counted = (len(lane.live) - len(ahead), len(waiting) + len(ahead))
        if (view.running, view.waiting) != counted:
            broken(Invariant.WHY, f"{view} does not say {counted}")


def check_standing(mirror: Mirror, ledger: Ledger) -> None:
    """No run waits that no rule holds, none goes on that must not, and background makes room."""
    for session in mirror.sessions.values():
        if session.line:
            _check_head(mirror, session.line[0])
    for lane in mirror.lanes.values():
        for seen in lane.next_up:
            _check_held(mirror, seen, mirror.now)
        _check_yielding(mirror, lane)
    ends = mirror.draining and not mirror.keeps_waiting
    for seen in mirror.runs.values():
        if seen.parent is not None and seen.ends_with_parent:
            over = seen.where is Where.TURN or seen.cut in FINAL_CUTS
            if not over:
                broken(Invariant.STOPPED, f"{seen} goes on, though its turn was cut")
        if ends and seen.waits and not may_start_draining(mirror, seen):
            broken(Invariant.LOST_CALLER, f"{seen} waits for a start that will never be")
    if ledger.memories != mirror.memories.kept:
        kept = mirror.memories.kept
        broken(Invariant.MEMORY, f"remembered is {ledger.memories}, not {kept}")


def _check_head(mirror: Mirror, head: Seen) -> None:
    bar = session_bar(mirror, head, mirror.now)
    if bar is None:
        _check_held(mirror, head, mirror.now)
    elif bar[0] is Rule.SESSION_BUSY and head.message:
        beats = [turn for turn in head.session.running if turn.heartbeat and turn.cut is None]
        if beats:
            broken(Invariant.PREEMPTION, f"{head} waits for {beats} of its session")


def _check_held(mirror: Mirror, head: Seen, now: Instant) -> None:
    if agent_bar(mirror, head, now) is not None:
        return
    bar = tasks_bar(mirror, head) or lane_bar(mirror, head)
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
    if budget_bar(mirror, lane) is not None:
        return
    waiting = [head.session for head in ready(mirror, lane, mirror.now) if head.plain]
    for seen in own:
        others = sum(1 for session in waiting if session is not seen.session)
        if others <= sum(1 for other in own if other.cut is not None):
            continue
        if seen.yields and seen.cut is None and seen.lent_to is None:
            broken(Invariant.PREEMPTION, f"{seen} does not yield in lane {lane.name}")


def check_why(mirror: Mirror, kernel: Kernel, seen: Seen, *, whole: bool) -> None:
    """The rule that is said to hold this run really holds it; `whole` asks for all that is said."""
    try:
        rule, until, by = holding_rule(kernel, kernel.stage.runs[seen.run.id])
        answer = explain(kernel, seen.run.id) if whole else None
    except Exception as error:  # whatever it is, the kernel is at fault
        what = f"{type(error).__name__}: {error}"
        raise Violation(Invariant.TWIN, f"asking why {seen} waits: {what}") from error
    true = dict(all_bars(mirror, seen))
    if rule not in true:
        broken(Invariant.WHY, f"{seen} is said to be held by {rule}; true are {list(true)}")
    if until != true[rule] or (until is not None and until < mirror.now):
        broken(Invariant.WHY, f"{seen} is said to be held by {rule} until {until}")
    blocker = _blocker(seen, rule)
    if by != blocker:
        broken(Invariant.WHY, f"{seen} is said to be held by {rule} of {by}, not {blocker}")
    if answer is not None and (answer.rule, answer.until, answer.by) != (rule, until, by):
        broken(Invariant.WHY, f"{seen}: {answer} does not say {rule}")
    if any(not isinstance(action, AskEstimate) for action in kernel.stage.actions):
        broken(Invariant.TWIN, f"asking why {seen} waits made {kernel.stage.actions}")
    if kernel.stage.called:
        broken(Invariant.TWIN, f"asking why {seen} waits called up {kernel.stage.called}")


def _blocker(seen: Seen, rule: Rule) -> str | None:
    if rule is Rule.STEERED and seen.taken_by is not None:
        return seen.taken_by.run.id
    if rule is Rule.SESSION_ORDER:
        return seen.session.line[0].run.id
    if rule in {Rule.SESSION_BUSY, Rule.SESSION_THROTTLED}:
        return seen.session.running[0].run.id
    return None
