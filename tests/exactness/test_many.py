"""Exactly once, on every store: many jobs, many nodes, and nodes that die on the way (C-5, C-6)."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec
import pytest

from headway import Headway
from headway.core.actions import Action
from headway.model.job import Advance
from headway.model.time import DAY, SECOND
from headway.model.words import Fired
from headway.ports import Admission, Recorded
from tests.exactness.world import (
    SETTINGS,
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
from tests.unit.runtime.times import when

MANY = 1_000


async def add_many(hw: Headway, count: int, **options: object) -> None:
    for number in range(count):
        await hw.jobs.add(f"j{number}", "a", cron="0 * * * *", text=str(number), **options)  # type: ignore[arg-type]


@on_all_stores
def test_c5_two_nodes_and_1000_due_jobs_each_fires_once(store: str, tmp_path: Path) -> None:
    """A store in memory has one node and SQLite one owner; on PostgreSQL two nodes race for each job."""

    async def test(world: World) -> None:
        hw = await world.start()
        if store == "postgres":
            await world.start()
        await add_many(hw, MANY)
        for hour in (13, 14):
            world.set(when(f"2026-01-01 {hour}:00"))
            await world.diary.until(MANY * (hour - 12))
        assert Counter(world.diary.texts) == {str(number): 2 for number in range(MANY)}
        page = await hw.jobs.log(limit=1000)
        lines = list(page.entries)
        lines += (await hw.jobs.log(limit=1000, cursor=page.cursor)).entries
        assert len(lines) == 2 * MANY
        assert len({(line.job, line.due_at) for line in lines}) == 2 * MANY
        assert {line.kind for line in lines} == {Fired.ON_TIME}

    play(store, when("2026-01-01 12:30"), tmp_path, test)


@on_all_stores
def test_c6_500_jobs_missed_together_do_not_start_together_and_can_be_listed(
    store: str, tmp_path: Path
) -> None:
    spread_s = 1.5

    async def test(world: World) -> None:
        settings = msgspec.structs.replace(SETTINGS, catch_up_spread=round(spread_s * SECOND))
        hw = await world.start(world.program(settings))
        hw.set_lane("cron", 1000)
        await add_many(hw, 500)
        world.set(when("2026-01-01 23:20"))
        begin = time.monotonic()
        answered: list[float] = []
        while len(world.diary.texts) < 500:
            assert time.monotonic() - begin < 60
            asked = time.perf_counter()
            page = await hw.jobs.list(limit=100)
            answered.append(time.perf_counter() - asked)
            assert len(page.jobs) == 100
            await asyncio.sleep(0.02)
        assert len(set(world.diary.texts)) == 500
        assert world.diary.times[-1] - world.diary.times[0] > spread_s / 2
        # Some may have met a pause of the machine.
        assert median(answered) < 1
        made = [view.run for view in (await hw.runs(limit=1000)).runs]
        starts = sorted(run.due_at for run in made if run.due_at is not None)
        assert len(starts) == 499, "the first one starts at once"
        assert {later - at for at, later in pairwise(starts)} == {round(spread_s * SECOND) // 500}

    play(store, when("2026-01-01 12:30"), tmp_path, test)


@on_all_stores
def test_c9_a_daily_job_that_always_fails_is_paused_after_ten_days(
    store: str, tmp_path: Path
) -> None:
    """Runs and lines of a week ago are forgotten by then; what was counted is not."""

    async def test(world: World) -> None:
        settings = msgspec.structs.replace(
            SETTINGS, retention=7 * DAY, retained_runs=3, prune_every=SECOND // 20
        )
        world.diary.error = ValueError("never")
        hw = await world.start(world.program(settings))
        job = await hw.jobs.add("daily", "a", cron="0 9 * * *", text="x", retries=0)
        for number in range(1, 11):
            world.set(when("2026-01-01 09:00") + timedelta(days=number))
            await world.diary.until(number)

            async def counted(number: int = number) -> bool:
                view = await hw.jobs.get(job.id)
                return not view.enabled if number == 10 else view.consecutive_failures == number

            await until(counted, f"failure {number} was never counted")
            if number == 9 and store != "memory":

                async def forgotten() -> bool:
                    return len(await log_of(hw, job.id)) < 9

                await until(forgotten, "nothing was forgotten: nothing is proved")
        view = await hw.jobs.get(job.id)
        assert (view.enabled, view.paused) == (False, "failed 10 times in a row")

    play(store, when("2026-01-01 12:30"), tmp_path, test)


@on_durable_stores
@pytest.mark.parametrize("how", ["close", "restart"])
def test_c5_l5_a_drain_while_a_firing_is_being_kept_loses_no_firing(
    store: str, tmp_path: Path, how: str
) -> None:
    async def test(world: World) -> None:
        hw = await world.start()
        job = await hw.jobs.add("k", "a", cron="0 * * * *", text="x")
        firing, go_on = asyncio.Event(), asyncio.Event()
        really = hw.engine._store.advance

        async def advance(advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
            answers = await really(advances)
            firing.set()
            await go_on.wait()
            return answers

        hw.engine._store.advance = advance  # type: ignore[method-assign]
        world.set(when("2026-01-01 13:00"))
        async with asyncio.timeout(60):
            await firing.wait()
        world.nodes.remove(hw)
        leaving = asyncio.create_task(hw.close() if how == "close" else hw.restart())
        await until(_drains(hw), "it never drained")
        go_on.set()
        asked = time.monotonic()
        await leaving
        assert time.monotonic() - asked < 20, "there was nothing to wait for"
        if how == "close":
            hw = await world.start()
        await world.diary.until(1)
        (line,) = await log_of(hw, job.id)
        assert line.kind is Fired.ON_TIME
        assert len(world.diary.texts) == 1

    play(store, when("2026-01-01 12:30"), tmp_path, test)


def _drains(hw: Headway) -> Callable[[], Awaitable[bool]]:
    async def drains() -> bool:
        return hw.engine.kernel.stage.draining

    return drains


# A node dies between the claim and the start.


def dies_before_the_firing_is_kept(hw: Headway) -> asyncio.Event:
    """The job was read, and its decision never reaches the store."""
    died = asyncio.Event()

    async def advance(advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        died.set()
        await asyncio.Event().wait()
        return ()

    hw.engine._store.advance = advance  # type: ignore[method-assign]
    return died


def dies_after_the_firing_is_kept(hw: Headway) -> asyncio.Event:
    """The run is in the store and this node's, and the answer never comes back."""
    died = asyncio.Event()
    really = hw.engine._store.advance

    async def advance(advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        await really(advances)
        died.set()
        await asyncio.Event().wait()
        return ()

    hw.engine._store.advance = advance  # type: ignore[method-assign]
    return died


def dies_before_the_start_is_kept(hw: Headway) -> asyncio.Event:
    """The run was taken in and given a slot, and its start never reaches the store."""
    died = asyncio.Event()

    async def record(actions: Sequence[Action]) -> Recorded:
        died.set()
        await asyncio.Event().wait()
        return Recorded()

    hw.engine._store.record = record  # type: ignore[method-assign]
    return died


DEATHS = (
    dies_before_the_firing_is_kept,
    dies_after_the_firing_is_kept,
    dies_before_the_start_is_kept,
)


@on_durable_stores
@pytest.mark.parametrize("after", [timedelta(seconds=10), timedelta(minutes=10)], ids=str)
@pytest.mark.parametrize("dies", DEATHS, ids=lambda dies: dies.__name__)
def test_c5_killed_between_claim_and_start_it_runs_once_after_the_restart(
    store: str, tmp_path: Path, dies: object, after: timedelta
) -> None:
    async def test(world: World) -> None:
        hw = await world.start()
        job = await hw.jobs.add("k", "a", cron="0 * * * *", text="x")
        died = dies(hw)  # type: ignore[operator]
        due = when("2026-01-01 13:00")
        world.set(due)
        async with asyncio.timeout(60):
            await died.wait()
        await world.kill(hw)
        assert world.diary.texts == []
        world.clock.set(due + after)
        hw = await world.start()
        await world.diary.until(1)
        assert await dues(hw, job.id) == [due]
        world.set(when("2026-01-01 14:00"))
        await world.diary.until(2)
        await has_lines(hw, job.id, 2)
        assert await dues(hw, job.id) == [due, when("2026-01-01 14:00")]
        assert len(world.diary.texts) == 2

    play(store, when("2026-01-01 12:30"), tmp_path, test)


@on_durable_stores
@pytest.mark.parametrize("after", [timedelta(seconds=10), timedelta(minutes=10)], ids=str)
def test_c5_x7_killed_while_it_looks_somebody_looks_again_and_it_runs_once(
    store: str, tmp_path: Path, after: timedelta
) -> None:
    async def test(world: World) -> None:
        looking = asyncio.Event()
        quick = False

        async def look() -> bool:
            looking.set()
            if not quick:
                await asyncio.Event().wait()
            return True

        hw = world.program()
        hw.function("look")(look)
        await world.start(hw)
        job = await hw.jobs.add("k", "a", cron="0 * * * *", text="x", gate={"function": "look"})
        due = when("2026-01-01 13:00")
        world.set(due)
        async with asyncio.timeout(60):
            await looking.wait()
        await world.kill(hw)
        quick = True
        world.clock.set(due + after)
        again = world.program()
        again.function("look")(look)
        hw = await world.start(again)
        if after < timedelta(minutes=2):
            # The claim of the dead one must end first.
            world.set(due + timedelta(seconds=121))
        await world.diary.until(1)
        world.set(when("2026-01-01 14:00"))
        await world.diary.until(2)
        assert await dues(hw, job.id) == [due, when("2026-01-01 14:00")]
        found = await kinds(hw, job.id)
        assert found[1:] == [Fired.ON_TIME]
        assert found[0] in ({Fired.ON_TIME} if after < timedelta(minutes=2) else {Fired.LATE})
        assert len(world.diary.texts) == 2

    play(store, when("2026-01-01 12:30"), tmp_path, test)


def test_c5_two_nodes_look_for_one_job_only_once(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        looks: list[int] = []
        for number in range(2):
            hw = world.program()

            async def look(number: int = number) -> bool:
                looks.append(number)
                await asyncio.sleep(0.05)
                return True

            hw.function("look")(look)
            await world.start(hw)
        hw = world.nodes[0]
        for number in range(40):
            await hw.jobs.add(
                f"g{number}", "a", cron="0 * * * *", text=str(number), gate={"function": "look"}
            )
        world.set(when("2026-01-01 13:00"))
        await world.diary.until(40)
        assert Counter(world.diary.texts) == {str(number): 1 for number in range(40)}
        assert len(looks) == 40

    play("postgres", when("2026-01-01 12:30"), tmp_path, test)


def test_c12_a_change_on_one_node_is_known_to_the_other_at_once(tmp_path: Path) -> None:
    """The other one sleeps until a far instant, and polls as good as never."""

    async def test(world: World) -> None:
        rarely = msgspec.structs.replace(SETTINGS, poll_every=3600 * SECOND)
        keeper = await world.start(world.program(rarely))
        asker = Headway(world.url, settings=rarely, clock=world.clock)
        asker.remote_agent("a")
        await world.start(asker)
        with keeper.events() as events:
            began = time.monotonic()
            job = await asker.jobs.add("soon", "a", at="in 1s", text="x")
            async for event in events:
                if type(event).__name__ == "JobsChanged":
                    break
            assert time.monotonic() - began < 30
        await world.diary.until(1)
        assert time.monotonic() - began < 60
        await has_lines(asker, job.id, 1)
        (line,) = await log_of(asker, job.id)
        assert (line.lateness or 0) < 30 * SECOND

    play("postgres", when("2026-01-01 12:30"), tmp_path, test)
