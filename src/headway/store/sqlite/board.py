"""Hints between stores of one process that share a database."""

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from headway.ports import Hint

Hear: TypeAlias = Callable[[Hint], None]

EVERYONE = 0
"""In place of a node's number: all that listen, but for the one who tells. Nodes are numbered from 1."""


class Board:
    """Who listens, by database. Told from any thread, heard on the listener's own loop."""

    def __init__(self) -> None:
        self._listeners: dict[
            str, dict[object, tuple[Callable[[], int], Hear, asyncio.AbstractEventLoop]]
        ] = {}

    def listen(
        self,
        path: str,
        who: object,
        node: Callable[[], int],
        hear: Hear,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._listeners.setdefault(path, {})[who] = (node, hear, loop)

    def leave(self, path: str, who: object) -> None:
        listeners = self._listeners.get(path, {})
        listeners.pop(who, None)
        if not listeners:
            self._listeners.pop(path, None)

    def tell(self, path: str, teller: object, hints: set[tuple[int, Hint]]) -> None:
        """Pass hints on: to one node, or to everyone else."""
        for who, (node, hear, loop) in tuple(self._listeners.get(path, {}).items()):
            for to, hint in hints:
                meant = who is not teller if to == EVERYONE else to == node()
                if meant and not loop.is_closed():
                    loop.call_soon_threadsafe(hear, hint)


BOARD = Board()
