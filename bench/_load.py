"""The load of the benches with a store: trivial runs over many sessions, in order within each."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from headway import Headway, LaneSettings, Settings, Turn
from headway.model.settings import MAIN, QueueSettings
from headway.wiring import MEMORY

if TYPE_CHECKING:
    import asyncpg

AGENT = "agent"
TEXT = "hello"
WAVE = 1_000
"""How many submissions are under way at once."""

Stored: TypeAlias = Callable[[], Awaitable[bool]]
"""Whether the store says that nothing is unfinished."""


class Broken(AssertionError):
    """What was measured did not do its work: the figure would mean nothing."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What went through between the first start and the last end that was stored."""

    runs: int
    seconds: float
    submit_rate: float = 0.0

    @property
    def rate(self) -> float:
        return self.runs / self.seconds


class Course:
    """An agent that does nothing but count, and see that each session keeps its order."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._done = 0
        self._latest: dict[str, int] = {}
        self._overtaken = 0
        self._all = asyncio.Event()
        self._began = 0.0

    async def agent(self, turn: Turn) -> str:
        if not self._done:
            self._began = time.perf_counter()
        number = int(turn.text)
        if self._latest.get(turn.session, -1) >= number:
            self._overtaken += 1
        self._latest[turn.session] = number
        self._done += 1
        if self._done == self._runs:
            self._all.set()
        return TEXT

    async def finished(self, stored: Stored) -> Drained:
        await self._all.wait()
        await until(stored)
        ended = time.perf_counter()
        if self._done != self._runs or self._overtaken:
            raise Broken(f"{self._done} starts for {self._runs} runs, {self._overtaken} overtaken")
        return Drained(self._runs, ended - self._began)


async def until(stored: Stored) -> None:
    """Ask again and again: some of those that are measured tell nobody when they are done."""
    while not await stored():  # noqa: ASYNC110 - another process knows, and it has no event
        await asyncio.sleep(0.001)


def headway(url: str, width: int) -> Headway:
    """All as by default, but for the lane's width and sessions that may hold any number of runs."""
    settings = Settings(lanes={MAIN: LaneSettings(width)}, queue=QueueSettings(cap=1_000_000))
    return Headway(url, settings=settings)


async def submit_all(hw: Headway, runs: int, sessions: int) -> float:
    """Submit them, a wave at a time, each session's in order; answers the rate."""
    keys = [f"session-{number}" for number in range(sessions)]
    submit = hw.submit
    began = time.perf_counter()
    for first in range(0, runs, WAVE):
        wave = range(first, min(first + WAVE, runs))
        await asyncio.gather(
            *[submit(AGENT, str(number), session=keys[number % sessions]) for number in wave]
        )
    return runs / (time.perf_counter() - began)


async def fill(url: str, runs: int, sessions: int) -> float:
    """Leave so many waiting runs in a durable store; answers the rate of submission."""
    hw = headway(url, 0)
    hw.remote_agent(AGENT)
    async with hw:
        return await submit_all(hw, runs, sessions)


async def drain(url: str, runs: int, width: int, stored: Stored) -> Drained:
    """A new node finds the waiting runs in the store, and runs them all."""
    course = Course(runs)
    hw = headway(url, width)
    hw.agent(AGENT)(course.agent)
    async with hw:
        return await course.finished(stored)


async def in_memory(runs: int, sessions: int, width: int) -> tuple[float, Drained]:
    """The same with the memory store: all is submitted to a paused lane, then the lane is opened."""
    course = Course(runs)
    hw = headway(MEMORY, 0)
    hw.agent(AGENT)(course.agent)

    async def stored() -> bool:
        return not hw.sessions() or not any(lane.running for lane in hw.lanes().values())

    async with hw:
        rate = await submit_all(hw, runs, sessions)
        hw.set_lane(MAIN, width)
        return rate, await course.finished(stored)


class PostgresLook:
    """Looks into a store's database from outside."""

    def __init__(self, connection: "asyncpg.Connection") -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> "PostgresLook":
        import asyncpg

        return cls(await asyncpg.connect(url))

    async def all_ended(self) -> bool:
        asked = "SELECT EXISTS (SELECT FROM headway.queue)"
        return not await self._connection.fetchval(asked)

    async def close(self) -> None:
        await self._connection.close()


class SqliteLook:
    """The same for a file."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)

    async def all_ended(self) -> bool:
        (unfinished,) = self._connection.execute("SELECT EXISTS (SELECT 1 FROM queue)").fetchone()
        return not unfinished

    async def close(self) -> None:
        self._connection.close()
