"""Exactly when, on every store: a year, changes of the clock, no drift, whatever becomes of the runs (C)."""

import asyncio
import time
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from headway import Turn
from headway.model.time import HOUR, MINUTE, SECOND
from headway.model.words import Fired, Misfire, State
from tests.exactness.world import (
    World,
    dues,
    has_lines,
    kinds,
    log_of,
    on_all_stores,
    on_durable_stores,
    play,
    until,
)
from tests.unit.runtime.times import NEW_YORK, SAO_PAULO, each_day, when

MOMENT = timedelta(milliseconds=2)


@on_all_stores
def test_c2_c5_a_year_of_weekday_mornings_in_sao_paulo_with_the_host_in_tokyo(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()

    async def test(world: World) -> None:
        hw = await world.start()
        await hw.jobs.add("brief", "a", cron="0 9 * * 1-5", tz=SAO_PAULO, text="news?")
        days = each_day("2026-01-01", 365, 9, 0, SAO_PAULO)
        mornings = [day for day in days if day.weekday() < 5]
        for number, morning in enumerate(mornings, 1):
            world.set(morning)
            await world.diary.until(number)
        assert len(world.diary.texts) == 261
        assert (await dues(hw, "a/brief"))[-200:] == mornings[-200:]
        assert set(await kinds(hw, "a/brief")) == {Fired.ON_TIME}

    try:
        play(store, when("2026-01-01 00:00"), tmp_path, test)
    finally:
        monkeypatch.undo()
        time.tzset()


@on_all_stores
@pytest.mark.parametrize(
    ("expression", "first", "fires"),
    [
        ("30 2 * * *", "2026-03-07", ["07T02:30-05:00", "08T03:00-04:00", "09T02:30-04:00"]),
        ("30 1 * * *", "2026-03-07", ["07T01:30-05:00", "08T01:30-05:00", "09T01:30-04:00"]),
        ("30 2 * * *", "2026-10-31", ["31T02:30-04:00", "01T02:30-05:00", "02T02:30-05:00"]),
        ("30 1 * * *", "2026-10-31", ["31T01:30-04:00", "01T01:30-04:00", "02T01:30-05:00"]),
    ],
)
def test_c4_half_past_one_and_two_in_new_york_through_both_changes_of_the_clock(
    store: str, tmp_path: Path, expression: str, first: str, fires: list[str]
) -> None:
    async def test(world: World) -> None:
        hw = await world.start()
        await hw.jobs.add("night", "a", cron=expression, tz=NEW_YORK, text="hush")
        month = datetime.fromisoformat(first)
        expected: list[datetime] = []
        for fire in fires:
            at = datetime.fromisoformat(f"{month:%Y-%m}-{fire}")
            if expected and at < expected[-1]:
                at = at.replace(month=month.month + 1)
            expected.append(at)
        for number, at in enumerate(expected, 1):
            # Just before it, and in the repeated or skipped hour around it, nothing happens.
            await world.pass_to(at - timedelta(seconds=2))
            assert len(world.diary.texts) == number - 1
            await world.pass_to(at)
            await world.diary.until(number)
            await world.pass_to(at + timedelta(hours=1))
        assert await dues(hw, "a/night") == expected
        assert await kinds(hw, "a/night") == [Fired.ON_TIME] * 3

    play(store, when(f"{first} 00:00", NEW_YORK), tmp_path, test)


@on_all_stores
def test_c2_every_ten_minutes_woken_20_seconds_late_does_not_drift_over_100_firings(
    store: str, tmp_path: Path
) -> None:
    async def test(world: World) -> None:
        hw = await world.start()
        job = await hw.jobs.add("tick", "a", cron="@every 10m", text="tick")
        assert job.next_run_at is not None
        view = await hw.jobs.next(job.id, 100)
        expected = [at.astimezone(view[0].tzinfo) for at in view]
        assert {later - at for at, later in pairwise(expected)} == {timedelta(minutes=10)}
        for number, at in enumerate(expected, 1):
            world.set(at + timedelta(seconds=20))
            await world.diary.until(number)
        lines = await log_of(hw, job.id)
        assert [line.due_at for line in lines] == [
            job.next_run_at + n * 600 * SECOND for n in range(100)
        ]
        assert {line.kind for line in lines} == {Fired.ON_TIME}
        assert all(20 * SECOND <= (line.lateness or 0) < 80 * SECOND for line in lines)

    play(store, when("2026-01-01 12:00"), tmp_path, test)


@on_all_stores
@pytest.mark.parametrize("trouble", ["fails", "raises", "lane full"])
def test_c5_whatever_becomes_of_a_run_the_next_firing_is_on_time(
    store: str, tmp_path: Path, trouble: str
) -> None:
    async def test(world: World) -> None:
        hw = world.program()
        hw.add_agent("broken", _Broken())
        await world.start(hw)
        if trouble == "fails":
            world.diary.error = ValueError("no")
        if trouble == "lane full":
            hw.set_lane("cron", 0)
        agent = "broken" if trouble == "raises" else "a"
        await hw.jobs.add("tick", agent, cron="0 * * * *", text="tick", retries=0)
        for hour in range(13, 19):
            world.set(when(f"2026-01-01 {hour}:00"))
            await has_lines(hw, f"{agent}/tick", hour - 12)
        assert await dues(hw, f"{agent}/tick") == [
            when(f"2026-01-01 {hour}:00") for hour in range(13, 19)
        ]
        lines = await log_of(hw, f"{agent}/tick")
        assert {line.kind for line in lines} == {Fired.ON_TIME}
        if trouble == "lane full":
            assert {line.state for line in lines} == {State.QUEUED}
            hw.set_lane("cron", 9)
            await world.diary.until(6)
        else:

            async def all_failed() -> bool:
                ended = await log_of(hw, f"{agent}/tick")
                return {line.state for line in ended} == {State.FAILED}

            await until(all_failed, "a run never failed")

    play(store, when("2026-01-01 12:30"), tmp_path, test)


class _Broken:
    """A runner that does not even begin."""

    async def run(self, turn: Turn) -> str:
        raise OSError("no such tab")


@on_all_stores
def test_c10_paused_while_claimed_means_no_run(store: str, tmp_path: Path) -> None:
    async def test(world: World) -> None:
        hw = world.program()
        looking, go_on = asyncio.Event(), asyncio.Event()

        @hw.function("slow")
        async def slow() -> bool:
            looking.set()
            await go_on.wait()
            return True

        await world.start(hw)
        job = await hw.jobs.add("g", "a", cron="0 * * * *", text="x", gate={"function": "slow"})
        world.set(when("2026-01-01 13:00"))
        await asyncio.wait_for(looking.wait(), 60)
        await hw.jobs.pause(job.id)
        go_on.set()
        world.set(when("2026-01-01 15:30"))
        await hw.jobs.resume(job.id)
        world.set(when("2026-01-01 16:00"))
        await world.diary.until(1)
        assert await dues(hw, job.id) == [when("2026-01-01 16:00")]
        assert len(world.diary.texts) == 1

    play(store, when("2026-01-01 12:30"), tmp_path, test)


@on_all_stores
@pytest.mark.parametrize(
    ("misfire", "expected"),
    [
        ("once", ["missed", "missed", "late"]),
        ("skip", ["missed", "missed", "missed"]),
        ("all", ["late", "late", "late"]),
    ],
)
def test_c6_down_for_three_days_with_a_daily_job(
    store: str, tmp_path: Path, misfire: str, expected: list[str]
) -> None:
    async def test(world: World) -> None:
        hw = await world.start()
        job = await hw.jobs.add(
            "d",
            "a",
            cron="0 9 * * *",
            text="x",
            misfire=Misfire(misfire),
            misfire_window="9d",
        )
        if store != "memory":
            await world.stop(hw)
        world.set(when("2026-01-04 12:00"))
        if store != "memory":
            hw = await world.start()
        await has_lines(hw, job.id, 3)
        await world.diary.until(expected.count("late"))
        assert await kinds(hw, job.id) == expected
        days = [when(f"2026-01-0{day} 09:00") for day in (2, 3, 4)]
        assert await dues(hw, job.id) == days
        world.set(when("2026-01-05 09:00"))
        await has_lines(hw, job.id, 4)
        assert (await kinds(hw, job.id))[3:] == [Fired.ON_TIME], "the recurrence is intact"
        await world.diary.until(expected.count("late") + 1)

    play(store, when("2026-01-01 12:00"), tmp_path, test)


@on_all_stores
def test_c5_a_clock_step_of_an_hour_back_and_forward(store: str, tmp_path: Path) -> None:
    async def test(world: World) -> None:
        hw = await world.start()
        job = await hw.jobs.add("c", "a", cron="*/10 * * * *", text="x")
        start = when("2026-01-01 12:00")
        for number in range(1, 7):
            world.set(start + number * timedelta(minutes=10))
            await world.diary.until(number)
        world.clock.shift(-HOUR)
        for number in range(1, 7):
            await world.pass_to(start + number * timedelta(minutes=10))
        assert len(world.diary.texts) == 6
        world.set(start + timedelta(minutes=70))
        await world.diary.until(7)
        expected = [start + n * timedelta(minutes=10) for n in range(1, 8)]
        assert await dues(hw, job.id) == expected, "nothing fires twice"
        world.clock.shift(HOUR + 5 * MINUTE)
        await world.diary.until(8)
        found = await dues(hw, job.id)
        assert found == [start + n * timedelta(minutes=10) for n in range(1, 14)]
        assert (await kinds(hw, job.id))[7:] == ["missed"] * 5 + ["late"]

    play(store, when("2026-01-01 12:00"), tmp_path, test)


@on_durable_stores
def test_c5_a_resumed_job_goes_on_after_the_clock_went_back(store: str, tmp_path: Path) -> None:
    async def test(world: World) -> None:
        hw = await world.start()
        job = await hw.jobs.add("c", "a", cron="* * * * *", text="x")
        start = when("2026-01-01 12:00")
        for number in range(1, 31):
            world.set(start + number * timedelta(minutes=1))
            await world.diary.until(number)
        world.clock.set(start + MOMENT)
        await hw.jobs.pause(job.id)
        await hw.jobs.resume(job.id)
        for number in range(1, 32):
            await world.pass_to(start + number * timedelta(minutes=1))
        await world.diary.until(31)
        lines = [line for line in await log_of(hw, job.id) if line.run_id is not None]
        assert len(lines) == 31
        assert len({line.due_at for line in lines}) == 31

    play(store, when("2026-01-01 12:00"), tmp_path, test)
