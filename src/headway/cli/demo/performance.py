"""Plays the story on a Headway, hears what happens, and shows it to an audience."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator

from headway import Headway
from headway.cli.demo.audience import Audience
from headway.cli.demo.cast import LANES, MOST_TASKS, Tempo, hire
from headway.cli.demo.promises import Promises
from headway.cli.demo.record import Record
from headway.cli.demo.scene import Programme, look
from headway.cli.demo.story import Story
from headway.model.events import Event
from headway.model.time import SECOND
from headway.ports import Clock
from headway.runtime.bus import Listener
from headway.runtime.clock import clock_for


class Performance:
    """One telling of the story. Its record is whole even if the telling was cut short."""

    def __init__(self, audience: Audience, *, seconds: float, seed: int) -> None:
        self._audience = audience
        self._tempo = Tempo(seconds, seed)
        self._programme = Programme(seconds)
        self.record = Record(Promises(LANES, {"coder": MOST_TASKS}))

    async def play(self) -> None:
        clock = clock_for(asyncio.get_running_loop())
        self.record.began_at = clock.now()
        hw = hire(self._tempo, clock)
        with _quiet_log():
            await hw.start()
            heard = hw.events()
            try:
                async with hw, asyncio.TaskGroup() as crew:
                    listening = crew.create_task(self._listen(heard))
                    painting = crew.create_task(self._paint(hw, clock))
                    await Story(hw, self._tempo, self._announce).tell()
                    listening.cancel()
                    painting.cancel()
            finally:
                await self._listen(heard)  # The rest: Headway is closed now, so this ends.

    def _announce(self, title: str, line: str) -> None:
        self._programme.title, self._programme.line = title, line
        self._audience.headline(title, line)

    async def _listen(self, heard: Listener) -> None:
        async for event in heard:
            self._hear(event)

    def _hear(self, event: Event) -> None:
        text = self.record.hear(event)
        if text is not None:
            self._audience.note((event.at - self.record.began_at) / SECOND, text)

    async def _paint(self, hw: Headway, clock: Clock) -> None:
        while self._audience.frames_per_second:
            self._audience.frame(await look(hw, self.record, self._programme, clock.now()))
            await asyncio.sleep(1 / self._audience.frames_per_second)


@contextlib.contextmanager
def _quiet_log() -> Iterator[None]:
    """Log lines on the terminal would tear the picture; what they say is shown in it."""
    logger = logging.getLogger("headway")
    handler = logging.NullHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
