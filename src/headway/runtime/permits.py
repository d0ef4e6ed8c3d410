"""Permits: this node's share of the lanes that are bounded over all nodes (L-8).

A lane with a cluster limit has as many numbered slots in the store. A node starts a run in such a lane only on a
slot that it holds, keeps what it can use, and gives one back after each end while another node waits for one.
"""

import asyncio
from collections.abc import Callable

from headway.core.kernel import Kernel
from headway.model.errors import Unavailable
from headway.model.run import LaneName
from headway.ports import Clock, Store


class Permits:
    """Takes and gives back slots as the lanes need them."""

    def __init__(
        self, kernel: Kernel, store: Store, clock: Clock, wake: Callable[[], None]
    ) -> None:
        self._kernel = kernel
        self._store = store
        self._clock = clock
        self._wake = wake
        self._held: dict[LaneName, int] = {}
        """Slots of this node in the store."""
        self._allowed: dict[LaneName, int] = {}
        """How many of them the kernel may use."""
        self._unsettled: set[LaneName] = set()
        """Lanes for which the store has a wish of this node, or may have: it must hear when that is over."""
        self._woken = asyncio.Event()

    def look(self) -> None:
        self._woken.set()

    def look_if_limited(self) -> None:
        """Something has changed in the lanes; most nodes have no limited ones."""
        if self._kernel.limited_lanes or self._held:
            self._woken.set()

    def lose_all(self) -> None:
        """This incarnation is dead: so are its slots."""
        for lane in self._held:
            self._kernel.set_permits(lane, 0, self._clock.now())
        self._held.clear()
        self._allowed.clear()
        self._unsettled.clear()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                wishes = self._kernel.wanted_permits()
                for lane, wanted in wishes.items():
                    await self._settle(lane, wanted)
                for lane in [lane for lane in self._held if lane not in wishes]:
                    await self._give_up(lane)
            except Unavailable:
                await asyncio.sleep(1)
                self._woken.set()

    async def _settle(self, lane: LaneName, wanted: int) -> None:
        limit = self._kernel.stage.floor.lanes[lane].settings.cluster_limit
        if limit is None:
            return
        held = self._held.get(lane, 0)
        waiting = await self._store.slots_wanted(lane) if held else 0
        has_more_than_its_share = waiting > 0 and held > limit // (waiting + 1)
        target = min(wanted, held - 1) if has_more_than_its_share else wanted
        self._allow(lane, min(held, target))
        asked = max(target, self._kernel.stage.floor.lanes[lane].in_use)
        if asked != held or lane in self._unsettled:
            # Until the answer is there the lower number counts: it may be lost, and what was given is gone.
            self._held[lane] = min(held, asked)
            self._unsettled.add(lane)
            self._held[lane] = await self._store.hold_slots(lane, limit, asked)
            if self._held[lane] == asked:
                self._unsettled.discard(lane)
            self._allow(lane, min(self._held[lane], target))

    async def _give_up(self, lane: LaneName) -> None:
        """The lane is limited no longer: other nodes, for which it still is, get all of its slots."""
        await self._store.hold_slots(lane, 0, 0)
        del self._held[lane]
        self._allowed.pop(lane, None)
        self._unsettled.discard(lane)

    def _allow(self, lane: LaneName, count: int) -> None:
        """The kernel starts no more than this; what runs beyond it ends first, then its slot is given back."""
        if count != self._allowed.get(lane, 0):
            self._allowed[lane] = count
            self._kernel.set_permits(lane, count, self._clock.now())
            self._wake()
