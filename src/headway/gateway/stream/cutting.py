"""How a client that takes nothing is cut off: its connection is broken off, with all that was still to be sent.

An ordinary close first sends what is buffered, and a client that does not read would hold the connection for ever.
A server says in the scope of a connection how to break it off (`protocols.py`); with one that does not say it, a
close must do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from litestar.types import Receive

EXTENSION = "headway.cut"
"""The ASGI extension in which the server gives `abort`."""

Message = TypeVar("Message")


class CutOff(Exception):
    """A client took nothing for too long; its connection is being broken off."""


def abort_of(scope: Mapping[str, object]) -> Callable[[], None]:
    """What breaks off the connection of a scope."""
    extensions = scope.get("extensions")
    given = extensions.get(EXTENSION) if isinstance(extensions, Mapping) else None
    abort = given.get("abort") if isinstance(given, Mapping) else None
    return abort if callable(abort) else _nothing


def sending_within(
    send: Callable[[Message], Awaitable[None]], abort: Callable[[], None], within_s: float
) -> Callable[[Message], Awaitable[None]]:
    """The same `send`, but a message that cannot be sent in time breaks the connection off and raises `CutOff`."""

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(within_s):
                await send(message)
        except TimeoutError:
            abort()
            raise CutOff from None

    return send_in_time


async def until_gone(receive: Receive) -> None:
    """Until the client has left, or the whole answer was sent. What it says meanwhile is not looked at."""
    while not str((await receive())["type"]).endswith(".disconnect"):
        pass


def _nothing() -> None:
    pass
