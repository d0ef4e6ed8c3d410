"""The desk: what every operation gets at hand."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol

from headway.config import Shown
from headway.facade import Headway
from headway.gateway.access.book import TokenBook
from headway.gateway.access.guard import Guard
from headway.gateway.access.rate import Rates
from headway.gateway.metrics import Metrics
from headway.gateway.spans import open_spans
from headway.gateway.stream.journal import Journal
from headway.model.server import ServerSettings
from headway.model.time import Instant
from headway.model.token import Token
from headway.model.views import Reloaded
from headway.ports import Clock
from headway.runtime.clock import clock_for
from headway.runtime.ids import new_boot_id


class ReloadPort(Protocol):
    """What the process can do about its config; the gateway only passes it on."""

    async def reload(self) -> Reloaded: ...

    def shown(self) -> Sequence[Shown]: ...


class Desk:
    """The façade, the server's settings, and what the gateway itself keeps. One for each server."""

    def __init__(
        self, hw: Headway, settings: ServerSettings, config: ReloadPort | None = None
    ) -> None:
        self.hw = hw
        self.settings = settings
        self.config = config
        self.book = TokenBook(self._tokens, self._elapsed, self._wall)
        self.guard = Guard(self.book, Rates(settings.requests_per_minute), settings.cors_origins)
        self.metrics = Metrics()
        self.observed: Callable[[str, str, int, float], None] | None = self.metrics.answered
        """Told of each answered request: method, path as in OpenAPI, status, seconds."""
        self.streams = 0
        """How many event streams and WebSockets are open."""
        self.journal = Journal(new_boot_id(), settings.event_memory, self._now)
        self.waits: set[asyncio.Timeout] = set()
        """Callers that wait for the end of a run: when the server ends, they are told that it takes longer."""
        self._ends = ExitStack()
        self._clock: Clock | None = None

    @property
    def clock(self) -> Clock:
        """The clock of the loop that serves; virtual where the loop's time is."""
        if self._clock is None:
            self._clock = clock_for(asyncio.get_running_loop())
        return self._clock

    def open(self) -> None:
        """The Headway runs: begin to listen to it."""
        engine = self.hw.engine
        for ear in (self.journal.note, self.metrics.note):
            self._ends.callback(engine.bus.tap(ear))
        engine.meter = self.metrics.stored
        engine.watch.needed.set()
        self._ends.callback(setattr, engine, "meter", None)
        if (end_spans := open_spans(self.hw)) is not None:
            self._ends.callback(end_spans)

    def close(self) -> None:
        """Let everything go that listens."""
        self._ends.close()
        self.journal.close()
        for timeout in self.waits:
            end_wait(timeout)

    def _now(self) -> Instant:
        return self.clock.now()

    def _wall(self) -> Instant:
        return self.clock.wall()

    def _elapsed(self) -> Instant:
        return self.clock.elapsed()

    async def _tokens(self) -> Sequence[Token]:
        return await self.hw.tokens.list()


def end_wait(timeout: asyncio.Timeout) -> None:
    """Whoever waits there waits no longer."""
    if not timeout.expired():
        timeout.reschedule(asyncio.get_running_loop().time())
