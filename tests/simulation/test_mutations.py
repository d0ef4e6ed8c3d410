"""Proof that the simulator can fail: each test breaks the kernel on purpose, and must be found out.

A mutation is a small change to the kernel, the kind that a careless edit makes. The finding must
name the invariant that is really broken. Checks that look inside the kernel (its counters, its own
answer to why a run waits) are switched off unless they are meant, so that the picture made from the
kernel's actions has to see it by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest

from headway.core import endings, lending, retry, returning
from headway.core import stage as stage_module
from headway.core.actions import Action, Ended, Finish, NoteWait, Steer
from headway.core.alarms import Alarms
from headway.core.floor import Floor
from headway.core.kernel import Kernel
from headway.core.lanes import Flow, Lane
from headway.core.live import BACKGROUND, Kind, LiveRun
from headway.core.messages import Messages
from headway.core.session import SessionQueue
from headway.core.stage import Stage
from headway.core.stopping import Stopping
from headway.model.outcome import Outcome
from headway.model.run import RunId, SessionKey
from headway.model.settings import LaneSettings, Settings
from headway.model.time import Instant
from headway.model.words import Cut, Rule
from headway.testing import Finding, Invariant, simulate
from headway.testing.simulation import invariants, telling
from headway.testing.simulation.witness import Witness

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
    patch.setattr(returning, "NoteExhausted", lambda run, attempt: NoteWait(run, 0, 0))
    patch.setattr(Witness, "_note_wait", lambda self, action: None)


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
