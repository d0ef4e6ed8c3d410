"""Jobs in a running node, in virtual time: exactly when, exactly once, whatever becomes of the runs (C)."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from headway import LaneSettings, Refuse, Turn
from headway.core.firing import FIRED
from headway.model.job import Advance, JobRecord
from headway.model.run import JobId
from headway.model.time import DAY, HOUR, SECOND
from headway.model.words import Fired, Reason, State
from tests.unit.runtime.times import (
    NEW_YORK,
    SAO_PAULO,
    Diary,
    a_clock,
    dues,
    each_day,
    instant,
    log_of,
    now,
    program,
    quiet,
    starting,
    told,
    until,
    when,
)

TEN_MINUTES = timedelta(minutes=10)


@pytest.fixture
def host_in_tokyo(monkeypatch: pytest.MonkeyPatch) -> object:
    """The machine's own zone is far from the job's."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("host_in_tokyo")
@starting("2026-01-01 00:00")
async def test_c2_c5_a_year_of_weekday_mornings_in_sao_paulo_on_a_host_in_tokyo() -> None:
    assert time.tzname[0] == "JST"
    diary = Diary(takes_s=40)
    async with program(diary) as hw:
        await hw.jobs.add("brief", "a", cron="0 9 * * 1-5", tz=SAO_PAULO, text="news?")
        await until("2027-01-01 00:00")
        days = each_day("2026-01-01", 365, 9, 0, SAO_PAULO)
        mornings = [day for day in days if day.weekday() < 5]
        assert len(mornings) == 261
        assert diary.began == mornings
        assert (await dues(hw, "a/brief"))[-200:] == mornings[-200:]
        view = await hw.jobs.get("a/brief")
        assert view.next_run_at == int(when("2027-01-01 09:00", SAO_PAULO).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("expression", "day", "fires"),
    [
        ("30 2 * * *", "2026-03-07", ["07T02:30-05:00", "08T03:00-04:00", "09T02:30-04:00"]),
        ("30 1 * * *", "2026-03-07", ["07T01:30-05:00", "08T01:30-05:00", "09T01:30-04:00"]),
        ("30 2 * * *", "2026-10-31", ["31T02:30-04:00", "01T02:30-05:00", "02T02:30-05:00"]),
        ("30 1 * * *", "2026-10-31", ["31T01:30-04:00", "01T01:30-04:00", "02T01:30-05:00"]),
        ("30 * * * *", "2026-11-01", ["01T00:30-04:00", "01T01:30-04:00", "01T01:30-05:00"]),
        ("30 * * * *", "2026-03-08", ["08T00:30-05:00", "08T01:30-05:00", "08T03:30-04:00"]),
    ],
)
def test_c4_half_past_one_and_two_in_new_york_through_both_changes_of_the_clock(
    expression: str, day: str, fires: list[str]
) -> None:
    @starting(f"{day} 00:00", NEW_YORK)
    async def main() -> None:
        diary = Diary()
        async with program(diary) as hw:
            await hw.jobs.add("night", "a", cron=expression, tz=NEW_YORK, text="hush")
            await asyncio.sleep(3 * 24 * 3600)
            shown = [
                began.astimezone(ZoneInfo(NEW_YORK)).isoformat(timespec="minutes")[8:]
                for began in diary.began[:3]
            ]
            assert shown == fires
            assert len(set(diary.began)) == len(diary.began)
            if not expression.startswith("30 *"):
                assert len(diary.began) == 3

    main()


@pytest.mark.parametrize("delayed_by", ["gate", "hook", "lane"])
def test_c2_every_ten_minutes_with_late_starts_does_not_drift_over_100_firings(
    delayed_by: str,
) -> None:
    @starting("2026-01-01 12:00:00.123456")
    async def main() -> None:
        diary = Diary()
        hw = program(diary)
        options: dict[str, object] = {}
        if delayed_by == "gate":

            @hw.function("slow")
            async def slow() -> bool:
                await asyncio.sleep(20)
                return True

            options["gate"] = {"function": "slow"}
        elif delayed_by == "hook":

            @hw.before
            async def prepare(turn: Turn) -> None:
                await asyncio.sleep(20)

        async with hw:
            begin = now()
            await hw.jobs.add("tick", "a", cron="@every 10m", text="tick", **options)  # type: ignore[arg-type]
            if delayed_by == "lane":
                hw.set_lane("cron", 0)
            for number in range(1, 101):
                await until(begin + number * TEN_MINUTES)
                if delayed_by == "lane":
                    await asyncio.sleep(20)
                    hw.set_lane("cron", 1)
                    await quiet()
                    hw.set_lane("cron", 0)
            await asyncio.sleep(20)
            await quiet()
            expected = [begin + number * TEN_MINUTES for number in range(1, 101)]
            assert await dues(hw, "a/tick") == expected
            assert diary.began == [due + timedelta(seconds=20) for due in expected]
            assert {entry.kind for entry in await log_of(hw, "a/tick")} == {Fired.ON_TIME}
            if delayed_by != "hook":  # A hook belongs to the attempt, which has begun by then.
                assert {entry.lateness for entry in await log_of(hw, "a/tick")} == {20 * SECOND}

    main()


class _BrokenRunner:
    """A runner of the user's own that does not even begin."""

    async def run(self, turn: Turn) -> str:
        raise OSError("no such tab")


@pytest.mark.parametrize("trouble", ["fails", "raises", "refused", "lane full", "lane paused"])
def test_c5_whatever_becomes_of_a_run_the_next_firing_is_on_time(trouble: str) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary(error=ValueError("no") if trouble == "fails" else None)
        hw = program(diary)
        hw.add_agent("broken", _BrokenRunner())
        hw.agent("hog")(Diary(takes_s=1e6))
        if trouble == "refused":

            @hw.before
            def refuse(turn: Turn) -> None:
                raise Refuse("not today")

        agent = "broken" if trouble == "raises" else "a"
        async with hw:
            if trouble == "lane full":
                hw.set_lane("cron", 1)
                await hw.submit("hog", "mine", lane="cron", timeout="9d")
            elif trouble == "lane paused":
                hw.set_lane("cron", 0)
            await hw.jobs.add("tick", agent, every="1h", text="tick")
            await until("2026-01-01 18:00")
            expected = [when(f"2026-01-01 {hour}:00") for hour in range(13, 19)]
            assert await dues(hw, f"{agent}/tick") == expected
            lines = await log_of(hw, f"{agent}/tick")
            assert {line.kind for line in lines} == {Fired.ON_TIME}
            states = [line.state for line in lines]
            if trouble.startswith("lane"):
                assert states == [State.QUEUED] * 6
                if trouble == "lane paused":
                    hw.set_lane("cron", 9)
                    await quiet()
                    assert len(diary.began) == 6, "and nothing of it was lost"
            else:
                assert states[:5] == [State.FAILED] * 5
            await hw.close(0)

    main()


@starting("2026-01-01 12:00")
async def test_c5_many_jobs_that_fail_together_delay_no_other() -> None:
    """On a store that takes its time: each failure is looked at, and what is due goes before."""
    diary = Diary()
    hw = program(diary, retained_runs=10_000)
    hw.agent("broken")(Diary(error=ValueError("no")))
    async with hw:
        hw.set_lane("cron", 1_000)
        for number in range(200):
            await hw.jobs.add(f"f{number}", "broken", cron="0 * * * *", text="x", retries=0)
        await hw.jobs.add("t", "a", cron="* * * * *", text="tick")
        await hw.jobs.add("s", "a", at="in 3601s", text="soon after")
        find_job = hw.engine._store.find_job

        async def slow(job_id: JobId) -> JobRecord | None:
            await asyncio.sleep(0.02)
            return await find_job(job_id)

        hw.engine._store.find_job = slow  # type: ignore[method-assign]
        await until("2026-01-01 13:00:10")
        soon = diary.began[diary.texts.index("soon after")]
        assert soon - when("2026-01-01 13:00:01") < timedelta(seconds=0.5)
        for hour in range(14, 23):
            await until(f"2026-01-01 {hour}:00:30")
        paused = [view for view in (await hw.jobs.list(limit=1000)).jobs if view.paused]
        assert len(paused) == 200


@starting("2026-01-01 12:00")
async def test_c5_a_run_longer_than_the_period_delays_no_due_time() -> None:
    diary = Diary(takes_s=90)
    async with program(diary) as hw:
        await hw.jobs.add("tick", "a", every="1m", text="tick")
        await until("2026-01-01 12:10")
        assert await dues(hw, "a/tick") == [when(f"2026-01-01 12:{m:02}") for m in range(1, 11)]
        first = when("2026-01-01 12:01")
        assert diary.began == [first + n * timedelta(seconds=90) for n in range(7)]
        await hw.close(0)


@pytest.mark.parametrize("change", ["pause", "remove"])
def test_c5_c10_paused_or_removed_while_it_is_claimed_means_no_run(change: str) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary()
        hw = program(diary)
        looking = asyncio.Event()

        @hw.function("slow")
        async def slow() -> bool:
            looking.set()
            await asyncio.sleep(20)
            return True

        async with hw:
            job = await hw.jobs.add("t", "a", every="1h", text="x", gate={"function": "slow"})
            await looking.wait()
            if change == "pause":
                await hw.jobs.pause(job.id)
            else:
                await hw.jobs.remove(job.id)
            await until("2026-01-01 15:00")
            assert diary.began == []
            assert await log_of(hw, job.id) == []
            if change == "pause":
                await hw.jobs.resume(job.id)
                await until("2026-01-01 16:01")
                assert diary.began == [when("2026-01-01 16:00:20")]

    main()


@starting("2026-01-01 12:00")
async def test_c5_another_schedule_while_it_is_claimed_makes_no_second_run() -> None:
    diary = Diary()
    hw = program(diary)
    looking = asyncio.Event()

    @hw.function("slow")
    async def slow() -> bool:
        looking.set()
        await asyncio.sleep(20)
        return True

    async with hw:
        job = await hw.jobs.add("t", "a", every="1h", text="x", gate={"function": "slow"})
        await looking.wait()
        await hw.jobs.edit(job.id, cron="0 0 1 1 *", tz="UTC")
        await until("2026-01-01 15:00")
        assert len(diary.began) == len(await dues(hw, job.id)) <= 1
        assert (await hw.jobs.get(job.id)).next_run_at == instant("2027-01-01 00:00")


# Missed while nobody was there (C-6).


@starting("2026-01-01 08:00")
async def test_c6_late_by_less_than_a_minute_is_not_missed() -> None:
    diary = Diary()
    async with program(diary) as hw:
        await hw.jobs.add("t", "a", cron="0 9 * * *", text="x", misfire="skip")
        clock = hw.engine._clock
        clock.stepped = HOUR + 59 * SECOND  # type: ignore[attr-defined]
        hw.engine._parts.timekeeper.look()
        await quiet()
        assert await told(hw, "a/t") == ["on_time"]


MISSED = "missed: nobody was there to run it"
TOO_OLD = "missed: older than the misfire window"


@pytest.mark.parametrize(
    ("options", "lines", "runs"),
    [
        ({}, [TOO_OLD, TOO_OLD, "late"], 1),
        ({"misfire": "once"}, [TOO_OLD, TOO_OLD, "late"], 1),
        ({"misfire": "skip"}, [TOO_OLD, TOO_OLD, MISSED], 0),
        ({"misfire": "all"}, [TOO_OLD, TOO_OLD, "late"], 1),
        ({"misfire_window": "9d"}, [MISSED, MISSED, "late"], 1),
        ({"misfire": "skip", "misfire_window": "9d"}, [MISSED, MISSED, MISSED], 0),
        ({"misfire": "all", "misfire_window": "9d"}, ["late", "late", "late"], 3),
        ({"misfire": "all", "misfire_window": "36h"}, [TOO_OLD, "late", "late"], 2),
        ({"misfire_window": "1h"}, [TOO_OLD, TOO_OLD, TOO_OLD], 0),
    ],
)
def test_c6_down_for_three_days_with_a_daily_job(
    options: dict[str, str], lines: list[str], runs: int
) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary()
        clock = a_clock()
        async with program(diary, clock=clock) as hw:
            job = await hw.jobs.add("d", "a", cron="0 9 * * *", text="x", **options)  # type: ignore[arg-type]
            clock.stepped = 3 * DAY
            hw.engine._parts.timekeeper.look()
            await asyncio.sleep(90)
            assert await told(hw, job.id) == lines
            assert await dues(hw, job.id) == [when(f"2026-01-0{day} 09:00") for day in (2, 3, 4)]
            assert len(diary.began) == runs
            assert (await hw.jobs.get(job.id)).next_run_at == int(
                when("2026-01-05 09:00").timestamp() * SECOND
            )
            await asyncio.sleep(21 * 3600)
            assert (await told(hw, job.id))[3:] == ["on_time"], "the recurrence is intact"

    main()


@pytest.mark.parametrize(("misfire", "line"), [("once", "late"), ("skip", MISSED)])
def test_c6_a_missed_reminder_is_run_late_or_recorded_as_missed(misfire: str, line: str) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary()
        clock = a_clock()
        async with program(diary, clock=clock) as hw:
            job = await hw.jobs.add("r", "a", at="in 20m", text="tea", misfire=misfire)  # type: ignore[arg-type]
            clock.stepped = 5 * HOUR
            hw.engine._parts.timekeeper.look()
            await quiet()
            assert await told(hw, job.id) == [line]
            assert diary.texts == (["tea"] if misfire == "once" else [])

    main()


@starting("2026-01-01 12:00")
async def test_c6_many_missed_firings_have_lines_and_none_is_left_out() -> None:
    diary = Diary()
    clock = a_clock()
    async with program(diary, clock=clock) as hw:
        job = await hw.jobs.add("m", "a", cron="* * * * *", text="x", misfire_window="9d")
        clock.stepped = 3 * DAY + 30 * SECOND
        hw.engine._parts.timekeeper.look()
        await quiet()
        lines = await log_of(hw, job.id)
        assert sum(line.count for line in lines) == 3 * 24 * 60
        assert [line.kind for line in lines if line.run_id] == [Fired.ON_TIME]
        assert lines[0].count > 1
        assert all(line.count == 1 for line in lines[1:])


@pytest.mark.parametrize("gated", [False, True])
def test_c6_500_jobs_missed_together_do_not_start_together(gated: bool) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary()
        clock = a_clock()
        hw = program(diary, clock=clock)
        hw.function("yes")(_yes)
        options: dict[str, object] = {"gate": {"function": "yes"}} if gated else {}
        async with hw:
            hw.set_lane("cron", 1000)
            for number in range(500):
                await hw.jobs.add(f"j{number}", "a", cron="0 9 * * *", text="x", **options)  # type: ignore[arg-type]
            clock.stepped = DAY
            begin = now()
            hw.engine._parts.timekeeper.look()
            await quiet()
            assert len(diary.began) <= 10, "a stampede"
            slowest = 0.0
            for _ in range(20):
                await asyncio.sleep(3)
                asked = time.perf_counter()
                page = await hw.jobs.list(limit=1000)
                slowest = max(slowest, time.perf_counter() - asked)
                assert len(page.jobs) == 500
            await asyncio.sleep(10)
            assert len(diary.began) == 500, "and each of them did"
            assert max(diary.began) <= begin + timedelta(seconds=61)
            by_second = [
                sum(b // timedelta(seconds=1) == s for b in _since(begin, diary)) for s in range(60)
            ]
            assert max(by_second) <= 20
            assert slowest < 3

    main()


async def _yes() -> bool:
    return True


def _since(begin: object, diary: Diary) -> list[timedelta]:
    return [began - begin for began in diary.began]  # type: ignore[operator]


# The wall clock is set.


@starting("2026-01-01 12:00")
async def test_c5_a_clock_step_of_an_hour_back_fires_nothing_twice() -> None:
    diary = Diary()
    clock = a_clock()
    async with program(diary, clock=clock, poll_every=5 * SECOND) as hw:
        await hw.jobs.add("e", "a", every="10m", text="every")
        await hw.jobs.add("c", "a", cron="*/10 * * * *", text="cron")
        await until("2026-01-01 13:05")
        assert len(diary.began) == 12
        clock.stepped = -HOUR
        await until("2026-01-01 14:09:59")
        assert len(diary.began) == 12, "what was due in this hour has fired already"
        await until("2026-01-01 14:10")
        assert len(diary.began) == 14
        for name in ("e", "c"):
            found = await dues(hw, f"a/{name}")
            assert found == [when("2026-01-01 12:00") + n * TEN_MINUTES for n in range(1, 8)]


@starting("2026-01-01 12:00")
async def test_c5_a_clock_step_of_an_hour_forward_fires_what_is_then_due() -> None:
    diary = Diary()
    clock = a_clock()
    async with program(diary, clock=clock, poll_every=5 * SECOND) as hw:
        await hw.jobs.add("e", "a", every="10m", text="every")
        await hw.jobs.add("hourly", "a", cron="0 * * * *", text="cron")
        await until("2026-01-01 12:05")
        clock.stepped = HOUR
        await asyncio.sleep(10)
        # It is 13:05 by now: 13:00 is run late, what the leap has passed over was missed.
        assert sorted(diary.texts) == ["cron", "every"]
        assert await told(hw, "a/e") == [MISSED] * 5 + ["late"]
        assert await dues(hw, "a/e") == [
            when("2026-01-01 12:10") + n * TEN_MINUTES for n in range(6)
        ]
        await until("2026-01-01 13:00")
        found = await dues(hw, "a/e")
        assert len(set(found)) == len(found)
        assert found[-1] == when("2026-01-01 14:00")
        assert {line.kind for line in (await log_of(hw, "a/e"))[6:]} == {Fired.ON_TIME}


@starting("2026-01-01 12:00")
async def test_c5_after_a_clock_was_ten_years_ahead_and_set_right_jobs_go_on() -> None:
    diary = Diary()
    clock = a_clock()
    async with program(diary, clock=clock, poll_every=5 * SECOND) as hw:
        job = await hw.jobs.add("c", "a", cron="0 * * * *", text="x")
        await until("2026-01-01 13:05")
        clock.stepped = 3_650 * DAY
        await until("2026-01-01 13:10")
        assert len(diary.began) == 2, "what was due by the wrong clock was fired"
        clock.stepped = 0
        await until("2026-01-01 18:00:30")
        hours = [when(f"2026-01-01 {hour}:00") for hour in range(14, 19)]
        assert diary.began[2:] == hours
        found = await dues(hw, job.id, Fired.ON_TIME, Fired.LATE)
        assert len(set(found)) == len(found)


@pytest.mark.parametrize("change", ["resume", "edit", "put"])
def test_c5_a_changed_job_goes_on_after_the_clock_went_back_and_fires_nothing_twice(
    change: str,
) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary()
        clock = a_clock()
        async with program(diary, clock=clock, poll_every=5 * SECOND) as hw:
            job = await hw.jobs.add("c", "a", cron="*/10 * * * *", text="x")
            await until("2026-01-01 13:05")
            assert len(diary.began) == 6
            clock.stepped = -HOUR
            if change == "resume":
                await hw.jobs.pause(job.id)
                await hw.jobs.resume(job.id)
            elif change == "edit":
                await hw.jobs.edit(job.id, cron="*/5 * * * *")
            else:
                await hw.jobs.load((await hw.jobs.export()).replace("*/10", "*/5"))
            await asyncio.sleep(2 * 3600)
            found = await dues(hw, job.id, Fired.ON_TIME, Fired.LATE)
            assert len(set(found)) == len(found)
            assert found[-1] >= when("2026-01-01 14:00"), "it has not got stuck"

    main()


@pytest.mark.parametrize("gated", [False, True])
def test_c5_firings_long_ago_that_come_again_are_skipped_and_not_tried_for_ever(
    gated: bool,
) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary()
        clock = a_clock()
        hw = program(diary, clock=clock, poll_every=5 * SECOND)
        looks = 0

        @hw.function("look")
        async def look() -> bool:
            nonlocal looks
            looks += 1
            return True

        options: dict[str, object] = {"gate": {"function": "look"}} if gated else {}
        async with hw:
            job = await hw.jobs.add("c", "a", cron="* * * * *", text="x", **options)  # type: ignore[arg-type]
            await until("2026-01-01 13:00:30")
            assert len(diary.began) == 60
            clock.stepped = -HOUR
            await hw.jobs.pause(job.id)
            await hw.jobs.resume(job.id)
            asked = 0
            advance = hw.engine._store.advance

            async def counted(advances: Sequence[Advance]) -> object:
                nonlocal asked
                asked += 1
                return await advance(advances)

            hw.engine._store.advance = counted  # type: ignore[method-assign,assignment]
            await until("2026-01-01 15:00:30")
            found = await dues(hw, job.id, Fired.ON_TIME, Fired.LATE)
            assert found == [
                when("2026-01-01 12:00") + n * timedelta(minutes=1) for n in range(1, 121)
            ]
            assert len(diary.began) == 120
            assert asked <= 4 * 120
            assert looks <= 200
            skipped = [line for line in await told(hw, job.id) if line.startswith("skipped")]
            assert set(skipped) == {f"skipped: {FIRED}"}

    main()


# Retry (C-9).


@starting("2026-01-01 12:00")
async def test_c9_a_firing_is_tried_again_after_2_4_and_8_seconds_and_holds_no_slot() -> None:
    diary = Diary(error=OSError("busy"))
    hw = program(diary, lanes={"cron": LaneSettings(1)})
    async with hw:
        hw.engine.attempts.jitter = lambda: 0.5
        job = await hw.jobs.add("r", "a", at="in 1m", text="x")
        await until("2026-01-01 12:01:01")
        (line,) = await log_of(hw, job.id)
        assert line.run_id is not None
        assert line.state is State.PENDING
        assert hw.lanes()["cron"].running == 0
        await until("2026-01-01 12:02")
        begin = when("2026-01-01 12:01")
        assert diary.began == [begin + timedelta(seconds=s) for s in (0, 2, 6, 14)]
        assert {turn.id for turn in diary.turns} == {line.run_id}, "the same run each time"
        (line,) = await log_of(hw, job.id)
        assert line.outcome is not None
        assert (line.state, line.outcome.reason, line.attempts) == (State.FAILED, Reason.ERROR, 4)


@starting("2026-01-01 12:00")
async def test_c9_retries_do_not_move_the_next_firing() -> None:
    diary = Diary(error=OSError("busy"))
    async with program(diary) as hw:
        hw.engine.attempts.jitter = lambda: 0.5
        await hw.jobs.add("r", "a", every="20s", text="x")
        await until("2026-01-01 12:02")
        assert await dues(hw, "a/r") == [
            when("2026-01-01 12:00") + timedelta(seconds=20 * n) for n in range(1, 7)
        ]
        assert len(diary.began) == 4 * 5 + 1
        await hw.close(0)


@starting("2026-01-01 12:00")
async def test_c5_nothing_is_fired_while_the_node_drains_and_all_of_it_after_a_restart() -> None:
    diary = Diary()
    async with program(diary) as hw:
        await hw.jobs.add("t", "a", every="10s", text="x")
        hog = hw.agent("hog")(Diary(takes_s=25))
        await hw.submit("hog", "x")
        await until("2026-01-01 12:00:05")
        await hw.restart("60s")
        assert len(hog.began) == 1
        await until("2026-01-01 12:01")
        found = await dues(hw, "a/t")
        assert found == [when("2026-01-01 12:00") + timedelta(seconds=10 * n) for n in range(1, 7)]
        assert diary.began[-1] == when("2026-01-01 12:01")


@starting("2026-01-01 12:00")
async def test_c8_staggered_jobs_are_spread_and_each_keeps_its_place() -> None:
    diary = Diary()
    async with program(diary) as hw:
        for number in range(50):
            await hw.jobs.add(f"j{number}", "a", cron="0 * * * *", text=str(number), stagger="5m")
        await until("2026-01-01 15:00")
        offsets: dict[str, set[timedelta]] = {}
        for began, text in zip(diary.began, diary.texts, strict=True):
            hour = began.replace(minute=0, second=0, microsecond=0)
            offsets.setdefault(text, set()).add(began - hour)
        assert len(offsets) == 50
        assert all(len(places) == 1 for places in offsets.values())
        spread = {place for places in offsets.values() for place in places}
        assert len(spread) > 45
        assert max(spread) < timedelta(minutes=5)


@starting("2026-01-01 12:00")
async def test_c5_a_job_of_an_agent_that_nobody_here_knows_harms_no_other() -> None:
    diary = Diary()
    async with program(diary) as hw:
        await hw.jobs.add("lost", "stranger", every="1m", text="hello?")
        await hw.jobs.add("tick", "a", every="1m", text="tick")
        await until("2026-01-01 12:03")
        assert len(diary.began) == 3
        assert not await dues(hw, "stranger/lost"), "who knows it knows its lane and its bounds"
        await hw.close(0)


@starting("2026-01-01 12:00")
async def test_c1_two_jobs_of_one_name_are_refused_and_a_third_job_wakes_at_its_own_time() -> None:
    diary = Diary()
    async with program(diary) as hw:
        await hw.jobs.add("far", "a", at="in 300d", text="far")
        await until("2026-01-01 12:01")
        await hw.jobs.add("near", "a", at="in 1m", text="near")
        await until("2026-01-01 12:02")
        assert diary.texts == ["near"], "it was woken although it slept until the far one"
