"""Proof that the simulator can fail: each test breaks the kernel on purpose, and must be found out.

A mutation is a small change to the kernel, the kind that a careless edit makes. The finding must
name the invariant that is really broken. Checks that look inside the kernel (its counters, its own
answer to why a run waits) are switched off unless they are meant, so that the picture made from the
kernel's actions has to see it by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify

import msgspec
import pytest

from headway.core import ahead, endings, lending, retry, returning
from headway.core import stage as stage_module
from headway.core.actions import Action, Ended, Finish, NoteExhausted, NoteWait, Steer
from headway.core.alarms import Alarms
from headway.core.floor import Floor
from headway.core.kernel import Kernel
from headway.core.lanes import AgentLoad, Flow, Head, Lane
from headway.core.live import BACKGROUND, PLAIN, Kind, LiveRun
from headway.core.messages import Messages
from headway.core.session import BLANK, SessionQueue
from headway.core.stage import Stage
from headway.core.stopping import Stopping
from headway.model.outcome import Outcome
from headway.model.run import RunId, SessionKey
from headway.model.settings import LaneSettings, Settings
from headway.model.time import HOUR, Instant
from headway.model.words import Cut, Rule
from headway.testing import Finding, Invariant, simulate
from headway.testing.simulation import invariants, telling

MOST_SEEDS = 200

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutation:
    """What is changed, and what must be found."""

    patch: Patch
    found: frozenset[Invariant]
    inside: bool
    """Whether the checks that look inside the kernel are on."""


MUTATIONS: dict[str, Mutation] = {}


def mutation(*found: Invariant, inside: bool = False) -> Callable[[Patch], Patch]:
    def register(patch: Patch) -> Patch:
        MUTATIONS[patch.__name__] = Mutation(patch, frozenset(found), inside)
        return patch

    return register


# Deadlines, windows, retries.


@mutation(Invariant.DEADLINE)
def skip_the_deadline_of_waiting_runs(patch: pytest.MonkeyPatch) -> None:
    passed = Kernel._deadline_passed

    def skip(self: Kernel, live: LiveRun) -> None:
        if live.ticket:
            passed(self, live)

    patch.setattr(Kernel, "_deadline_passed", skip)


@mutation(Invariant.DEADLINE)
def skip_the_deadline_of_running_ones(patch: pytest.MonkeyPatch) -> None:
    passed = Kernel._deadline_passed

    def skip(self: Kernel, live: LiveRun) -> None:
        if not live.ticket:
            passed(self, live)

    patch.setattr(Kernel, "_deadline_passed", skip)


@mutation(Invariant.WINDOW)
def never_close_a_debounce_window(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Messages, "window_closed", lambda self, buffer: buffer.session)


@mutation(Invariant.TRANSITION)
def retry_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(returning, "delay", lambda retries, jitter: retry.FIRST_DELAY // 4)


# Slots.


@mutation(Invariant.LANE_LIMIT)
def free_a_slot_twice(patch: pytest.MonkeyPatch) -> None:
    free = Floor.free

    def twice(self: Floor, live: LiveRun, *, keep_slot: bool = False) -> None:
        free(self, live, keep_slot=keep_slot)
        live.lane.in_use = max(0, live.lane.in_use - 1)

    patch.setattr(Floor, "free", twice)


@mutation(Invariant.COUNTERS, inside=True)
def free_a_slot_twice_and_compare_counters(patch: pytest.MonkeyPatch) -> None:
    free_a_slot_twice(patch)


@mutation(Invariant.IDLE_SLOT)
def never_free_a_slot(patch: pytest.MonkeyPatch) -> None:
    free = Floor.free
    patch.setattr(
        Floor, "free", lambda self, live, keep_slot=False: free(self, live, keep_slot=True)
    )


@mutation(Invariant.LANE_RESERVE)
def ignore_the_reserve(patch: pytest.MonkeyPatch) -> None:
    apply = Lane.apply

    def without(lane: Lane, settings: LaneSettings, now: Instant) -> None:
        apply(lane, msgspec.structs.replace(settings, reserve=0), now)

    patch.setattr(Lane, "apply", without)


@mutation(Invariant.LENDING)
def forget_to_lend(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lending, "lend", lambda stage: stage.borrowers.clear())


@mutation(Invariant.SLOT_HELD)
def abandon_before_the_grace_is_over(patch: pytest.MonkeyPatch) -> None:
    init = Stage.__init__

    def hasty(self: Stage, settings: Settings, now: Instant) -> None:
        init(self, msgspec.structs.replace(settings, cancel_grace=0), now)

    patch.setattr(Stage, "__init__", hasty)


@mutation(Invariant.TASK_LIMIT)
def ignore_the_limit_of_tasks_in_flight(patch: pytest.MonkeyPatch) -> None:
    def only_reserves(self: Floor, lane: Lane, kind: Kind) -> bool:
        return bool(kind & BACKGROUND) and lane.background >= lane.width - lane.reserve

    patch.setattr(Floor, "_kind_waits", only_reserves)
    patch.setattr(Floor, "_task_quota", lambda self, agent: 1000)


# Starts stored ahead of their slots.


@mutation(Invariant.AHEAD)
def store_more_ahead_than_allowed(patch: pytest.MonkeyPatch) -> None:
    allow = ahead.allow
    patch.setattr(ahead, "allow", lambda stage, lane, count: allow(stage, lane, count + 2))


@mutation(Invariant.AHEAD)
def let_it_count_for_ever_that_some_may_be_ahead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ahead, "COUNTS_FOR", HOUR)


@mutation(Invariant.AHEAD)
def store_wide_sessions_ahead(patch: pytest.MonkeyPatch) -> None:
    may_wait = ahead._may_wait

    def any_width(stage: Stage, live: LiveRun) -> bool:
        width, live.width = live.width, 1
        may = may_wait(stage, live)
        live.width = width
        return may

    patch.setattr(ahead, "_may_wait", any_width)


@mutation(Invariant.AHEAD)
def store_last_attempts_ahead(patch: pytest.MonkeyPatch) -> None:
    may_wait = ahead._may_wait

    def also_last(stage: Stage, live: LiveRun) -> bool:
        live.attempt -= 1
        may = may_wait(stage, live)
        live.attempt += 1
        return may

    patch.setattr(ahead, "_may_wait", also_last)


@mutation(Invariant.AHEAD)
def store_ahead_what_has_begun_before(patch: pytest.MonkeyPatch) -> None:
    may_wait = ahead._may_wait

    def begun_or_not(stage: Stage, live: LiveRun) -> bool:
        begun, live.begun = live.begun, False
        may = may_wait(stage, live)
        live.begun = begun
        return may

    patch.setattr(ahead, "_may_wait", begun_or_not)


@mutation(Invariant.AHEAD)
def store_ahead_what_goes_with_a_memory(patch: pytest.MonkeyPatch) -> None:
    may_wait = ahead._may_wait

    def forgetful(stage: Stage, live: LiveRun) -> bool:
        session = live.session
        memory, session.memory = session.memory, BLANK
        may = may_wait(stage, live)
        session.memory = memory
        return may

    patch.setattr(ahead, "_may_wait", forgetful)


@mutation(Invariant.AHEAD)
def store_whatever_comes_next_ahead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ahead, "_may_wait", lambda stage, live: True)


@mutation(Invariant.IDLE_SLOT)
def store_ahead_while_slots_are_free(patch: pytest.MonkeyPatch) -> None:
    fill = ahead.fill

    def early(stage: Stage, lane: Lane) -> None:
        in_use, lane.in_use = lane.in_use, lane.width
        fill(stage, lane)
        lane.in_use = in_use

    patch.setattr(ahead, "fill", early)


@mutation(Invariant.AHEAD, Invariant.FAIR_PICK)
def store_who_comes_last_ahead(patch: pytest.MonkeyPatch) -> None:
    first = Floor.first_unstarted

    def last(self: Floor, flow: Flow) -> LiveRun | None:
        flow.heads = [entry for entry in flow.heads if entry[3].posted and not entry[3].next_up]
        flow.heads.sort()
        flow.heads[:] = flow.heads[-1:] + flow.heads[:-1]
        return first(self, flow)

    patch.setattr(Floor, "first_unstarted", last)


@mutation(Invariant.CRASH)
def store_the_same_start_ahead_twice(patch: pytest.MonkeyPatch) -> None:
    def as_it_is_posted(self: Floor, flow: Flow) -> LiveRun | None:
        heads = [entry for entry in flow.heads if entry[3].posted]
        flow.heads = heads
        heapify(heads)
        return heads[0][3] if heads else None

    patch.setattr(Floor, "first_unstarted", as_it_is_posted)


@mutation(Invariant.FAIR_PICK)
def serve_those_ahead_before_others_of_their_agent(patch: pytest.MonkeyPatch) -> None:
    line = Flow.line

    def ahead_first(self: Flow) -> list[Head]:
        return line(self) and (self.next_up or self.heads)

    patch.setattr(Flow, "line", ahead_first)


@mutation(Invariant.FAIR_PICK)
def serve_those_ahead_before_other_agents(patch: pytest.MonkeyPatch) -> None:
    next_flow = Floor.next_flow

    def ahead_first(self: Floor, lane: Lane, now: Instant) -> Flow | None:
        flow = next_flow(self, lane, now)
        for live in lane.next_up.values():
            other = lane.flows[PLAIN][live.agent.name]
            if flow is not None and not other.parked:
                return other
        return flow

    patch.setattr(Floor, "quick_flow", lambda self, lane: None)
    patch.setattr(Floor, "next_flow", ahead_first)


@mutation(Invariant.FAIR_PICK)
def let_those_ahead_weigh_on_their_agent(patch: pytest.MonkeyPatch) -> None:
    start_ahead, leave, call_up = Stage.start_ahead, ahead.leave, ahead.call_up

    def weigh(stage: Stage, live: LiveRun, change: int) -> None:
        live.agent.inflight += change
        stage.floor._replace(live.agent)

    def start(self: Stage, live: LiveRun) -> None:
        start_ahead(self, live)
        weigh(self, live, 1)

    def left(stage: Stage, live: LiveRun) -> None:
        if live.ticket in live.lane.next_up:
            weigh(stage, live, -1)
        leave(stage, live)

    def up(stage: Stage, live: LiveRun) -> None:
        call_up(stage, live)
        weigh(stage, live, -1)

    patch.setattr(Stage, "start_ahead", start)
    patch.setattr(ahead, "leave", left)
    patch.setattr(ahead, "call_up", up)


@mutation(Invariant.PREEMPTION)
def clear_no_slot_for_those_ahead(patch: pytest.MonkeyPatch) -> None:
    count = Floor.count_ready

    def others(self: Floor, lane: Lane, kind: Kind, most: int, now: Instant) -> int:
        return max(0, count(self, lane, kind, most, now) - len(lane.next_up))

    patch.setattr(Floor, "count_ready", others)


@mutation(Invariant.LANE_LIMIT)
def call_up_without_taking_the_slot(patch: pytest.MonkeyPatch) -> None:
    call_up = ahead.call_up

    def lightly(stage: Stage, live: LiveRun) -> None:
        call_up(stage, live)
        live.lane.in_use -= 1

    patch.setattr(ahead, "call_up", lightly)


@mutation(Invariant.IDLE_SLOT)
def let_those_ahead_take_slots(patch: pytest.MonkeyPatch) -> None:
    fill = ahead.fill

    def heavily(stage: Stage, lane: Lane) -> None:
        before = len(lane.next_up)
        fill(stage, lane)
        lane.in_use += len(lane.next_up) - before

    patch.setattr(ahead, "fill", heavily)


@mutation(Invariant.BUDGET)
def serve_those_ahead_although_their_agent_is_held(patch: pytest.MonkeyPatch) -> None:
    bar = Floor.agent_bar

    def lenient(
        self: Floor, agent: AgentLoad, kind: Kind, now: Instant
    ) -> tuple[Rule, Instant | None] | None:
        is_ahead = any(flow.count and flow.next_up for flow in agent.flows)
        return None if is_ahead and kind == PLAIN else bar(self, agent, kind, now)

    patch.setattr(Floor, "agent_bar", lenient)


@mutation(Invariant.WAIT_NOTICE)
def call_up_without_a_note_of_the_wait(patch: pytest.MonkeyPatch) -> None:
    serve = Stage._serve

    def silently(self: Stage, live: LiveRun) -> None:
        if live.next_up:
            ahead.call_up(self, live)
        else:
            serve(self, live)

    patch.setattr(Stage, "_serve", silently)


@mutation(Invariant.TRANSITION, Invariant.WAIT_NOTICE)
def let_a_start_ahead_count_as_a_beginning(patch: pytest.MonkeyPatch) -> None:
    start_ahead = Stage.start_ahead

    def begin(self: Stage, live: LiveRun) -> None:
        start_ahead(self, live)
        live.begun = True

    patch.setattr(Stage, "start_ahead", begin)


@mutation(Invariant.AHEAD)
def never_call_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ahead, "look_after", lambda stage, lane: setattr(lane, "awaited", False))


@mutation(Invariant.PREEMPTION)
def call_back_too_soon(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ahead, "WAITS_AT_MOST", ahead.WAITS_AT_MOST // 2)


@mutation(Invariant.IDLE_SLOT, Invariant.AHEAD)
def forget_who_was_called_up(patch: pytest.MonkeyPatch) -> None:
    call_up = ahead.call_up

    def silently(stage: Stage, live: LiveRun) -> None:
        call_up(stage, live)
        stage.called.clear()

    patch.setattr(ahead, "call_up", silently)


@mutation(Invariant.CRASH)
def call_up_who_was_cut(patch: pytest.MonkeyPatch) -> None:
    def stay_posted(stage: Stage, live: LiveRun) -> None:
        live.lane.next_up.pop(live.ticket, None)

    patch.setattr(ahead, "leave", stay_posted)


@mutation(Invariant.COUNTERS, inside=True)
def keep_those_that_were_cut(patch: pytest.MonkeyPatch) -> None:
    def withdraw(stage: Stage, live: LiveRun) -> None:
        if live.posted:
            stage.floor.withdraw(live)

    patch.setattr(ahead, "leave", withdraw)


# Order and fairness.


@mutation(Invariant.SESSION_LIMIT)
def let_one_more_of_a_session_start(patch: pytest.MonkeyPatch) -> None:
    session_bar = Stage.session_bar

    def lenient(self: Stage, head: LiveRun) -> tuple[Rule, Instant | None] | None:
        bar = session_bar(self, head)
        return None if bar is not None and bar[0] is Rule.SESSION_BUSY else bar

    patch.setattr(Stage, "session_bar", lenient)


@mutation(Invariant.SESSION_ORDER, inside=True)
def last_in_first_out(patch: pytest.MonkeyPatch) -> None:
    def join(self: SessionQueue, live: LiveRun) -> list[LiveRun]:
        self.join_first(live)
        return []

    patch.setattr(SessionQueue, "join", join)


@mutation(Invariant.SESSION_ORDER, Invariant.IDLE_SLOT)
def put_retried_runs_at_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionQueue, "rejoin", SessionQueue.join)


@mutation(Invariant.FAIR_PICK)
def forget_who_was_served(patch: pytest.MonkeyPatch) -> None:
    claim = Floor.claim

    def forgetful(self: Floor, flow: Flow, now: Instant) -> LiveRun:
        live = claim(self, flow, now)
        live.agent.place = (0, 0, 0)
        return live

    patch.setattr(Floor, "claim", forgetful)


@mutation(Invariant.FAIR_PICK)
def ignore_priorities(patch: pytest.MonkeyPatch) -> None:
    line_up = Stage.line_up

    def flat(self: Stage, live: LiveRun, *, first: bool = False) -> None:
        line_up(self, live, first=first)
        live.rank = 0

    patch.setattr(Stage, "line_up", flat)


@mutation(Invariant.PREEMPTION)
def never_preempt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stage, "_preempt", lambda self, lane: None)


@mutation(Invariant.PREEMPTION)
def let_messages_wait_for_heartbeats(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Messages, "preempt_heartbeats", lambda self, session: None)


# Outcomes.


@mutation(Invariant.ONE_OUTCOME)
def drop_a_finish(patch: pytest.MonkeyPatch) -> None:
    take = Kernel.take_actions

    def drop(self: Kernel) -> list[Action]:
        return [
            action
            for action in take(self)
            if not (isinstance(action, Finish) and action.outcome.ok)
        ]

    patch.setattr(Kernel, "take_actions", drop)


@mutation(Invariant.ONE_OUTCOME)
def tell_an_outcome_twice(patch: pytest.MonkeyPatch) -> None:
    finish = Stage.finish

    def twice(self: Stage, live: LiveRun, outcome: Outcome) -> None:
        finish(self, live, outcome)
        self.actions.append(self.actions[-1])

    patch.setattr(Stage, "finish", twice)


@mutation(Invariant.LATE_RESULT)
def let_late_results_count(patch: pytest.MonkeyPatch) -> None:
    finished = Kernel.finished

    def lenient(
        self: Kernel, ticket: int, ended: Ended, now: Instant, *, jitter: float = 0.5
    ) -> bool:
        return finished(self, ticket, ended, now, jitter=jitter) or True

    patch.setattr(Kernel, "finished", lenient)


@mutation(Invariant.REASON)
def call_a_timeout_a_stop(patch: pytest.MonkeyPatch) -> None:
    outcomes = dict(endings.CUT_OUTCOMES)
    outcomes[Cut.TIMED_OUT] = outcomes[Cut.STOPPED]
    patch.setattr(endings, "CUT_OUTCOMES", outcomes)


@mutation(Invariant.VERDICT)
def let_any_number_of_tasks_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kernel, "_tasks_full", lambda self, run: False)


# Stops.


@mutation(Invariant.VERDICT)
def ignore_the_cutoff(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionQueue, "is_stale", lambda self, run: False)


@mutation(Invariant.STOPPED)
def forget_what_a_cut_turn_started(patch: pytest.MonkeyPatch) -> None:
    cut = Stage.cut

    def alone(self: Stage, live: LiveRun, reason: Cut) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Stage, "descendants", lambda self, live: [])
            cut(self, live, reason)

    patch.setattr(Stage, "cut", alone)


@mutation(Invariant.VERDICT)
def forget_the_debounce_buffer_in_a_stop(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stopping, "buffered", lambda self, session: [])


@mutation(Invariant.STOPPED)
def let_an_interrupt_wait_its_turn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Messages, "_interrupt", lambda self, session: None)


@mutation(Invariant.DRAINING)
def start_new_work_while_draining(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stage, "may_start_draining", lambda self, live: True)


# Messages.


@mutation(Invariant.MERGE)
def collect_whatever_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stage_module, "may_collect", lambda first, other: True)


@mutation(Invariant.STEERING)
def hand_out_a_message_that_was_taken_back(patch: pytest.MonkeyPatch) -> None:
    steered = Kernel.steered

    def generous(self: Kernel, ticket: int, message: RunId, now: Instant) -> bool:
        return steered(self, ticket, message, now) or True

    patch.setattr(Kernel, "steered", generous)


@mutation(Invariant.STEERING)
def steer_into_no_turn(patch: pytest.MonkeyPatch) -> None:
    take = Kernel.take_actions

    def quiet(self: Kernel) -> list[Action]:
        return [action for action in take(self) if not isinstance(action, Steer)]

    patch.setattr(Kernel, "take_actions", quiet)


@mutation(Invariant.MEMORY)
def forget_dropped_lines(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionQueue, "keep_line", lambda self, run: None)


@mutation(Invariant.MEMORY)
def never_release_a_session(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kernel, "release_idle", lambda self: None)


@mutation(Invariant.SESSION_LIMIT)
def ignore_the_token_estimate(patch: pytest.MonkeyPatch) -> None:
    estimated = Kernel.estimated

    def roomy(self: Kernel, key: SessionKey, now: Instant, *known: int) -> None:
        estimated(self, key, now)

    patch.setattr(Kernel, "estimated", roomy)


# Budgets, notes, answers, copies.


@mutation(Invariant.BUDGET)
def ignore_rate_limits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Floor, "hold", lambda self, provider, until: None)


@mutation(Invariant.WAIT_NOTICE)
def count_wrongly_who_was_ahead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        stage_module, "NoteWait", lambda run, waited, ahead: NoteWait(run, waited, ahead + 1)
    )


@mutation(Invariant.WHY, inside=True)
def say_that_the_lane_is_full(patch: pytest.MonkeyPatch) -> None:
    answer = (Rule.LANE_FULL, None, None)
    patch.setattr(invariants, "holding_rule", lambda kernel, live: answer)


@mutation(Invariant.TWIN)
def copy_a_kernel_without_its_alarms(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Alarms, "__deepcopy__", lambda self, memo: Alarms(), raising=False)


@mutation(Invariant.TRANSITION)
def resume_a_dead_worker_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(returning, "resumed_at", lambda live, now: None)


@mutation(Invariant.RESUMING)
def give_a_dead_worker_up_without_a_word(patch: pytest.MonkeyPatch) -> None:
    take = Kernel.take_actions

    def quiet(self: Kernel) -> list[Action]:
        return [action for action in take(self) if not isinstance(action, NoteExhausted)]

    patch.setattr(Kernel, "take_actions", quiet)


@mutation(Invariant.CRASH)
def raise_now_and_then(patch: pytest.MonkeyPatch) -> None:
    start = Stage.start

    def fragile(self: Stage, live: LiveRun) -> None:
        start(self, live)
        if live.run.attachments:
            raise KeyError(live.run.id)

    patch.setattr(Stage, "start", fragile)


def find(inside: bool, patch: pytest.MonkeyPatch) -> Finding:
    """The first finding, within a bounded number of seeds."""
    if not inside:
        patch.setattr(telling, "audit", lambda kernel, mirror: None)
        patch.setattr(telling, "check_why", lambda mirror, kernel, seen, whole: None)
    for seed in range(MOST_SEEDS):
        try:
            simulate(seed)
        except Finding as finding:
            return finding
    raise AssertionError(f"not found in {MOST_SEEDS} seeds")


@pytest.mark.parametrize("name", list(MUTATIONS))
def test_a_broken_kernel_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTATIONS[name]
    mutant.patch(monkeypatch)
    finding = find(mutant.inside, monkeypatch)
    assert finding.invariant in mutant.found, str(finding)


def test_a_finding_says_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    last_in_first_out(monkeypatch)
    finding = find(True, monkeypatch)
    with pytest.raises(Finding) as again:
        simulate(finding.seed)
    assert str(again.value) == str(finding)
    assert f"seed {finding.seed}, step {finding.step}: session_order" in str(finding)


def test_the_sound_kernel_is_not_found_out() -> None:
    """The findings above come from the mutations, not from the kernel."""
    for seed in range(20):
        simulate(seed)
