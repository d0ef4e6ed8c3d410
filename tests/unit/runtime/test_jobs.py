"""Jobs as people handle them: overlap, gates, pausing, runs by hand, declarations, and the log (C, X-7)."""

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from headway import Headway, InvalidInput, Refused, Reply, Route, Turn
from headway.core.firing import MAX_FAILURES, OVERLAPS, REPLACED
from headway.model.errors import JobNotFound
from headway.model.events import CallbackFailed, Event, JobFired, JobPassed, JobPaused, JobsChanged
from headway.model.job import MAX_RECENT, MAX_SUMMARY
from headway.model.schedule import Cron, Every
from headway.model.time import DAY, HOUR, MINUTE, SECOND
from headway.model.words import Fired, Reason, State
from headway.runtime.bus import Listener
from tests.unit.runtime.times import (
    NEW_YORK,
    SAO_PAULO,
    Diary,
    Mailbox,
    a_clock,
    dues,
    instant,
    log_of,
    program,
    quiet,
    starting,
    told,
    until,
    when,
)
from tests.unit.runtime.worlds import hear, only

CHAT = Route("chat", peer="42")


# Overlap with its own firings (C-7).


@starting("2026-01-01 12:00")
async def test_c7_skip_makes_no_run_while_one_is_unfinished() -> None:
    diary = Diary(takes_s=150)
    async with program(diary) as hw:
        await hw.jobs.add("o", "a", every="1m", text="x", overlap="skip")
        await until("2026-01-01 12:07")
        skipped = f"skipped: {OVERLAPS}"
        assert await told(hw, "a/o") == ["on_time", skipped, skipped] * 2 + ["on_time"]
        assert diary.began == [when(f"2026-01-01 12:0{minute}") for minute in (1, 4, 7)]
        await hw.close(0)


@starting("2026-01-01 12:00")
async def test_c7_queue_runs_one_after_the_other_and_none_is_lost() -> None:
    diary = Diary(takes_s=70)
    async with program(diary) as hw:
        await hw.jobs.add("o", "a", every="1m", text="x")
        await until("2026-01-01 12:05")
        assert set(await told(hw, "a/o")) == {"on_time"}
        await hw.jobs.edit("a/o", every="9d")
        await until("2026-01-01 13:00")
        first = when("2026-01-01 12:01")
        assert diary.began == [first + n * timedelta(seconds=70) for n in range(5)]


@starting("2026-01-01 12:00")
async def test_c7_queue_has_a_bound_and_says_so() -> None:
    diary = Diary(takes_s=1e6)
    async with program(diary) as hw:
        await hw.jobs.add("o", "a", every="1m", text="x", timeout="90d")
        await until("2026-01-01 12:30")
        kinds = [line.kind for line in await log_of(hw, "a/o")]
        assert kinds == [Fired.ON_TIME] * MAX_RECENT + [Fired.SKIPPED] * (30 - MAX_RECENT)
        await hw.close(0)


@pytest.mark.parametrize("session", ["isolated", "job"])
def test_c7_allow_lets_them_run_beside_each_other(session: str) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary(takes_s=150)
        async with program(diary) as hw:
            await hw.jobs.add("o", "a", every="1m", text="x", overlap="allow", session=session)
            await until("2026-01-01 12:05")
            assert diary.began == [when(f"2026-01-01 12:0{minute}") for minute in range(1, 6)]
            seen = {turn.session for turn in diary.turns}
            assert len(seen) == (5 if session == "isolated" else 1)
            await hw.close(0)

    main()


@starting("2026-01-01 12:00")
async def test_c7_interrupt_ends_the_running_one_and_starts_the_new_one() -> None:
    diary = Diary(takes_s=150)
    async with program(diary) as hw:
        await hw.jobs.add("o", "a", every="1m", text="x", overlap="interrupt")
        await until("2026-01-01 12:03")
        assert diary.began == [when(f"2026-01-01 12:0{minute}") for minute in (1, 2, 3)]
        assert diary.cancelled == [when(f"2026-01-01 12:0{minute}") for minute in (2, 3)]
        lines = await log_of(hw, "a/o")
        endings = [line.outcome.reason for line in lines if line.outcome is not None]
        assert endings == [Reason.SUPERSEDED] * 2
        assert lines[-1].state is State.RUNNING
        await hw.close(0)


@starting("2026-01-01 12:00")
async def test_c7_interrupt_after_a_pause_runs_the_latest_of_the_missed_ones() -> None:
    diary = Diary()
    clock = a_clock()
    async with program(diary, clock=clock) as hw:
        await hw.jobs.add("o", "a", cron="0 * * * *", text="x", overlap="interrupt", misfire="all")
        clock.stepped = 3 * HOUR + 10 * MINUTE
        hw.engine._parts.timekeeper.look()
        await asyncio.sleep(61)
        assert await told(hw, "a/o") == [f"skipped: {REPLACED}"] * 2 + ["late"]
        assert len(diary.began) == 1


@starting("2026-01-01 12:00")
async def test_c1_sessions_fresh_for_each_firing_or_one_for_the_job_or_any() -> None:
    diary = Diary()
    async with program(diary) as hw:
        for session in ("isolated", "job", "telegram:dm:42"):
            await hw.jobs.add(session[:3], "a", every="1m", text=session, session=session)
        await until("2026-01-01 12:03")
        seen = {text: {t.session for t in diary.turns if t.text == text} for text in diary.texts}
        assert len(seen["isolated"]) == 3
        assert len(seen["job"]) == 1
        assert seen["telegram:dm:42"] == {"telegram:dm:42"}


# The look before an agent is woken.


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
@pytest.mark.parametrize("answer", [True, False, 1, "", None])
def test_x7_a_gate_that_says_no_wakes_nobody(plain: bool, answer: object) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary()
        hw = program(diary)

        async def look() -> object:
            return answer

        hw.function("look")((lambda: answer) if plain else look)
        async with hw:
            await hw.jobs.add("g", "a", every="1h", text="x", gate={"function": "look"})
            await until("2026-01-01 13:00:30")
            expected = "on_time" if answer else "skipped: the gate said no"
            assert await told(hw, "a/g") == [expected]
            assert len(diary.began) == bool(answer)
            await until("2026-01-01 14:00:30")
            assert await told(hw, "a/g") == [expected] * 2

    main()


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
def test_x7_a_gate_that_raises_wakes_nobody_and_the_log_says_why(plain: bool) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary()
        hw = program(diary)

        def fail() -> bool:
            raise ConnectionError("no mail server")

        async def fail_later() -> bool:
            return fail()

        hw.function("look")(fail if plain else fail_later)
        async with hw:
            heard = hear(hw)
            await hw.jobs.add("g", "a", every="1h", text="x", gate={"function": "look"})
            await until("2026-01-01 14:00:30")
            line = "skipped: the look failed: ConnectionError: no mail server"
            assert await told(hw, "a/g") == [line] * 2
            assert diary.began == []
            assert len(only(heard, CallbackFailed)) == 2
            assert [event.reason for event in only(heard, JobPassed)] == [line[9:]] * 2

    main()


@starting("2026-01-01 12:00")
async def test_x7_a_hung_gate_is_given_up_and_holds_up_no_other_job() -> None:
    diary = Diary()
    hw = program(diary)

    @hw.function("hangs")
    async def hangs() -> bool:
        await asyncio.sleep(1e9)
        return True

    async with hw:
        await hw.jobs.add("g", "a", every="1h", text="hung", gate={"function": "hangs"})
        await hw.jobs.add("p", "a", every="1h", text="plain")
        await until("2026-01-01 15:01")
        assert diary.texts == ["plain"] * 3
        assert diary.began == [when(f"2026-01-01 {hour}:00") for hour in (13, 14, 15)]
        assert await dues(hw, "a/g") == diary.began, "and its own recurrence is intact"
        assert {line.kind for line in await log_of(hw, "a/g")} == {Fired.SKIPPED}


@starting("2026-01-01 12:00")
async def test_x7_a_gate_that_nobody_has_waits_for_a_node_that_has_it() -> None:
    diary = Diary()
    async with program(diary) as hw:
        await hw.jobs.add("g", "a", every="1h", text="x", gate={"function": "later"})
        await until("2026-01-01 13:20")
        assert await log_of(hw, "a/g") == []
        hw.function("later")(lambda: True)
        await until("2026-01-01 13:21")
        assert await told(hw, "a/g") == ["late"]


@pytest.mark.parametrize(("code", "line"), [("0", "on_time"), ("1", "skipped: the gate said no")])
def test_x7_a_command_as_a_gate(code: str, line: str) -> None:
    async def main() -> None:
        hw = Headway()

        @hw.agent("a")
        async def agent(turn: Turn) -> str:
            return turn.text

        async with hw, asyncio.timeout(60):
            command = [sys.executable, "-c", f"raise SystemExit({code})"]
            with hw.events() as listener:
                await hw.jobs.add("g", "a", at="in 20ms", text="x", gate={"command": command})
                fired = [
                    event
                    async for event in _first(listener, JobFired, JobPassed)
                    if isinstance(event, JobFired | JobPassed)
                ]
                assert await told(hw, fired[0].job) == [line]

    asyncio.run(main())


async def _first(listener: Listener, *kinds: type[Event]) -> AsyncIterator[Event]:
    """The first event of these kinds."""
    async for event in listener:
        if isinstance(event, kinds):
            yield event
            return


@starting("2026-01-01 12:00")
async def test_x7_more_gates_than_can_be_asked_at_once_each_is_asked_once() -> None:
    diary = Diary()
    hw = program(diary)
    asked = 0

    @hw.function("slow")
    async def slow() -> bool:
        nonlocal asked
        asked += 1
        await asyncio.sleep(10)
        return True

    hw.heartbeat("a", every="10m", prompt="?", target="none")
    async with hw:
        hw.set_lane("cron", 1_000)
        for number in range(500):
            await hw.jobs.add(
                f"g{number}", "a", cron="0 * * * *", text=str(number), gate={"function": "slow"}
            )
        await hw.jobs.add("plain", "a", cron="1 13 * * *", text="plain")
        await until("2026-01-01 13:50")
        assert asked == 500
        assert len({text for text in diary.texts if text.isdigit()}) == 500
        assert diary.texts.count("?") == len((await hw.heartbeats.log("a")).entries)
        plain = diary.began[diary.texts.index("plain")]
        assert plain == when("2026-01-01 13:01"), "plain jobs do not wait for gates"


# Functions that say what the agent is told.


@starting("2026-01-01 12:00")
async def test_a_function_says_the_text_when_the_firing_starts_and_none_wakes_nobody() -> None:
    diary = Diary()
    hw = program(diary)
    said: list[str | None] = ["one", None, "", "two"]

    @hw.every("1h", agent="a")
    async def news() -> str | None:
        return said.pop(0)

    async with hw:
        await until("2026-01-01 16:00")
        assert diary.texts == ["one", "two"]
        lines = await log_of(hw, "a/news")
        assert [line.kind for line in lines] == [Fired.ON_TIME] * 4
        assert [line.state for line in lines[:3]] == [State.DONE] * 3
        assert lines[1].outcome is not None
        assert lines[1].outcome.text == ""


@starting("2026-01-01 12:00")
async def test_c9_a_function_that_raises_is_tried_again_and_then_fails_its_run() -> None:
    diary = Diary()
    hw = program(diary)
    calls = 0

    @hw.every("1h", agent="a")
    def news() -> str:
        nonlocal calls
        calls += 1
        raise LookupError("no news")

    async with hw:
        await until("2026-01-01 13:30")
        (line,) = await log_of(hw, "a/news")
        assert line.outcome is not None
        assert (line.state, line.outcome.error) == (State.FAILED, "LookupError: no news")
        assert calls == 4
        assert diary.began == []


# Too many failures (C-9).


@starting("2026-01-01 12:00")
async def test_c9_ten_failures_in_a_row_pause_the_job_with_a_notice_on_its_channel() -> None:
    diary = Diary(error=ValueError("never"))
    mailbox = Mailbox()
    hw = program(diary)
    hw.channel("chat")(mailbox)
    async with hw:
        heard = hear(hw)
        job = await hw.jobs.add("f", "a", every="1h", text="x", retries=0, deliver=CHAT)
        await until("2026-01-01 21:59")
        view = await hw.jobs.get(job.id)
        assert (view.consecutive_failures, view.enabled, mailbox.notices) == (9, True, [])
        await until("2026-01-01 22:01")
        view = await hw.jobs.get(job.id)
        assert not view.enabled
        assert view.paused == f"failed {MAX_FAILURES} times in a row"
        assert view.next_run_at is None
        assert view.last_error == "ValueError: never"
        (notice,) = mailbox.notices
        assert notice.route == CHAT
        assert "'f'" in notice.text
        assert job.id in notice.text
        assert mailbox.at[-1] == when("2026-01-01 22:00")
        (paused,) = only(heard, JobPaused)
        assert paused.job == job.id
        await until("2026-01-03 12:00")
        assert len(diary.began) == MAX_FAILURES

        diary.error = None
        await hw.jobs.resume(job.id)
        view = await hw.jobs.get(job.id)
        assert (view.paused, view.consecutive_failures) == ("", 0)
        await until("2026-01-03 13:30")
        assert len(diary.began) == MAX_FAILURES + 1


@starting("2026-01-01 12:00")
async def test_c9_a_success_and_a_stop_break_no_rule_of_ten() -> None:
    diary = Diary(error=ValueError("never"))
    async with program(diary) as hw:
        job = await hw.jobs.add("f", "a", every="1h", text="x", retries=0)
        await until("2026-01-01 21:01")
        diary.error = None
        await until("2026-01-01 22:01")
        diary.error = ValueError("never")
        await until("2026-01-02 07:01")
        view = await hw.jobs.get(job.id)
        assert (view.consecutive_failures, view.enabled) == (9, True)


@starting("2026-01-01 12:00")
async def test_c9_ten_failures_pause_a_job_also_when_the_first_of_them_are_forgotten() -> None:
    diary = Diary(error=ValueError("never"))
    async with program(diary, retained_runs=3) as hw:
        job = await hw.jobs.add("daily", "a", cron="0 9 * * *", text="x", retries=0)
        await until("2026-01-11 08:00")
        view = await hw.jobs.get(job.id)
        assert (view.consecutive_failures, view.enabled) == (9, True)
        await until("2026-01-20 12:00")
        assert len(diary.began) == MAX_FAILURES
        assert not (await hw.jobs.get(job.id)).enabled


@starting("2026-01-01 12:00")
async def test_c9_a_job_whose_firings_pile_up_is_paused_too() -> None:
    diary = Diary(takes_s=150, error=ValueError("never"))
    async with program(diary) as hw:
        job = await hw.jobs.add("slow", "a", every="1m", text="x", retries=0)
        await until("2026-01-01 13:00")
        view = await hw.jobs.get(job.id)
        assert (view.enabled, view.paused) == (False, f"failed {MAX_FAILURES} times in a row")
        assert len(diary.began) <= MAX_FAILURES + 1
        await hw.close(0)


# Pausing, removing, running by hand (C-10).


@starting("2026-01-01 12:00")
async def test_c10_pausing_ends_firings_that_wait_and_leaves_the_running_one_alone() -> None:
    diary = Diary(takes_s=600)
    async with program(diary) as hw:
        job = await hw.jobs.add("p", "a", every="1m", text="x")
        await until("2026-01-01 12:04")
        await hw.jobs.pause(job.id)
        await quiet()
        lines = await log_of(hw, job.id)
        assert [line.state for line in lines] == [State.RUNNING] + [State.CANCELLED] * 3
        await until("2026-01-01 13:00")
        assert (await log_of(hw, job.id))[0].state is State.DONE
        assert len(diary.began) == 1
        assert diary.cancelled == []
        await hw.jobs.resume(job.id)
        assert (await hw.jobs.get(job.id)).next_run_at == instant("2026-01-01 13:01")


@starting("2026-01-01 12:00")
async def test_c10_pausing_ends_also_many_firings_that_wait_to_be_caught_up() -> None:
    diary = Diary()
    clock = a_clock()
    async with program(diary, clock=clock) as hw:
        job = await hw.jobs.add(
            "p", "a", cron="0 * * * *", text="x", misfire="all", misfire_window="9d"
        )
        hw.set_lane("cron", 0)
        clock.stepped = 4 * DAY
        hw.engine._parts.timekeeper.look()
        await asyncio.sleep(90)
        assert len(await log_of(hw, job.id)) == 96
        await hw.jobs.pause(job.id)
        await quiet()
        hw.set_lane("cron", 30)
        await asyncio.sleep(3600)
        assert diary.began == []


@starting("2026-01-01 12:00")
async def test_c10_pausing_ends_a_firing_that_waits_for_its_retry() -> None:
    diary = Diary(error=ValueError("no"))
    async with program(diary) as hw:
        job = await hw.jobs.add("p", "a", every="1h", text="x")
        await until("2026-01-01 13:00:01")
        await hw.jobs.pause(job.id)
        await until("2026-01-01 14:00")
        assert len(diary.began) == 1
        (line,) = await log_of(hw, job.id)
        assert line.state is State.CANCELLED


@starting("2026-01-01 12:00")
async def test_c10_removing_keeps_the_log_and_ends_what_waits() -> None:
    diary = Diary(takes_s=100)
    async with program(diary) as hw:
        job = await hw.jobs.add("r", "a", every="1m", text="x")
        await until("2026-01-01 12:02")
        await hw.jobs.remove(job.id)
        await until("2026-01-01 12:30")
        assert [line.state for line in await log_of(hw, job.id)] == [State.DONE, State.CANCELLED]
        with pytest.raises(JobNotFound):
            await hw.jobs.get(job.id)
        again = await hw.jobs.add("r", "a", every="1m", text="y")
        assert again.id != job.id
        assert await log_of(hw, again.id) == []


@starting("2026-01-01 12:00")
async def test_c10_a_run_by_hand_keeps_the_natural_cadence() -> None:
    diary = Diary()
    async with program(diary) as hw:
        job = await hw.jobs.add("m", "a", every="1h", text="x")
        await until("2026-01-01 12:20")
        handle = await hw.jobs.run(job.id)
        assert handle is not None
        assert await handle.reply() == "re: x"
        assert (await hw.jobs.get(job.id)).next_run_at == instant("2026-01-01 13:00")
        await until("2026-01-01 14:01")
        assert await told(hw, job.id) == ["manual", "on_time", "on_time"]
        assert diary.began == [when(f"2026-01-01 {t}") for t in ("12:20", "13:00", "14:00")]


@starting("2026-01-01 12:00")
async def test_c10_a_run_by_hand_while_somebody_looks_delays_no_firing() -> None:
    diary = Diary()
    hw = program(diary)

    @hw.function("slow")
    async def slow() -> bool:
        await asyncio.sleep(10)
        return True

    async with hw:
        gate = {"function": "slow"}
        job = await hw.jobs.add("m", "a", every="1h", text="x", gate=gate, misfire="skip")
        await until("2026-01-01 13:00:05")
        await hw.jobs.run(job.id)
        await until("2026-01-01 13:00:20")
        assert await told(hw, job.id) == ["on_time", "manual"] or await told(hw, job.id) == [
            "manual",
            "on_time",
        ]
        assert len(diary.began) == 2


@starting("2026-01-01 12:00")
async def test_c10_a_run_by_hand_works_while_paused_and_leaves_it_paused() -> None:
    diary = Diary()
    async with program(diary) as hw:
        job = await hw.jobs.add("m", "a", every="1h", text="x", enabled=False)
        handle = await hw.jobs.run(job.id)
        assert handle is not None
        await handle.wait()
        view = await hw.jobs.get(job.id)
        assert (view.enabled, view.next_run_at) == (False, None)
        assert await hw.jobs.run(job.id, only_if_due=True) is None
        await until("2026-01-02 12:00")
        assert len(diary.began) == 1


@starting("2026-01-01 12:00")
async def test_c10_a_run_by_hand_only_if_due_makes_one_run_of_one_due_time() -> None:
    diary = Diary()
    clock = a_clock()
    async with program(diary, clock=clock) as hw:
        job = await hw.jobs.add("m", "a", every="1h", text="x")
        assert await hw.jobs.run(job.id, only_if_due=True) is None
        clock.stepped = HOUR + MINUTE
        handle = await hw.jobs.run(job.id, only_if_due=True)
        assert handle is not None
        hw.engine._parts.timekeeper.look()
        await asyncio.sleep(120)
        assert len(diary.began) == 1
        assert (await hw.jobs.get(job.id)).next_run_at == instant("2026-01-01 14:00")


@starting("2026-01-01 12:00")
async def test_c10_two_runs_by_hand_at_one_moment_and_one_at_the_very_due_time() -> None:
    diary = Diary()
    async with program(diary) as hw:
        job = await hw.jobs.add("m", "a", every="1h", text="x", overlap="allow")
        first, second = await hw.jobs.run(job.id), await hw.jobs.run(job.id)
        assert first is not None
        assert second is not None
        assert first.id != second.id
        await asyncio.sleep(3600)
        await hw.jobs.run(job.id)
        await until("2026-01-01 14:00:30")
        assert when("2026-01-01 14:00") in diary.began, "the recurrence is intact"


# Jobs that fire once.


@starting("2026-01-01 12:00")
async def test_c1_a_reminder_goes_when_it_was_run_and_its_log_stays() -> None:
    diary = Diary()
    async with program(diary) as hw:
        job = await hw.jobs.add("r", "a", at="in 20m", text="tea")
        await until("2026-01-01 12:20")
        assert diary.began == [when("2026-01-01 12:20")]
        with pytest.raises(JobNotFound):
            await hw.jobs.get(job.id)
        assert await told(hw, job.id) == ["on_time"]


@starting("2026-01-01 12:00")
async def test_c1_a_reminder_that_failed_or_is_to_be_kept_stays_disabled() -> None:
    diary = Diary(error=ValueError("no"))
    async with program(diary) as hw:
        failed = await hw.jobs.add("f", "a", at="in 20m", text="tea", retries=0)
        kept = await hw.jobs.add("k", "a", at="in 30m", text="tea", delete_after_run=False)
        await until("2026-01-01 12:25")
        diary.error = None
        await until("2026-01-01 12:31")
        for job in (failed, kept):
            view = await hw.jobs.get(job.id)
            assert (view.enabled, view.next_run_at) == (False, None)
        with pytest.raises(InvalidInput, match="enabled"):
            await hw.jobs.resume(kept.id)
        await hw.jobs.edit(kept.id, at="in 5m", enabled=True)
        await until("2026-01-01 12:36")
        assert len(diary.began) == 3


@starting("2026-01-01 12:00")
async def test_c1_delete_after_run_means_after_the_first_one() -> None:
    diary = Diary()
    async with program(diary) as hw:
        job = await hw.jobs.add("r", "a", every="1h", text="x", delete_after_run=True)
        await until("2026-01-01 18:00")
        assert len(diary.began) == 1
        with pytest.raises(JobNotFound):
            await hw.jobs.get(job.id)


# Changing (C-2, C-13).


@starting("2026-01-01 12:00")
async def test_c2_c13_a_patch_keeps_the_zone_and_all_that_it_does_not_name() -> None:
    async with program(Diary()) as hw:
        job = await hw.jobs.add("z", "a", cron="0 9 * * *", tz=SAO_PAULO, text="x", lane="main")
        changed = await hw.jobs.edit(job.id, cron="30 8 * * *")
        assert changed.job.schedule == Cron("30 8 * * *", SAO_PAULO)
        assert changed.next_run_at == instant("2026-01-02 08:30", SAO_PAULO)
        changed = await hw.jobs.edit(job.id, text="y")
        assert changed.next_run_at == instant("2026-01-02 08:30", SAO_PAULO)
        assert changed.job.lane == "main"
        changed = await hw.jobs.edit(job.id, tz=NEW_YORK)
        assert changed.next_run_at == instant("2026-01-01 08:30", NEW_YORK)
        changed = await hw.jobs.edit(job.id, every="1h")
        assert isinstance(changed.job.schedule, Every)
        assert changed.job.schedule.zone == NEW_YORK
        with pytest.raises(InvalidInput, match="timout"):
            await hw.jobs.edit(job.id, timout="5m")  # type: ignore[call-arg]
        assert (await hw.jobs.get(job.id)).job == changed.job


@starting("2026-01-01 12:00")
async def test_c5_an_edit_that_leaves_the_schedule_alone_moves_no_firing() -> None:
    diary = Diary()
    async with program(diary) as hw:
        await hw.jobs.add("e", "a", every="1h", text="x")
        for minute in range(10, 60, 10):
            await until(f"2026-01-01 12:{minute}")
            await hw.jobs.edit("a/e", text=f"at {minute}", every="1h")
        await until("2026-01-01 13:00")
        assert diary.texts == ["at 50"]


@starting("2026-01-01 12:00")
async def test_c6_a_reminder_whose_time_has_come_is_not_lost_by_a_change_of_zone() -> None:
    diary = Diary()
    clock = a_clock()
    async with program(diary, clock=clock) as hw:
        job = await hw.jobs.add("r", "a", at="in 20m", text="tea")
        clock.stepped = HOUR
        await hw.jobs.edit(job.id, tz=NEW_YORK)
        await quiet()
        assert diary.texts == ["tea"]
        assert await told(hw, job.id) == ["late"]


# Declared in code.


def declared(diary: Diary, expression: str = "0 9 * * *", **options: object) -> Headway:
    hw = Headway("sqlite:///" + str(options.pop("file")))
    hw.agent("a")(diary)

    @hw.cron(expression, agent="a", **options)  # type: ignore[arg-type]
    async def brief() -> str:
        return "brief"

    return hw


def test_declared_jobs_are_renewed_and_paused_ones_stay_paused(tmp_path: object) -> None:
    async def main() -> None:
        file = f"{tmp_path}/h.db"
        async with declared(Diary(), file=file) as hw:
            first = await hw.jobs.get("a/brief")
            assert first.job.declared
        async with declared(Diary(), "30 8 * * *", file=file, lane="main") as hw:
            renewed = await hw.jobs.get("a/brief")
            assert renewed.id == first.id
            assert renewed.job.schedule == Cron("30 8 * * *", "UTC")
            assert renewed.job.lane == "main"
            await hw.jobs.pause("a/brief")
        async with declared(Diary(), file=file) as hw:
            paused = await hw.jobs.get("a/brief")
            assert (paused.id, paused.enabled, paused.next_run_at) == (first.id, False, None)
            assert paused.job.lane is None, "what the code says no longer is as if it never had"
            assert len((await hw.jobs.list()).jobs) == 1

    asyncio.run(main())


@starting("2026-01-01 12:00")
async def test_declared_jobs_fire_and_a_past_time_is_no_fault() -> None:
    diary = Diary()
    hw = program(diary)

    @hw.at("2020-01-01T09:00Z", agent="a")
    def long_ago() -> str:
        return "never"

    @hw.at("2026-01-01T12:30Z", agent="a")
    def soon() -> str:
        return "soon"

    @hw.cron("*/20 * * * *", agent="a", name="often", text="often")
    def unused() -> None: ...

    async with hw:
        with pytest.raises(InvalidInput):
            hw.cron("* * * * *", agent="a")
        await until("2026-01-01 13:00")
        assert diary.texts == ["often", "soon", "often", "often"]


# The log (C-11) and what is heard (C-12).


@starting("2026-01-01 12:00")
async def test_c11_the_log_tells_times_tokens_attempts_and_a_bounded_summary() -> None:
    hw = program(Diary())

    @hw.agent("wordy")
    async def wordy(turn: Turn) -> Reply:
        await asyncio.sleep(5)
        turn.usage(input=100, output=20)
        turn.usage(input=1, output=2)
        if turn.attempt == 1:
            raise OSError("first")
        return Reply("€" * 10_000, data={"much": "data"})

    async with hw:
        hw.engine.attempts.jitter = lambda: 0.5
        job = await hw.jobs.add("w", "wordy", every="1h", text="x")
        await until("2026-01-01 13:01")
        (line,) = await log_of(hw, job.id)
        due = instant("2026-01-01 13:00")
        assert (line.due_at, line.at) == (due, due)
        assert (line.attempts, line.state) == (2, State.DONE)
        assert line.finished_at == due + 12 * SECOND
        assert line.started_at in {due, due + 7 * SECOND}
        assert line.outcome is not None
        assert (line.outcome.tokens_in, line.outcome.tokens_out) == (202, 44)
        assert line.outcome.reply is not None
        assert line.outcome.text == "€" * (MAX_SUMMARY // 3)
        assert line.outcome.reply.data is None


@starting("2026-01-01 12:00")
async def test_c11_the_memory_store_keeps_200_lines_of_each_job_and_pages_them() -> None:
    async with program(Diary()) as hw:
        await hw.jobs.add("m", "a", every="1m", text="x")
        await until("2026-01-01 17:00")
        assert len(await log_of(hw, "a/m")) == 200
        page = await hw.jobs.log("a/m", limit=150)
        assert page.entries[0].due_at == instant("2026-01-01 17:00")
        rest = await hw.jobs.log("a/m", limit=150, cursor=page.cursor)
        assert len(rest.entries) == 50
        assert rest.cursor is None
        assert rest.entries[0].due_at == page.entries[-1].due_at - MINUTE


@starting("2026-01-01 12:00")
async def test_c12_every_change_is_heard_as_cache_cron() -> None:
    async with program(Diary()) as hw:
        heard = hear(hw)
        counts = []
        job = await hw.jobs.add("c", "a", every="1h", text="x")
        counts.append(len(only(heard, JobsChanged)))
        await hw.jobs.edit(job.id, text="y")
        counts.append(len(only(heard, JobsChanged)))
        await hw.jobs.pause(job.id)
        await hw.jobs.resume(job.id)
        counts.append(len(only(heard, JobsChanged)))
        await hw.jobs.remove(job.id)
        counts.append(len(only(heard, JobsChanged)))
        assert counts[:3] == [1, 2, 4]
        assert counts[3] > 4
        assert JobsChanged.__struct_config__.tag == "cache:cron"


@starting("2026-01-01 12:00")
async def test_a_job_that_sets_jobs_from_its_own_turn() -> None:
    """An agent sets its own reminder."""
    hw = program(Diary())
    told_at: list[object] = []

    @hw.agent("planner")
    async def planner(turn: Turn) -> str:
        if turn.job is None:
            await hw.jobs.add("tea", "planner", at="in 5m", text="the tea is ready")
            return "I will remind you"
        told_at.append((turn.text, turn.job is not None))
        return turn.text

    async with hw:
        assert await hw.send("planner", "remind me") == "I will remind you"
        await until("2026-01-01 12:06")
        assert told_at == [("the tea is ready", True)]


@starting("2026-01-01 12:00")
async def test_c3_bad_schedules_are_refused_and_leave_nothing_behind() -> None:
    async with program(Diary()) as hw:
        for bad in (
            {"cron": "*/0 * * * *"},
            {"cron": "0 0 31 2 *"},
            {"every": "0s"},
            {"at": "2020-01-01"},
        ):
            with pytest.raises(Refused):
                await hw.jobs.add("b", "a", text="x", **bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="tz"):
            await hw.jobs.add("b", "a", text="x", cron="0 9 * * *", tz="Mars/Olympus")
        assert (await hw.jobs.list()).jobs == ()
        await hw.jobs.add("b", "a", text="x", cron="0 0 29 2 *")
        with pytest.raises(InvalidInput, match="name"):
            await hw.jobs.add("b", "a", text="x", every="1h")


@starting("2026-01-01 12:00")
async def test_c9_an_attempt_that_takes_too_long_is_tried_again() -> None:
    hw = program(Diary())
    began: list[int] = []

    @hw.agent("hangs")
    async def hangs(turn: Turn) -> str:
        began.append(turn.attempt)
        await asyncio.sleep(3600)
        return "never"

    async with hw:
        await hw.jobs.add("h", "hangs", every="1d", text="x", timeout="10s", retries=2)
        handle = await hw.jobs.run("hangs/h")
        assert handle is not None
        outcome = await handle.wait()
        assert (outcome.state, outcome.reason) == (State.FAILED, Reason.TIMED_OUT)
        assert began == [1, 2, 3]
