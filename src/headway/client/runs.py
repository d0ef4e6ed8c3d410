"""Runs on a server: looked at, cancelled, watched to their end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeAlias

import msgspec

from headway.client.line import Line
from headway.client.streams import Heard, listen
from headway.model.errors import Unavailable
from headway.wire.output import AttemptBegun, AttemptOver, OutputPiece, RunOver
from headway.wire.runs import RunAnswer, RunPage, RunPath, RunsQuery, TreeAnswer, WhyAnswer

News: TypeAlias = AttemptBegun | OutputPiece | AttemptOver | RunOver
"""What comes while a run is watched."""

_KINDS: dict[str, type[News]] = {
    "attempt": AttemptBegun,
    "output": OutputPiece,
    "again": AttemptOver,
    "outcome": RunOver,
}
_AGAIN_S = 1.0


class Runs:
    """Work of every kind that was asked of agents."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def list(self, query: RunsQuery) -> RunPage:
        return await self._line.ask("GET", "/runs", RunPage, query)

    async def get(self, run_id: str) -> RunAnswer:
        return await self._line.ask("GET", "/runs/{runId}", RunAnswer, RunPath(run_id=run_id))

    async def cancel(self, run_id: str) -> RunAnswer:
        path = RunPath(run_id=run_id)
        return await self._line.ask("POST", "/runs/{runId}/cancel", RunAnswer, path)

    async def why(self, run_id: str) -> WhyAnswer:
        """Why it waits (X-1)."""
        return await self._line.ask("GET", "/runs/{runId}/why", WhyAnswer, RunPath(run_id=run_id))

    async def tree(self, run_id: str) -> TreeAnswer:
        """It and all that it started."""
        path = RunPath(run_id=run_id)
        return await self._line.ask("GET", "/runs/{runId}/tree", TreeAnswer, path)

    async def resume(self, run_id: str) -> RunAnswer:
        """Go on with the agent session of a run whose worker died (W-3); the answer is the new run."""
        path = RunPath(run_id=run_id)
        return await self._line.ask("POST", "/runs/{runId}/resume", RunAnswer, path)

    async def watch(self, run_id: str) -> AsyncGenerator[News, None]:
        """What it emits, and at last how it ended. A connection that breaks is made anew.

        After that the latest that the attempt has emitted is told again, with a new `AttemptBegun` before it.
        Raises only if the first connection cannot be made.
        """
        path = f"/runs/{RunPath(run_id=run_id).run_id}/output"
        connected = False
        while True:
            try:
                async with aclosing(listen(self._line, path)) as heard:
                    async for event in heard:
                        connected = True
                        if (news := _news(event)) is not None:
                            yield news
                            if isinstance(news, RunOver):
                                return
                connected = True
            except Unavailable:
                if not connected:
                    raise
            await asyncio.sleep(_AGAIN_S)

    async def wait(self, run_id: str) -> RunOver:
        """How it ended, once it has."""
        async with aclosing(self.watch(run_id)) as watched:
            async for news in watched:
                if isinstance(news, RunOver):
                    return news
        raise AssertionError("a run is watched to its end")


def _news(event: Heard) -> News | None:
    kind = _KINDS.get(event.event)
    return None if kind is None else msgspec.convert(event.data, kind)
