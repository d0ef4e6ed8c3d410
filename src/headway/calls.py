"""Calling what users gave us: plain or async functions, in a thread where they may block, never for too long."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method itself is looked at, not callability
    )


def in_thread(
    function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> "asyncio.Future[Result]":
    """Run a function in a thread of its own.

    A thread each, because one that ignores its cancellation must not keep a pool's place or the process alive.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(result: Result | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result: Result | None = None
        error: BaseException | None = None
        try:
            result = context.run(function, *args, **kwargs)
        except BaseException as raised:  # noqa: BLE001 - handed over to the awaiting task, whatever it is
            error = raised if not isinstance(raised, StopIteration) else RuntimeError(str(raised))
        try:
            loop.call_soon_threadsafe(deliver, result, error)
        except RuntimeError:
            return  # The loop is closed: nobody waits for this any more.

    threading.Thread(target=work, name="headway-agent", daemon=True).start()
    return future


async def call(function: Callable[..., object], *args: object) -> object:
    """Call a user's function: an async one here, a plain one in a thread, because it may block."""
    result = function(*args) if is_async(function) else await in_thread(function, *args)
    return await result if inspect.isawaitable(result) else result


async def finished(work: "asyncio.Future[Result]") -> Result:
    """Wait for something that must not be left half done, also if this task is cancelled meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError as again:
            cancelled = again
    if cancelled is not None:
        raise cancelled
    return work.result()
