"""What tests of jobs share: days that pass in virtual time, an agent with a diary, and ways to read the log."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import ParamSpec
from zoneinfo import ZoneInfo

from headway import Delivery, Headway, Settings, Turn
from headway.model.job import Entry
from headway.model.time import DAY, SECOND, Instant, as_datetime, instant_of
from headway.runtime.clock import LoopClock
from headway.testing import VirtualLoop, run_virtual

Given = ParamSpec("Given")

NEW_YORK = "America/New_York"
SAO_PAULO = "America/Sao_Paulo"


def when(text: str, zone: str = "UTC") -> datetime:
    """An instant as people of a zone write it, shown in UTC so that two of them compare as they read."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def instant(text: str, zone: str = "UTC") -> Instant:
    return instant_of(when(text, zone), "text")


def starting(
    text: str, zone: str = "UTC"
) -> Callable[[Callable[Given, Coroutine[object, object, None]]], Callable[Given, None]]:
    """Run an async test in virtual time that begins then."""

    def decorate(test: Callable[Given, Coroutine[object, object, None]]) -> Callable[Given, None]:
        @functools.wraps(test)
        def run(*args: Given.args, **kwargs: Given.kwargs) -> None:
            run_virtual(test(*args, **kwargs), origin=instant(text, zone))

        return run

    return decorate


def virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def now() -> datetime:
    """What virtual time it is, whatever the wall clock was set to."""
    loop = virtual_loop()
    return as_datetime(loop.virtual_origin + round(loop.time() * SECOND))


async def until(moment: datetime | str) -> None:
    """Sleep to an instant, and until all that happens at it has happened."""
    at = when(moment) if isinstance(moment, str) else moment
    await asyncio.sleep((at - now()).total_seconds())
    await virtual_loop().quiet()


async def quiet() -> None:
    await virtual_loop().quiet()


def a_clock() -> LoopClock:
    """A clock of virtual time whose wall clock a test can set."""
    loop = virtual_loop()
    return LoopClock(loop, loop.virtual_origin)


def rarely(**changes: object) -> Settings:
    """Settings of a node that hardly polls: whatever happens on time was not found by polling."""
    return Settings(**{"poll_every": DAY, **changes})  # type: ignore[arg-type]


class Diary:
    """An agent that notes when it began, what it was told, and of which turn."""

    def __init__(self, takes_s: float = 0, *, error: Exception | None = None) -> None:
        self.takes_s = takes_s
        self.error = error
        self.began: list[datetime] = []
        self.turns: list[Turn] = []
        self.cancelled: list[datetime] = []
        self.reply = ""
        """What it answers, if it is not just to repeat what it was told."""

    @property
    def texts(self) -> list[str]:
        return [turn.text for turn in self.turns]

    async def __call__(self, turn: Turn) -> str:
        self.began.append(now())
        self.turns.append(turn)
        try:
            await asyncio.sleep(self.takes_s)
        except asyncio.CancelledError:
            self.cancelled.append(now())
            raise
        if self.error is not None:
            # A new one each time: one that is raised again and again keeps the traces of all times.
            raise type(self.error)(*self.error.args)
        return self.reply or f"re: {turn.text}"


class Mailbox:
    """A channel that keeps what it is given."""

    def __init__(self) -> None:
        self.got: list[Delivery] = []
        self.at: list[datetime] = []

    async def __call__(self, delivery: Delivery) -> None:
        self.got.append(delivery)
        self.at.append(now())

    @property
    def texts(self) -> list[str]:
        return [delivery.text for delivery in self.got]

    @property
    def notices(self) -> list[Delivery]:
        """What was said of a job, and not by its agent."""
        return [delivery for delivery in self.got if ".paused." in delivery.id]


def program(diary: Diary, **options: object) -> Headway:
    """A Headway in memory with the agent `a`, which hardly polls."""
    clock = options.pop("clock", None)
    hw = Headway(settings=rarely(**options), clock=clock)  # type: ignore[arg-type]
    hw.agent("a")(diary)
    return hw


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


async def dues(hw: Headway, job: str, *kinds: str) -> list[datetime]:
    """The instants at which a job was due, by its log; only lines of these kinds, if some are named."""
    return [
        as_datetime(entry.due_at)
        for entry in await log_of(hw, job)
        if not kinds or entry.kind in kinds
    ]


async def told(hw: Headway, job: str) -> list[str]:
    """The log in short: `on_time`, `skipped: the gate said no`."""
    return [
        f"{entry.kind}: {entry.reason}" if entry.reason else str(entry.kind)
        for entry in await log_of(hw, job)
    ]


def each_day(first: str, days: int, hour: int, minute: int, zone: str) -> list[datetime]:
    """What a wall clock of the zone shows day by day, as instants in UTC."""
    day = datetime.fromisoformat(first)
    return [
        (day + timedelta(days=number))
        .replace(hour=hour, minute=minute, tzinfo=ZoneInfo(zone))
        .astimezone(UTC)
        for number in range(days)
    ]
