"""Who takes part in the demo: the lanes, the agents, and the people who write to them."""

import asyncio
import random  # noqa: TID251 - drawn from a seed: same seed, same story
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType

from headway import Headway, LaneSettings, Settings, Turn
from headway.model.run import LaneName, QueueOptions
from headway.model.time import SECOND
from headway.ports import Clock

CHANNEL = "chat"
USUAL_SECONDS = 20.0

LANES: Mapping[str, int] = MappingProxyType({"main": 6, "subagent": 2, "cron": 1})

AGENTS: Mapping[str, str] = MappingProxyType(
    {
        "support": "#5f9ee8",
        "coder": "#62b06f",
        "researcher": "#b48ee0",
        "reader": "#4fb3bf",
        "nightly": "#b08d57",
    }
)
"""Each agent with its colour."""

CHATS: Mapping[str, str] = MappingProxyType(
    {
        "ada": "support",
        "ben": "support",
        "cleo": "support",
        "dan": "support",
        "eve": "support",
        "finn": "support",
        "gia": "coder",
        "hal": "coder",
        "ivy": "coder",
        "jon": "researcher",
        "kim": "researcher",
        "leo": "researcher",
    }
)
"""Each person with the agent that they write to."""

MOST_TASKS = 2
"""How many tasks of the coder may be in flight at once."""


class Tempo:
    """How fast the story goes, and how long each turn in it takes."""

    def __init__(self, seconds: float, seed: int) -> None:
        self._scale = seconds / USUAL_SECONDS
        self._random = random.Random(seed)

    def span(self, seconds: float) -> timedelta:
        return timedelta(seconds=seconds * self._scale)

    async def rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self._scale)

    async def work(self, seconds: float) -> None:
        """About so long: no two turns take the same time."""
        await self.rest(seconds * self._random.uniform(0.85, 1.15))


def chat_session(person: str) -> str:
    return f"{CHANNEL}:{person}"


def who(session: str, agent: str) -> str:
    """The person whose chat, or whose sub-run, this session is; without one, the agent."""
    person = session.rpartition(":")[2]
    return person if person in CHATS else agent


def hire(tempo: Tempo, clock: Clock) -> Headway:
    """A Headway with all agents, independent of what the environment sets."""
    settings = Settings(
        lanes={LaneName(name): LaneSettings(width) for name, width in LANES.items()},
        channels={CHANNEL: QueueOptions(debounce=_span(tempo, 0.5))},
    )
    hw = Headway(settings=settings, clock=clock)
    steps_done: dict[str, int] = {}

    @hw.agent("support")
    async def support(turn: Turn) -> str:
        await tempo.work(2.2 if "long" in turn.text else 1.0)
        return "Solved."

    @hw.agent("coder", steerable=True, max_inflight=MOST_TASKS)
    async def coder(turn: Turn) -> str:
        taken = 0
        for _ in range(6):
            await tempo.work(0.3)
            while turn.inbox.poll() is not None:
                taken += 1
        return f"Patched, with {taken} hints on the way."

    @hw.agent("researcher")
    async def researcher(turn: Turn) -> str:
        await tempo.work(0.4)
        person = who(turn.session, turn.agent)
        found = await turn.delegate("reader", turn.text, session=f"reader:{person}")
        await tempo.work(0.3)
        return f"In short: {found}"

    @hw.agent("reader")
    async def reader(turn: Turn) -> str:
        await tempo.work(0.9)
        return f"all about {turn.text}"

    @hw.agent("nightly", preemptible=True)
    async def nightly(turn: Turn) -> str:
        for step in range(steps_done.get(turn.id, 0), 14 if "deep" in turn.text else 4):
            await tempo.work(0.8)
            steps_done[turn.id] = step + 1  # After it had to give way, it goes on from here.
        return "Tidied up."

    return hw


def _span(tempo: Tempo, seconds: float) -> int:
    return round(tempo.span(seconds).total_seconds() * SECOND)
