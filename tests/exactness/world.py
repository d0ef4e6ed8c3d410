"""Real engines on every store, with a clock that a test sets: a year passes in as many steps as it has firings."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path

import pytest

from headway import Headway, Settings, Turn
from headway.model.job import Entry
from headway.model.time import DAY, SECOND, Instant, Span, as_datetime, instant_of
from headway.ports import DueJobs
from tests.postgres import fresh_url

STORES = ("memory", "sqlite", "postgres")
DURABLE = ("sqlite", "postgres")
WITHIN_S = 60.0
SETTINGS = Settings(
    poll_every=SECOND // 4,
    lease=SECOND,
    renew_every=SECOND // 8,
    drain_grace=4 * SECOND,
    retention=2_000 * DAY,
    retained_runs=10_000,
)


class HandClock:
    """Time goes on by itself from wherever a test has set it; leases do not notice."""

    def __init__(self, start: datetime) -> None:
        self._ahead = 0
        self.set(start)

    def set(self, to: datetime) -> None:
        self._ahead = instant_of(to, "to") - self.elapsed()

    def now(self) -> Instant:
        return self.elapsed() + self._ahead

    def wall(self) -> Instant:
        return self.now()

    def elapsed(self) -> Instant:
        return time.monotonic_ns() // 1_000

    def shift(self, by: Span) -> None:
        self._ahead += by


class Diary:
    """The agent of all nodes of a test: notes what it was told, and lets the test wait for it."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.times: list[float] = []
        self.error: Exception | None = None
        self._changed = asyncio.Condition()

    async def __call__(self, turn: Turn) -> str:
        async with self._changed:
            self.texts.append(turn.text)
            self.times.append(time.monotonic())
            self._changed.notify_all()
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        return f"re: {turn.text}"

    async def until(self, count: int) -> None:
        """Until it was asked so often in all."""
        async with asyncio.timeout(WITHIN_S), self._changed:
            await self._changed.wait_for(lambda: len(self.texts) >= count)


class World:
    """One database, the nodes on it, and the clock that they share."""

    def __init__(self, url: str, clock: HandClock, stack: AsyncExitStack) -> None:
        self.url = url
        self.clock = clock
        self.diary = Diary()
        self.nodes: list[Headway] = []
        self._stack = stack
        self._idle = asyncio.Condition()
        self._idle_at: dict[Headway, Instant] = {}

    def program(self, settings: Settings = SETTINGS) -> Headway:
        """A program that is not started yet."""
        hw = Headway(self.url, settings=settings, clock=self.clock)
        hw.agent("a")(self.diary)
        return hw

    async def start(self, hw: Headway | None = None) -> Headway:
        hw = self.program() if hw is None else hw
        await hw.start()
        self._watch(hw)
        self._stack.push_async_callback(hw.close, 0)
        self.nodes.append(hw)
        return hw

    async def stop(self, hw: Headway) -> None:
        self.nodes.remove(hw)
        await hw.close()

    async def kill(self, hw: Headway) -> None:
        """As `kill -9` does, as far as the database can see: nothing more is written, and nobody takes leave."""
        self.nodes.remove(hw)
        engine = hw.engine
        engine._fail(RuntimeError("killed"))
        await engine._store.close()
        hw._engine = None

    def _watch(self, hw: Headway) -> None:
        """Note at which instants its timekeeper has found nothing to do."""
        store = hw.engine._store
        due_jobs = store.due_jobs

        async def watched(now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
            due = await due_jobs(now, most, abilities)
            if not due.jobs:
                async with self._idle:
                    self._idle_at[hw] = now
                    self._idle.notify_all()
            return due

        store.due_jobs = watched  # type: ignore[method-assign]

    async def pass_to(self, to: datetime) -> None:
        """It is that time, and all timekeepers have seen that nothing is due, or is due no longer."""
        self._idle_at.clear()
        self.set(to)
        at = instant_of(to, "to")
        async with asyncio.timeout(WITHIN_S), self._idle:
            await self._idle.wait_for(
                lambda: all(0 <= self._idle_at.get(hw, 0) - at < 30 * SECOND for hw in self.nodes)
            )

    def set(self, to: datetime) -> None:
        """It is that time now, and the timekeepers wake as they would have by themselves."""
        self.clock.set(to)
        for node in self.nodes:
            node.engine._parts.timekeeper.look()


Test = Callable[[World], Coroutine[object, object, None]]


def play(store: str, start: datetime, folder: Path, test: Test) -> None:
    """Run a test on a new, empty database of this kind."""
    if store == "postgres":
        url = fresh_url()
    else:
        url = "memory://" if store == "memory" else f"sqlite:///{folder / 'headway.db'}"

    async def main() -> None:
        async with asyncio.timeout(100), AsyncExitStack() as stack:
            await test(World(url, HandClock(start), stack))

    asyncio.run(main())


async def until(what: Callable[[], Awaitable[bool]], why: str) -> None:
    """Until it is so; for what no event tells."""
    give_up_at = time.monotonic() + WITHIN_S
    while not await what():
        assert time.monotonic() < give_up_at, why
        await asyncio.sleep(0.005)


async def log_of(hw: Headway, job: str) -> list[Entry]:
    """All lines of a job's log, the oldest first."""
    entries: list[Entry] = []
    cursor: str | None = None
    while True:
        page = await hw.jobs.log(job, limit=1000, cursor=cursor)
        entries += page.entries
        cursor = page.cursor
        if cursor is None:
            return entries[::-1]


async def dues(hw: Headway, job: str) -> list[datetime]:
    return [as_datetime(entry.due_at) for entry in await log_of(hw, job)]


async def kinds(hw: Headway, job: str) -> list[str]:
    return [str(entry.kind) for entry in await log_of(hw, job)]


async def has_lines(hw: Headway, job: str, count: int) -> None:
    async def enough() -> bool:
        return len(await log_of(hw, job)) >= count

    await until(enough, f"the log of {job} never had {count} lines")


on_all_stores = pytest.mark.parametrize("store", STORES)
on_durable_stores = pytest.mark.parametrize("store", DURABLE)
