"""What a due job does: misfires, overlaps, failures in a row (C-5 to C-10)."""

from datetime import datetime
from itertools import count

import pytest
from msgspec.structs import replace

from headway.core.firing import (
    GO,
    GRACE,
    MAX_CAUGHT_UP,
    MAX_FAILURES,
    MAX_LINES,
    OVERLAPS,
    TOO_MANY,
    TOO_OLD,
    TOO_SOON,
    Decision,
    Go,
    Look,
    Skip,
    catch_up_pace,
    decide,
    failures,
    run_now,
    settle,
)
from headway.core.request import Composer
from headway.model.heartbeat import HeartbeatSettings
from headway.model.job import JOB, MAX_RECENT, Ending, Job, JobRecord, Past, Tally, Ticking
from headway.model.payload import Ask, Execute, Say
from headway.model.run import AgentName, JobId, Route, RunId
from headway.model.schedule import At, Cron, Every
from headway.model.settings import AgentSettings
from headway.model.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Instant, Span, instant_of
from headway.model.words import Fired, Misfire, Overlap, Source, State
from headway.store.tallies import tallied

NOON: Instant = 1_760_011_200 * SECOND
"""2025-10-09T12:00:00Z."""
AGENT = AgentName("brief")
HOURLY = Every(HOUR, NOON)
ROUTE = Route("telegram", peer="42")


def job(**changes: object) -> Job:
    plain = Job(JobId("j1"), "digest", AGENT, HOURLY, Say("What is new?"), NOON - DAY)
    return replace(plain, **changes)


def record(
    what: Job | None = None, next_at: Instant | None = NOON, *recent: Past, **ticking: object
) -> JobRecord:
    stands = Ticking(3, next_at, **ticking)  # type: ignore[arg-type]
    return JobRecord(what or job(), stands, tuple(recent))


def fired(what: JobRecord, now: Instant = NOON, look: Look = GO) -> Decision:
    numbers = count(1)
    composer = Composer(what.job.agent, AgentSettings())
    return decide(what, now, composer, lambda: RunId(f"r{next(numbers)}"), look=look)


def past(state: State, ago: Span = HOUR, run_id: str = "r0") -> Past:
    return Past(RunId(run_id), NOON - ago, NOON - ago, state)


def kinds(decision: Decision) -> list[Fired]:
    return [entry.kind for entry in decision.advance.entries]


def test_a_due_job_makes_one_run_and_its_next_instant_is_one_period_on() -> None:
    """C-5."""
    decision = fired(record(), NOON + 3 * SECOND)
    (run,) = decision.advance.runs
    assert run.text == "What is new?"
    assert run.source is Source.FIRING
    assert run.lane == "cron"
    assert run.retries == 3
    assert run.firing is not None
    assert run.firing.due_at == NOON
    assert kinds(decision) == [Fired.ON_TIME]
    assert decision.advance.version == 3
    assert decision.advance.ticking.next_at == NOON + HOUR


@pytest.mark.parametrize("state", [State.FAILED, State.RUNNING, State.CANCELLED, State.QUEUED])
def test_the_next_firing_does_not_depend_on_the_last_ones_fate(state: State) -> None:
    """C-5."""
    decision = fired(record(None, NOON, past(state)))
    assert len(decision.advance.runs) == 1
    assert decision.advance.ticking.next_at == NOON + HOUR


def test_periods_do_not_drift_however_late_the_timekeeper_wakes() -> None:
    """C-2: the n-th firing is at anchor + n × period."""
    ticking = Ticking(1, NOON)
    dues = []
    for nth in range(100):
        now = NOON + nth * 10 * MINUTE + 20 * SECOND
        every = job(schedule=Every(10 * MINUTE, NOON))
        decision = fired(JobRecord(every, ticking), now)
        (run,) = decision.advance.runs
        assert run.firing is not None
        dues.append(run.firing.due_at)
        ticking = decision.advance.ticking
    assert dues == [NOON + nth * 10 * MINUTE for nth in range(100)]


class TestMisfire:
    """C-6: missed while nobody was there."""

    DOWN = NOON + 3 * DAY + 10 * MINUTE

    @pytest.mark.parametrize(
        ("misfire", "ran", "missed"),
        [(Misfire.ONCE, [72], 72), (Misfire.SKIP, [], 73), (Misfire.ALL, range(49, 73), 49)],
    )
    def test_three_days_of_an_hourly_job(
        self, misfire: Misfire, ran: list[int], missed: int
    ) -> None:
        decision = fired(record(job(misfire=misfire)), self.DOWN)
        dues = [run.firing.due_at for run in decision.advance.runs if run.firing]
        assert dues == [NOON + nth * HOUR for nth in ran]
        told = [entry for entry in decision.advance.entries if entry.kind is Fired.MISSED]
        assert sum(entry.count for entry in told) == missed
        assert decision.advance.ticking.next_at == NOON + 3 * DAY + HOUR

    def test_each_missed_firing_that_is_not_run_has_a_line(self) -> None:
        decision = fired(record(), NOON + 5 * HOUR)
        assert kinds(decision) == [Fired.MISSED] * 5 + [Fired.ON_TIME]
        dues = [entry.due_at for entry in decision.advance.entries]
        assert dues == [NOON + nth * HOUR for nth in range(6)]

    def test_very_many_missed_ones_share_a_line(self) -> None:
        decision = fired(record(job(schedule=Every(SECOND, NOON))), NOON + HOUR)
        lines = [entry for entry in decision.advance.entries if entry.kind is Fired.MISSED]
        assert len(lines) == MAX_LINES + 1
        assert sum(line.count for line in lines) == 3600
        assert lines[0].count == 3600 - MAX_LINES

    def test_all_has_a_bound(self) -> None:
        every_second = job(schedule=Every(SECOND, NOON), misfire=Misfire.ALL)
        decision = fired(record(every_second), NOON + HOUR)
        assert len(decision.advance.runs) == MAX_CAUGHT_UP + 1
        lines = [entry for entry in decision.advance.entries if entry.kind is Fired.MISSED]
        assert sum(line.count for line in lines) == 3600 - MAX_CAUGHT_UP

    def test_a_little_late_is_not_missed(self) -> None:
        for misfire in Misfire:
            decision = fired(record(job(misfire=misfire)), NOON + GRACE)
            assert kinds(decision) == [Fired.ON_TIME]

    def test_a_missed_at_runs_late(self) -> None:
        decision = fired(record(job(schedule=At(NOON))), NOON + HOUR)
        assert kinds(decision) == [Fired.LATE]
        assert decision.advance.ticking.next_at is None

    def test_an_at_beyond_the_window_is_recorded_as_missed(self) -> None:
        decision = fired(record(job(schedule=At(NOON))), NOON + 2 * DAY)
        (entry,) = decision.advance.entries
        assert (entry.kind, entry.reason, entry.due_at) == (Fired.MISSED, TOO_OLD, NOON)
        assert not decision.advance.runs

    def test_those_that_make_up_start_when_they_are_told(self) -> None:
        composer = Composer(AGENT, AgentSettings())
        decision = decide(
            record(), NOON + 10 * MINUTE, composer, lambda: RunId("r"), catch_up_at=NOON + DAY
        )
        assert [run.due_at for run in decision.advance.runs] == [NOON + DAY]

    def test_five_hundred_together_are_spread_over_a_minute(self) -> None:
        assert catch_up_pace(500, MINUTE) == 120_000
        assert catch_up_pace(2, MINUTE) == SECOND

    def test_a_cron_job_in_its_zone(self) -> None:
        saturday = instant_of_text("2026-03-07T18:00:00+00:00")
        daily = job(schedule=Cron("30 2 * * *", "America/New_York"))
        first = instant_of_text("2026-03-08T07:00:00+00:00")
        decision = fired(record(daily, first), saturday + 2 * DAY)
        assert kinds(decision) == [Fired.MISSED, Fired.LATE]


class TestOverlap:
    """C-7."""

    def test_skip(self) -> None:
        decision = fired(record(job(overlap=Overlap.SKIP), NOON, past(State.RUNNING)))
        assert not decision.advance.runs
        (entry,) = decision.advance.entries
        assert (entry.kind, entry.reason) == (Fired.SKIPPED, OVERLAPS)
        assert decision.advance.ticking.next_at == NOON + HOUR

    def test_skip_runs_once_the_earlier_one_has_ended(self) -> None:
        decision = fired(record(job(overlap=Overlap.SKIP), NOON, past(State.FAILED)))
        assert len(decision.advance.runs) == 1

    def test_queue_waits_in_the_session_of_the_job(self) -> None:
        decision = fired(record(None, NOON, past(State.RUNNING)))
        (run,) = decision.advance.runs
        assert run.session == "job:j1"
        assert run.firing is not None
        assert run.firing.session == "agent:brief:firing:j1:r1"

    def test_queue_has_a_bound(self) -> None:
        waiting = [past(State.QUEUED, nth * MINUTE) for nth in range(1, MAX_RECENT + 1)]
        (entry,) = fired(record(None, NOON, *waiting)).advance.entries
        assert (entry.kind, entry.reason) == (Fired.SKIPPED, TOO_MANY)

    def test_allow_gives_each_its_own_session(self) -> None:
        decision = fired(record(job(overlap=Overlap.ALLOW), NOON, past(State.RUNNING)))
        assert decision.advance.runs[0].session == "job:j1:r1"

    def test_allow_in_one_session_lets_many_go_at_once(self) -> None:
        (run,) = fired(record(job(overlap=Overlap.ALLOW, session=JOB))).advance.runs
        assert run.queue is not None
        assert run.queue.max_concurrent == 10_000

    def test_interrupt_names_those_that_give_way(self) -> None:
        decision = fired(
            record(
                job(overlap=Overlap.INTERRUPT),
                NOON,
                past(State.RUNNING, run_id="r8"),
                past(State.DONE, run_id="r7"),
            )
        )
        assert decision.supersedes == ("r8",)
        assert len(decision.advance.runs) == 1

    def test_a_session_of_its_own_choice(self) -> None:
        (run,) = fired(record(job(session="telegram:dm:42"))).advance.runs
        assert run.session == "telegram:dm:42"
        assert run.firing is not None
        assert run.firing.session == ""


class TestFailures:
    """C-9: ten in a row pause the job."""

    def tallied(self, failed: int, since: Instant = 0) -> Tally:
        return Tally(since, failed, RunId("r0"), State.FAILED, NOON - HOUR)

    def failed(self, number: int, what: Job | None = None, since: Instant = 0) -> JobRecord:
        return replace(record(what, NOON), tally=self.tallied(number, since))

    def test_nine_do_not(self) -> None:
        assert len(fired(self.failed(9)).advance.runs) == 1

    def test_ten_do(self) -> None:
        decision = fired(self.failed(MAX_FAILURES, job(deliver=ROUTE)))
        assert not decision.advance.runs
        assert not decision.advance.enabled
        assert decision.advance.ticking.due_at is None
        assert decision.paused
        (notice,) = decision.advance.notices
        assert notice.route == ROUTE
        assert "paused" in notice.text
        assert "headway jobs resume j1" in notice.text

    def test_those_before_it_was_enabled_do_not_count(self) -> None:
        assert failures(self.failed(10, since=5)) == 0

    def test_what_waits_ends_with_the_pause(self) -> None:
        waiting, running = past(State.QUEUED, run_id="r8"), past(State.RUNNING, run_id="r9")
        paused = fired(replace(self.failed(MAX_FAILURES), recent=(running, waiting)))
        assert paused.ends == ("r8",)

    def test_the_pause_comes_with_the_tenth_failure_not_with_the_next_firing(self) -> None:
        later = replace(self.failed(MAX_FAILURES), ticking=Ticking(3, NOON + HOUR))
        decision = settle(later, NOON)
        assert decision is not None
        assert decision.paused

    def test_less_changes_nothing(self) -> None:
        later = replace(self.failed(3), ticking=Ticking(3, NOON + HOUR))
        assert settle(later, NOON) is None

    def test_a_heartbeat_says_where_its_alerts_go(self) -> None:
        beats = job(name="heartbeat", heartbeat=HeartbeatSettings())
        decision = settle(self.failed(MAX_FAILURES, beats), NOON, ROUTE)
        assert decision is not None
        (notice,) = decision.advance.notices
        assert notice.route == ROUTE
        assert "headway heartbeat resume brief" in notice.text

    @pytest.mark.parametrize(
        ("states", "failed"),
        [
            ([State.FAILED] * 3, 3),
            ([State.FAILED, State.DONE, State.FAILED], 1),
            ([State.FAILED, State.CANCELLED, State.FAILED], 2),
            ([State.DONE], 0),
        ],
    )
    def test_how_runs_are_counted(self, states: list[State], failed: int) -> None:
        tally = None
        for number, state in enumerate(states):
            ending = Ending(JobId("j1"), RunId(f"r{number}"), state, NOON + number)
            tally = tallied(tally, ending, since=5)
            assert tallied(tally, ending, since=5) == tally, "twice the same counts once"
        assert tally is not None
        assert tally.failed == failed
        again = Ending(JobId("j1"), RunId("later"), State.FAILED, NOON)
        assert tallied(tally, again, since=6).failed == 1, "enabled since: a new count"


class TestOnce:
    """C-1: a job that fires once goes when it has done its work."""

    def settled(self, state: State, **changes: object) -> Decision | None:
        once = job(schedule=At(NOON), delete_after_run=True, **changes)
        return settle(record(once, None, past(state)), NOON)

    def test_done(self) -> None:
        decision = self.settled(State.DONE)
        assert decision is not None
        assert decision.advance.delete

    def test_failed_stays_to_be_looked_at(self) -> None:
        decision = self.settled(State.FAILED)
        assert decision is not None
        assert not decision.advance.delete
        assert not decision.advance.enabled

    def test_unfinished(self) -> None:
        assert self.settled(State.RUNNING) is None


class TestByHand:
    """C-10: a run by hand keeps the natural cadence."""

    def test_run_now(self) -> None:
        composer = Composer(AGENT, AgentSettings())
        decision = run_now(record(None, NOON + HOUR), NOON, composer, RunId("r1"))
        assert kinds(decision) == [Fired.MANUAL]
        assert decision.advance.ticking == Ticking(3, NOON + HOUR)

    def test_a_wake_that_was_asked_for(self) -> None:
        decision = fired(record(None, NOON + HOUR, wake_at=NOON))
        assert kinds(decision) == [Fired.MANUAL]
        assert decision.advance.ticking == Ticking(3, NOON + HOUR)


class TestLook:
    """X-7, H-2: somebody looks before an agent is woken."""

    def test_no_is_a_line_and_no_run(self) -> None:
        decision = fired(record(claimed_until=NOON + MINUTE), NOON, Skip("the gate said no"))
        assert not decision.advance.runs
        (entry,) = decision.advance.entries
        assert (entry.kind, entry.reason) == (Fired.SKIPPED, "the gate said no")
        assert decision.advance.ticking == Ticking(3, NOON + HOUR)

    def test_yes_may_bring_the_words_and_the_route(self) -> None:
        (run,) = fired(record(), NOON, Go("Look!", ROUTE)).advance.runs
        assert (run.text, run.route) == ("Look!", ROUTE)

    def test_heartbeats_keep_a_distance(self) -> None:
        """H-4."""
        beats = job(heartbeat=HeartbeatSettings(ack_max_chars=120), overlap=Overlap.SKIP)
        soon = fired(record(beats, NOON, past(State.DONE, 29 * SECOND)))
        (entry,) = soon.advance.entries
        assert (entry.kind, entry.reason) == (Fired.SKIPPED, TOO_SOON)
        later = fired(record(beats, NOON, past(State.DONE, 30 * SECOND)))
        (run,) = later.advance.runs
        assert run.source is Source.HEARTBEAT
        assert run.priority == 20
        assert run.firing is not None
        assert run.firing.ack_max_chars == 120

    @pytest.mark.parametrize(
        ("every", "began_after", "fires"),
        [
            (30 * SECOND, 40 * MILLISECOND, True),
            (30 * SECOND, SECOND, True),
            (30 * SECOND, 2 * SECOND, False),
            (29 * SECOND, 40 * MILLISECOND, False),
        ],
    )
    def test_a_cadence_of_just_that_distance_is_kept_though_each_begins_a_moment_late(
        self, every: Span, began_after: Span, fires: bool
    ) -> None:
        """H-4: what had to wait keeps the whole distance."""
        schedule = Every(every, NOON - 9 * every)
        beats = job(schedule=schedule, heartbeat=HeartbeatSettings(interval=every))
        before = Past(RunId("r0"), NOON - every, NOON - every + began_after, State.DONE)
        decision = fired(record(beats, NOON, before), NOON + 5 * MILLISECOND)
        assert kinds(decision) == [Fired.ON_TIME if fires else Fired.SKIPPED]

    def test_one_that_was_asked_for_by_hand_need_not(self) -> None:
        """H-4."""
        beats = job(heartbeat=HeartbeatSettings())
        decision = fired(record(beats, None, past(State.DONE, SECOND), wake_at=NOON))
        assert kinds(decision) == [Fired.MANUAL]


def test_what_a_payload_becomes() -> None:
    """C-1."""
    (asked,) = fired(record(job(payload=Ask("digest")))).advance.runs
    (ran,) = fired(record(job(payload=Execute(("date",))))).advance.runs
    assert asked.firing is not None
    assert asked.firing.function == "digest"
    assert ran.firing is not None
    assert ran.firing.command == Execute(("date",))


def test_what_the_job_says_goes_into_the_run() -> None:
    """C-1."""
    said = job(
        lane="night",
        timeout=5 * MINUTE,
        retries=1,
        max_attempts=4,
        priority=3,
        deliver=ROUTE,
    )
    (run,) = fired(record(said)).advance.runs
    assert (run.lane, run.timeout, run.retries, run.max_attempts, run.priority, run.route) == (
        "night",
        5 * MINUTE,
        1,
        4,
        3,
        ROUTE,
    )


def test_a_stagger_moves_every_firing_alike() -> None:
    """C-8."""
    spread = job(stagger=HOUR)
    ticking = Ticking(1, NOON + DAY)
    first = fired(JobRecord(spread, ticking), NOON + DAY).advance.ticking.next_at
    assert first is not None
    second = fired(JobRecord(spread, Ticking(2, first)), first).advance.ticking.next_at
    assert second == first + HOUR
    assert first % HOUR != 0


def instant_of_text(text: str) -> Instant:
    return instant_of(datetime.fromisoformat(text), "at")


def test_what_has_its_run_already_makes_no_other_and_the_job_goes_on() -> None:
    """C-5: the clock was set back and the job changed since, so that its past comes again."""
    decision = fired(record(None, NOON, past(State.DONE, 0)))
    assert not decision.advance.runs
    assert not decision.advance.entries
    assert decision.advance.ticking.next_at == NOON + HOUR
