"""Runs on a server: looked at, cancelled, watched to their end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeAlias

import msgspec

from headway.client.errors import ServerFailed
from headway.client.line import Line
from headway.client.streams import Heard, listening
from headway.model.errors import HeadwayError, Unavailable
from headway.model.value import Value
from headway.wire.output import AttemptBegun, AttemptOver, OutputPiece, RunOver
from headway.wire.runs import RunAnswer, RunPage, RunPath, RunsQuery, TreeAnswer, WhyAnswer


class ServerAway(Value, frozen=True):
    """The connection broke, or the server cannot be asked just now; it is tried until it can."""


class ServerBack(Value, frozen=True):
    """After it was away, the server is asked again."""


_Told: TypeAlias = AttemptBegun | OutputPiece | AttemptOver | RunOver
News: TypeAlias = _Told | ServerAway | ServerBack
"""What comes while a run is watched."""

_KINDS: dict[str, type[_Told]] = {
    "attempt": AttemptBegun,
    "output": OutputPiece,
    "again": AttemptOver,
    "outcome": RunOver,
}
_AGAIN_S = 1.0
_GATEWAY_ERRORS = {502, 503, 504}


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

    async def watch(self, run_id: str, *, taken: bool = False) -> AsyncGenerator[News, None]:
        """What it emits, and at last how it ended. A connection that breaks is made anew.

        After that the latest that the attempt has emitted is told again, with a new `AttemptBegun` before it.
        That the server is away raises only if the first connection cannot be made; of a run that the server is
        known to have `taken`, not even then.
        """
        path = f"/runs/{RunPath(run_id=run_id).run_id}/output"
        patient, away = taken, False
        while True:
            try:
                async with listening(self._line, path) as heard:
                    patient = True
                    if away:
                        yield ServerBack()
                    away = False
                    async for event in heard:
                        if (news := _news(event)) is not None:
                            yield news
                            if isinstance(news, RunOver):
                                return
            except HeadwayError as error:
                if not (patient and _passes(error)):
                    raise
                if not away:
                    yield ServerAway()
                away = True
            await asyncio.sleep(_AGAIN_S)

    async def wait(self, run_id: str, *, taken: bool = False) -> RunOver:
        """How it ended, once it has."""
        async with aclosing(self.watch(run_id, taken=taken)) as watched:
            async for news in watched:
                if isinstance(news, RunOver):
                    return news
        raise AssertionError("a run is watched to its end")


def _passes(error: HeadwayError) -> bool:
    """Whether it may be over with time: a server that is away, or a proxy that says so."""
    if isinstance(error, ServerFailed):
        return error.status in _GATEWAY_ERRORS
    return isinstance(error, Unavailable)


def _news(event: Heard) -> _Told | None:
    kind = _KINDS.get(event.event)
    return None if kind is None else msgspec.convert(event.data, kind)
