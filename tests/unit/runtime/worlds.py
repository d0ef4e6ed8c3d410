"""Small worlds for tests: agents that write down what they do, and ears for what is published."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import TypeVar, cast

from headway import Handle, Headway, Outcome, Route, Sender, Settings, Turn
from headway.core.request import SubmitOptions
from headway.model.events import Event
from headway.model.settings import QueueSettings
from headway.model.time import MILLISECOND

SomeEvent = TypeVar("SomeEvent", bound=Event)

CHAT = Route("telegram", account="bot", peer="42")
OTHER_CHAT = Route("telegram", account="bot", peer="43")
ANN = Sender("ann", "owner")
BOB = Sender("bob", "guest")


def now_s() -> float:
    """Seconds of virtual time since the test began."""
    return round(asyncio.get_running_loop().time(), 6)


async def moment() -> None:
    """Long enough for all that was decided to be carried out; no time passes."""
    for _ in range(20):
        await asyncio.sleep(0)


async def deaf_sleep(seconds: float) -> None:
    """Sleep through any number of cancellations."""
    until = now_s() + seconds
    while (left := until - now_s()) > 0:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(left)


class Recorder:
    """An agent that writes down its turns.

    Each takes `takes` seconds, or what `spans` says for its text. A deaf one goes on for `deaf`
    seconds after it was cancelled, and then returns as if nothing had happened.
    """

    def __init__(
        self,
        takes: float = 1.0,
        *,
        deaf: float = 0.0,
        spans: Mapping[str, float] | None = None,
    ) -> None:
        self.takes = takes
        self.deaf = deaf
        self.spans = spans or {}
        self.turns: list[Turn] = []
        self.started_at: list[float] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.live = 0
        self.most = 0

    @property
    def started(self) -> list[str]:
        """The texts of all turns, in the order in which they started."""
        return [turn.text for turn in self.turns]

    async def __call__(self, turn: Turn) -> str:
        self.turns.append(turn)
        self.started_at.append(now_s())
        self.live += 1
        self.most = max(self.most, self.live)
        try:
            await asyncio.sleep(self.spans.get(turn.text, self.takes))
        except asyncio.CancelledError:
            self.cancelled.append(turn.text)
            if not self.deaf:
                raise
            await deaf_sleep(self.deaf)
        finally:
            self.live -= 1
            self.ended.append(turn.text)
        return f"re: {turn.text}"


class Gate:
    """An agent whose turns wait until the gate is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.turns: list[Turn] = []

    async def __call__(self, turn: Turn) -> str:
        self.turns.append(turn)
        await self.opened.wait()
        return f"re: {turn.text}"

    def open(self) -> None:
        self.opened.set()


def with_agents(*recorders: Recorder | Gate, **options: object) -> Headway:
    """A Headway with the agents `a`, `b`, … and the given settings."""
    hw = Headway(settings=Settings(**options))  # type: ignore[arg-type]
    for name, recorder in zip("abcdefgh", recorders, strict=False):
        hw.agent(name)(recorder)
    return hw


def quick_queue(**options: object) -> QueueSettings:
    """Queue settings without debounce, so that messages with a route take their place at once."""
    return QueueSettings(**{"debounce": 0, **options})  # type: ignore[arg-type]


def milliseconds(count: int) -> int:
    return count * MILLISECOND


def hear(hw: Headway) -> list[Event]:
    """Everything that is published from now on."""
    heard: list[Event] = []
    hw.engine.bus.tap(heard.append)
    return heard


def only(heard: list[Event], kind: type[SomeEvent]) -> list[SomeEvent]:
    return [event for event in heard if isinstance(event, kind)]


async def ask(hw: Headway, agent: str, text: str, options: Mapping[str, object]) -> Handle:
    """Submit with options that a type checker would not let through."""
    return await hw.submit(agent, text, **cast(SubmitOptions, dict(options)))


async def outcomes(*handles: Handle) -> list[Outcome]:
    return [await handle.wait() for handle in handles]


async def endings(*handles: Handle) -> list[str]:
    """How each of these runs itself ended: `done`, `cancelled/merged`, …"""
    for handle in handles:
        await handle.wait()
    return [ending(handle.outcome) for handle in handles]


def ending(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not ended"
    return f"{outcome.state}/{outcome.reason}" if outcome.reason else str(outcome.state)


def each(count: int, prefix: str = "m") -> Iterator[str]:
    return (f"{prefix}{number}" for number in range(1, count + 1))
