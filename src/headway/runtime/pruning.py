"""Pruning: the store forgets what is past its retention, a little at a time."""

import asyncio

from headway.model.errors import Unavailable
from headway.model.settings import Settings
from headway.model.time import SECOND
from headway.ports import Store

_AT_ONCE = 500
_PAUSE_S = 1.0
"""Before the next few, while there is more to forget: other work of the store comes in between."""


class Pruner:
    """Has the store prune itself, as long as it runs."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._every_s = settings.prune_every / SECOND

    async def run(self) -> None:
        pause_s = 0.0
        while True:
            await asyncio.sleep(pause_s)
            pause_s = self._every_s
            try:
                pruned = await self._store.prune(_AT_ONCE)
            except Unavailable:
                continue
            if pruned >= _AT_ONCE:
                pause_s = _PAUSE_S
