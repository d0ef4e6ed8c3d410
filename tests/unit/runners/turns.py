"""Turns for runners without an engine."""

import asyncio
import re

from headway import Turn
from headway.core.actions import Start
from headway.model.run import AgentName, LaneName, Run, RunId, SessionKey
from headway.model.words import Source
from headway.ports import SubRun


class Ears:
    """A desk that only listens."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._came = asyncio.Event()

    @property
    def heard(self) -> str:
        return "".join(self.pieces)

    async def until(self, pattern: str) -> re.Match[str]:
        while (match := re.search(pattern, self.heard)) is None:
            self._came.clear()
            await self._came.wait()
        return match

    def emit(self, ticket: int, text: str) -> None:
        self.pieces.append(text)
        self._came.set()

    def say(self, ticket: int, text: str) -> None:
        raise AssertionError

    def use(self, ticket: int, tokens_in: int, tokens_out: int) -> None:
        raise AssertionError

    def take_message(self, ticket: int, message: RunId) -> bool:
        raise AssertionError

    async def delegate(
        self, ticket: int, agent: str, text: str, options: dict[str, object]
    ) -> SubRun:
        raise AssertionError


def turn_with(
    text: str = "",
    run_id: str = "run-1",
    attempt: int = 1,
    epoch: int = 1,
    desk: Ears | None = None,
    *,
    adopts: bool = False,
    agent: str = "coder",
    resumes: str | None = None,
) -> Turn:
    """A turn of a message. Needs a running loop."""
    run = Run(
        id=RunId(run_id),
        agent=AgentName(agent),
        session=SessionKey("chat:ann"),
        source=Source.MESSAGE,
        lane=LaneName("main"),
        priority=0,
        submitted_at=0,
        trace_id="trace-1",
        text=text,
        resumes=None if resumes is None else RunId(resumes),
    )
    start = Start(run, ticket=7, attempt=attempt, epoch=epoch, at=0, outlives=True, adopts=adopts)
    return Turn(desk or Ears(), asyncio.get_running_loop(), start, run, text)
