"""Tells a person at a terminal what a server does, a line each: who said what to whom, and what came of it."""

import asyncio
from collections import deque
from contextlib import suppress
from datetime import datetime

from rich.console import Console
from rich.text import Text

from headway import Delivery, Headway, NotFound, Route, Unavailable
from headway.calls import in_thread
from headway.channels.letter import is_empty
from headway.cli.serve.demo.agents import CHANNEL, CRAWLER
from headway.model.events import (
    Event,
    HeartbeatQuiet,
    LaneChanged,
    LimitsChanged,
    NodeRestarted,
    RunFinished,
    RunsMerged,
    RunSubmitted,
    StoreAway,
    StoreBack,
)
from headway.model.run import RunId
from headway.model.time import SECOND, Instant, as_datetime
from headway.model.views import RunView
from headway.model.words import Source, State
from headway.runtime.clock import SystemClock

_KEPT = 500
"""A person who reads so slowly misses some lines."""
_LONGEST = 160
_ENDED_BADLY = frozenset({State.FAILED, State.REJECTED})


class Narrator:
    """Hears events, and as a channel what is said, and prints lines.

    A terminal that is paused delays the lines, and nothing else.
    """

    def __init__(self, headway: Headway, console: Console) -> None:
        self._headway = headway
        self._console = console
        self._clock = SystemClock()
        self._lines: deque[Text] = deque(maxlen=_KEPT)
        self._more = asyncio.Event()

    def tell(self, who: str, what: str) -> None:
        """Something that no event says."""
        self._add(self._clock.wall(), who, what)

    async def send(self, delivery: Delivery) -> None:
        if not is_empty(delivery):
            view = await self._find(delivery.run_id)
            speaker = delivery.route.channel if view is None else view.run.agent
            self._add(delivery.first_at, f"{speaker} → {delivery.route.peer}", delivery.text)

    async def typing(self, route: Route, on: bool) -> None:
        """Who looks at lines does not need to know who is about to speak."""

    async def run(self) -> None:
        """For as long as the node lives."""
        async with asyncio.TaskGroup() as group:
            printing = group.create_task(self._print_all())
            with self._headway.events(_KEPT) as heard:
                async for event in heard:
                    if (line := await self._line(event)) is not None:
                        self._add(event.at, *line)
            printing.cancel()

    async def _line(self, event: Event) -> tuple[str, str] | None:
        match event:
            case RunSubmitted(source=Source.MESSAGE):
                view = await self._find(event.run_id)
                return None if view is None else (f"{_who(view)} → {event.agent}", view.run.text)
            case RunFinished():
                return await self._ending(event)
            case RunsMerged():
                view = await self._find(event.run_id)
                return "headway", f"{len(event.parts)} messages of {_who(view)} become one turn"
            case HeartbeatQuiet():
                return event.agent, "looked around; all is well"
            case LaneChanged():
                return "headway", f"lane {event.lane} is {event.width} wide now"
            case LimitsChanged():
                return "headway", f"up to {event.max_inflight} tasks run at once now"
            case NodeRestarted():
                return "headway", f"back in place, incarnation {event.incarnation}"
            case StoreAway():
                return "headway", f"the store is away: {event.error}"
            case StoreBack():
                return "headway", "the store is back"
            case _:
                return None

    async def _ending(self, event: RunFinished) -> tuple[str, str] | None:
        """Crawls are too many to be told one by one; replies to people are told as they are delivered."""
        if event.agent == CRAWLER or event.source is Source.HEARTBEAT:
            return None
        if event.state in _ENDED_BADLY:
            return event.agent, f"{event.state}: {event.error or event.reason}"
        view = await self._find(event.run_id)
        if event.state is not State.DONE or view is None or view.outcome is None:
            return None
        route = view.run.route
        if route is not None and route.channel == CHANNEL:
            return None
        to = f" → {_who(view)}" if event.source is Source.MESSAGE else ""
        return f"{event.agent}{to}", f"{view.outcome.text} ({event.took / SECOND:.1f}s)"

    async def _find(self, run_id: RunId) -> RunView | None:
        try:
            return await self._headway.run(run_id)
        except (NotFound, Unavailable):
            return None

    def _add(self, at: Instant, who: str, what: str) -> None:
        line = Text.assemble(
            (f"{_time_of_day(as_datetime(at))}  ", "dim"), (f"{who:<20} ", "bold"), _short(what)
        )
        self._lines.append(line)
        self._more.set()

    async def _print_all(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            lines = list(self._lines)
            self._lines.clear()
            await in_thread(self._print, lines)

    def _print(self, lines: list[Text]) -> None:
        # Nobody reads it any more. Rich's own way would be to end the program.
        with suppress(OSError, SystemExit):
            for line in lines:
                self._console.print(line, soft_wrap=True)


def _who(view: RunView | None) -> str:
    if view is None or view.run.route is None:
        return "somebody"
    return view.run.route.peer or view.run.route.channel


def _short(text: str) -> str:
    line = " / ".join(text.splitlines())
    shown = "".join(letter if letter.isprintable() else " " for letter in line)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _time_of_day(moment: datetime) -> str:
    return moment.astimezone().strftime("%H:%M:%S")
