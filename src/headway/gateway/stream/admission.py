"""Whether a connection that lasts may go on: there is room for it, and its token is still good."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import cast

from litestar.types import Scope

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.errors import Crowded
from headway.model.errors import Unavailable

LOOKS_EVERY_S = 15.0
"""How often it is looked whether the client's token is still good."""


def need_room(desk: Desk) -> None:
    most = desk.settings.max_streams
    if desk.streams >= most:
        raise Crowded("streams", most)


@contextlib.contextmanager
def seat(desk: Desk) -> Iterator[None]:
    """A connection that lasts, counted while it does."""
    desk.streams += 1
    try:
        yield
    finally:
        desk.streams -= 1


class Visitor:
    """Who is at the other end of a connection, looked up anew each time."""

    def __init__(self, desk: Desk, scope: Scope) -> None:
        client = scope.get("client")
        self._desk = desk
        self._headers = dict(cast(Mapping[bytes, bytes], scope["headers"]))
        self._client = None if client is None else client[0]
        self._query = scope["query_string"]

    async def admit(self) -> Caller:
        """The caller; raises `Unauthorized` once the token was revoked, and `TooMany` if it asks too often."""
        desk = self._desk
        now = desk.clock.elapsed()
        return await desk.guard.admit(self._headers, self._client, now, query=self._query)

    async def until_refused(self) -> None:
        """Look again and again. Raises `Unauthorized` when the caller may no longer be here."""
        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            with contextlib.suppress(Unavailable):
                await self.admit()
