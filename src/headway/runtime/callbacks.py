"""Functions that users gave to the engine: wait callbacks and the token estimate.

They run beside the scheduler and within a bound. One that raises or is slow becomes an event, nothing more.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import TypeAlias, TypeVar

from headway.calls import call
from headway.model.events import RunWaited
from headway.model.run import SessionKey
from headway.model.time import SECOND, Span
from headway.runtime.herald import Herald
from headway.runtime.replies import describe

Result = TypeVar("Result")
TokenEstimate: TypeAlias = Callable[[SessionKey], object]
"""Answers (tokens, context window) of a session, at once or as an awaitable."""
WaitCallback: TypeAlias = Callable[[RunWaited], object]


class Callbacks:
    """Calls users' functions so that none of them can stop the scheduler."""

    def __init__(self, herald: Herald, within: Span) -> None:
        self._herald = herald
        self.within = within
        self._chores: set[asyncio.Task[object]] = set()
        self.on_wait: list[WaitCallback] = []
        self.estimate: TokenEstimate | None = None

    def waited(self, event: RunWaited) -> None:
        """Tell the wait callbacks. They run on the loop, as hooks do, so they may call back into Headway."""
        for callback in self.on_wait:
            self.start(self._guarded("on_wait", self._call_on_loop(callback, event)))

    async def estimated(self, session: SessionKey) -> tuple[int, int]:
        """Tokens and context window of a session; (0, 0) if that could not be found out."""
        if self.estimate is None:
            return 0, 0
        answer = await self._guarded("token_estimate", call(self.estimate, session))
        match answer:
            case (int(tokens), int(window)):
                return tokens, window
            case None:
                return 0, 0
            case _:
                error = f"answered {answer!r}, not (tokens, context window)"
                self._herald.callback_failed("token_estimate", error)
                return 0, 0

    def start(self, chore: Coroutine[object, object, Result]) -> asyncio.Task[Result]:
        """Let something small happen beside the scheduler."""
        task = asyncio.get_running_loop().create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        return task

    def stop(self) -> None:
        for chore in tuple(self._chores):
            chore.cancel()

    async def _call_on_loop(self, callback: WaitCallback, event: RunWaited) -> None:
        result = callback(event)
        if inspect.isawaitable(result):
            await result

    async def _guarded(self, name: str, work: Coroutine[object, object, object]) -> object:
        try:
            return await asyncio.wait_for(work, self.within / SECOND)
        except Exception as error:  # noqa: BLE001 - a user's callback must not stop the scheduler
            self._herald.callback_failed(name, describe(error))
            return None
