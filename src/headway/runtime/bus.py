"""Events to whoever listens. A slow listener loses events, never memory, and is told how many."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Self

import msgspec

from headway.model.events import Event, EventsMissed
from headway.model.telling import told

_log = logging.getLogger("headway")
_log.addHandler(logging.NullHandler())


class Listener:
    """One listener's queue of events; an async iterator that ends when the bus closes."""

    def __init__(self, bus: "Bus", keep: int) -> None:
        self._bus = bus
        self._events: deque[Event] = deque()
        self._keep = keep
        self._missed = 0
        self._arrived = asyncio.Event()
        self._closed = False

    def push(self, event: Event) -> None:
        if len(self._events) >= self._keep:
            self._events.popleft()
            self._missed += 1
        self._events.append(event)
        self._arrived.set()

    def close(self) -> None:
        """Hear no more; what was heard so far can still be read."""
        self._closed = True
        self._bus.leave(self)
        self._arrived.set()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        if self._missed:
            missed = EventsMissed(at=self._events[0].at, count=self._missed)
            self._missed = 0
            return missed
        return self._events.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Bus:
    """Hands events to listeners, and notable ones to the log."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._taps: list[Callable[[Event], None]] = []
        self.heard = False
        """Whether anybody listens: events that are not notable need not be made otherwise."""

    def listen(self, keep: int = 10_000) -> Listener:
        listener = Listener(self, keep)
        self._listeners.append(listener)
        self.heard = True
        return listener

    def tap(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call this for each event, at once; it must be quick and never raise. The answer ends it."""
        self._taps.append(callback)
        self.heard = True

        def untap() -> None:
            if callback in self._taps:
                self._taps.remove(callback)
            self.heard = bool(self._listeners or self._taps)

        return untap

    def leave(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)
        self.heard = bool(self._listeners or self._taps)

    def publish(self, event: Event) -> None:
        if event.notable:
            _log.warning("%s", msgspec.json.encode(told(event)).decode(), extra={"event": event})
        for listener in self._listeners:
            listener.push(event)
        for tap in tuple(self._taps):
            tap(event)

    def close(self) -> None:
        for listener in tuple(self._listeners):
            listener.close()
