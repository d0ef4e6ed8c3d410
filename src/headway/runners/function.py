"""Agents that are Python functions, async or plain."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from headway.calls import in_thread, is_async
from headway.turn import Turn

AgentFunction: TypeAlias = Callable[[Turn], object]


class FunctionRunner:
    """Runs a function: an async one as it is, a plain one in a thread of its own."""

    def __init__(self, function: AgentFunction) -> None:
        self._function = function
        self.run: Callable[[Turn], Awaitable[object]] = (
            function if is_async(function) else self._run_in_thread  # type: ignore[assignment]
        )

    async def _run_in_thread(self, turn: Turn) -> object:
        """A thread cannot be cancelled: the function sees `turn.cancelled`, and is waited for until it returns."""
        work = in_thread(self._function, turn)
        while not work.done():
            try:
                await asyncio.wait((work,))
            except asyncio.CancelledError:
                if turn.over:
                    raise
        result = work.result()
        return await result if inspect.isawaitable(result) else result
