"""A little steady traffic, for ever: people who write, a program with tasks, and one that asks for too much."""

import asyncio
from collections.abc import Awaitable, Callable

from headway import Headway, QueueFull, Route, Sender, Unavailable
from headway.cli.serve.demo.agents import BROWSER, CHANNEL, CRAWLER, SUPPORT, Pace
from headway.core.session_key import session_key
from headway.model.run import AgentName
from headway.model.task import Task

PEOPLE = ("ada", "ben", "cleo", "dan")
CRAWL = 120
"""More pages than may wait for one agent, so that some are refused (F-1)."""

_QUESTIONS = (
    "where is my order?",
    "it is late",
    "number 1203",
    "can I still change the address?",
    "the link does not work",
    "thank you!",
)
_CLICKS = ("#buy", "#login", "#next", "#accept", "#search")
_BACK_AFTER_S = 1.0
"""How long a caller waits that was told to come later."""

Tell = Callable[[str, str], None]
"""Told who did something, and what."""


class Traffic:
    """Everybody who asks. They go on until cancelled; what refuses them for now, they try again."""

    def __init__(self, headway: Headway, pace: Pace, tell: Tell) -> None:
        self._headway = headway
        self._pace = pace
        self._tell = tell
        self._messages = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for begins_after, ask in ((0.5, self._chat), (1.0, self._click), (6.0, self._crawl)):
                group.create_task(self._for_ever(begins_after, ask))

    async def _for_ever(self, begins_after: float, ask: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(begins_after)
        while True:
            try:
                await ask()
            except Unavailable:
                # It drains, restarts, or has lost its store: callers come again.
                await asyncio.sleep(_BACK_AFTER_S)

    async def _chat(self) -> None:
        """A person writes; now and then several lines in a row, as people do."""
        person = self._pace.one_of(PEOPLE)
        for _ in range(self._pace.number(2, 4) if self._pace.chance(3) else 1):
            await self._write(person, self._pace.one_of(_QUESTIONS))
            await asyncio.sleep(self._pace.seconds(0.3))
        if self._pace.chance(8):
            await asyncio.sleep(self._pace.seconds(1.2))
            await self._stop(person)
        await asyncio.sleep(self._pace.seconds(2.5))

    async def _write(self, person: str, text: str) -> None:
        self._messages += 1
        route = Route(CHANNEL, peer=person)
        await self._headway.submit(
            SUPPORT,
            text,
            session=session_key(AgentName(SUPPORT), route),
            route=route,
            sender=Sender(person),
        )

    async def _stop(self, person: str) -> None:
        session = session_key(AgentName(SUPPORT), Route(CHANNEL, peer=person))
        reply = await self._headway.command(session, "/stop")
        self._tell(person, f"/stop: {reply}")

    async def _click(self) -> None:
        action = self._pace.one_of(("click", "type", "scroll"))
        task = Task(
            action, tab_id=f"tab-{self._pace.number(1, 3)}", selector=self._pace.one_of(_CLICKS)
        )
        await self._headway.submit(BROWSER, task=task)
        await asyncio.sleep(self._pace.seconds(2.0))

    async def _crawl(self) -> None:
        """One agent's full queue is its own affair: the browser's next task starts as if there were none (F-2)."""
        taken = []
        for number in range(1, CRAWL + 1):
            task = Task("read", params={"page": number})
            try:
                taken.append(await self._headway.submit(CRAWLER, f"page {number}", task=task))
            except QueueFull:
                continue
        refused = CRAWL - len(taken)
        self._tell(
            CRAWLER, f"asked for {CRAWL} pages at once: {refused} refused, its queue is full"
        )
        for handle in taken:
            await handle.wait()
        self._tell(CRAWLER, f"has read its {len(taken)} pages")
        await asyncio.sleep(self._pace.seconds(20.0))
