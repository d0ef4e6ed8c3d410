"""This node's membership: its lease, its sight of the other nodes, and what it does when either ends (D-3, D-4).

The lease is counted from before each renewal was sent, by a clock that also runs while the machine is suspended.
A node that cannot renew stops its own attempts while its lease still holds. Another node is dead when its counter
stood still for a whole lease of its own, by our clock: no wall clock has a say in it.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from headway.model.errors import Unavailable
from headway.model.settings import Settings
from headway.model.time import SECOND, Instant, Span, span_text
from headway.ports import Clock, Peer, Renewal, Store
from headway.runtime.herald import Herald
from headway.runtime.outage import Outage

_SHORTEST_PAUSE_S = 0.05
_LONGEST_STEP_S = 0.5
_TOO_LATE = "the lease could not be renewed in time"
_MISSED_LOOKS = 2
"""A node that could not look at the others for so many renewals begins to count their silence anew."""


class Node(Protocol):
    """What the membership asks of its node."""

    @property
    def only_asks(self) -> bool:
        """Whether no agent runs here: then it need not own anything."""
        ...

    def fence(self) -> None:
        """The lease is about to end: stop all attempts, start nothing."""
        ...

    def unfence(self) -> None:
        """The lease holds again, and everything owned still is."""
        ...

    async def die(self) -> None:
        """Others have taken everything over: forget it all."""
        ...

    def widow(self) -> None:
        """A node has died: its sessions can be claimed."""
        ...


class Membership:
    """Keeps the lease and watches the others, as long as it runs."""

    def __init__(  # noqa: PLR0917 - all that a node's life hangs on, said once
        self,
        node: Node,
        store: Store,
        clock: Clock,
        settings: Settings,
        herald: Herald,
        outage: Outage,
        follow_time: Callable[[Instant | None, Instant], None] | None = None,
        host: str = "",
    ) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._settings = settings
        self._herald = herald
        self._outage = outage
        self._follow_time = follow_time
        self._until: Instant = 0
        """Until when, by the elapsed time, the lease holds."""
        self._seen: dict[int, tuple[int, Instant]] = {}
        """The other nodes: their counters, and since when each has stood still."""
        self._watched_at: Instant = 0
        """When this node last saw the others: of the time since then it can say nothing."""
        self._name = ""
        self._host = host
        """The machine that this node runs on: its workers are found there, and nowhere else (W-2)."""
        self._margin = _margin(settings)
        """The attempts are stopped so long before the lease ends."""
        self._fenced = False
        self._changing = asyncio.Lock()
        """One thing at a time happens to the incarnation: a renewal, its death, or its leaving."""
        self.number = 0
        self.away: str | None = None
        """Why the last renewal failed, if it did."""
        self._asked_at: Instant | None = None
        """When the renewal was sent that is under way, if one is."""

    def go_by(self, settings: Settings) -> None:
        """A lease lasts as long as it was asked for; but attempts that get another grace are stopped in time."""
        grace = settings.cancel_grace
        self._settings = msgspec.structs.replace(self._settings, cancel_grace=grace)
        self._margin = _margin(self._settings)

    @property
    def left(self) -> Span:
        """For how long the lease still holds, if it is not renewed."""
        return max(0, self._until - self._clock.elapsed())

    @property
    def alone(self) -> bool:
        """Whether no other node is known to live: nobody else could do the work."""
        return not self._seen

    def holds(self) -> bool:
        """Whether this node may act just now. Asked right before every call of a runner; if not, it is fenced."""
        self._look_at_lease()
        return not self._fenced

    async def join(self, name: str) -> None:
        """Become a new incarnation, which owns nothing."""
        self._name = name
        if self._node.only_asks and self._store.one_owner:
            # Whoever has the agents owns the file: this process adds and reads (N-21).
            self.number = 0
            return
        asked_at = self._clock.elapsed()
        self.number = await self._store.enlist(name, self._settings.lease, self._host)
        self._until = asked_at + self._settings.lease
        await self._renew()

    async def run(self) -> None:
        """Renew and watch, for ever, unless this process owns nothing that could be lost."""
        if not self.number:
            return
        every_s = self._settings.renew_every / SECOND
        pause_s = every_s
        while True:
            await self._sleep(pause_s)
            try:
                async with self._changing:
                    await self._renew()
            except (Unavailable, TimeoutError) as failed:
                self._cannot(str(failed) or _TOO_LATE)
                pause_s = min(every_s, max(_SHORTEST_PAUSE_S, every_s / 10))
            else:
                pause_s = every_s
            self._look_at_lease()

    async def watch_lease(self) -> None:
        """Look at the lease in short steps: while the machine slept the loop's timers stood, and it did not."""
        while self.number:
            await asyncio.sleep(_LONGEST_STEP_S)
            self._look_at_lease()

    async def _sleep(self, pause_s: float) -> None:
        """Until the next renewal, and not beyond the instant at which this node must stop its attempts."""
        left_s = (self._until - self._margin - self._clock.elapsed()) / SECOND
        await asyncio.sleep(max(0.0, pause_s if self._fenced else min(pause_s, left_s)))
        self._look_at_lease()

    async def rejoin(self) -> None:
        """Leave in good order and come back as a new incarnation, however long the store takes for it."""
        async with self._changing:
            while True:
                try:
                    await self._store.retire()
                    await self._node.die()
                    await self.join(self._name)
                except (Unavailable, TimeoutError) as failed:
                    self._cannot(str(failed) or _TOO_LATE)
                    await asyncio.sleep(self._settings.renew_every / SECOND)
                else:
                    return

    def _patience_s(self) -> float:
        """How long one renewal may take: an answer that comes after the fence is of no use."""
        left_s = (self._until - self._margin - self._clock.elapsed()) / SECOND
        longest_s = self._settings.lease / SECOND
        return longest_s if self._fenced else max(_SHORTEST_PAUSE_S, left_s)

    def _look_at_lease(self) -> None:
        if not self._fenced and self._clock.elapsed() >= self._until - self._margin:
            self._fenced = True
            self._herald.fenced(self.number, self._why_late())
            self._node.fence()

    def _why_late(self) -> str:
        if self.away is not None:
            return self.away
        if self._asked_at is not None:
            waited = span_text(self._clock.elapsed() - self._asked_at)
            return f"the store has not answered a renewal for {waited}"
        return "this process stood still when it was time to renew"

    def _cannot(self, error: str) -> None:
        self.away = error
        self._outage.noticed(self, error)

    async def _renew(self) -> None:
        asked_at = self._asked_at = self._clock.elapsed()
        try:
            # Not `wait_for`: before Python 3.12 it loses a cancellation that comes together with the answer.
            async with asyncio.timeout(self._patience_s()):
                renewal = await self._store.renew()
        except TimeoutError:
            self._look_at_lease()
            raise
        finally:
            self._asked_at = None
        self.away = None
        self._outage.over(self)
        if not renewal.alive:
            await self._die()
            return
        self._until = asked_at + self._settings.lease
        if self._follow_time is not None:
            self._follow_time(renewal.at, (self._clock.elapsed() - asked_at) // 2)
        if self._fenced:
            self._fenced = False
            self._node.unfence()
        await self._watch(renewal)

    async def _die(self) -> None:
        """This incarnation was declared dead. The next one owns nothing, and acts once it has renewed."""
        self._fenced = True
        self._herald.died(self.number)
        await self._node.die()
        await self.join(self._name)

    async def _watch(self, renewal: Renewal) -> None:
        """Bury whoever has shown no sign of life for a whole lease, while this node could have seen one."""
        now = self._clock.elapsed()
        if now - self._watched_at > _MISSED_LOOKS * self._settings.renew_every:
            self._seen.clear()
        self._watched_at = now
        living = {peer.id for peer in renewal.peers}
        for gone in set(self._seen) - living:
            del self._seen[gone]
        for peer in renewal.peers:
            counter, since = self._seen.get(peer.id, (-1, now))
            if peer.counter != counter:
                self._seen[peer.id] = (peer.counter, now)
            elif now - since >= peer.lease:
                await self._bury(peer)

    async def _bury(self, peer: Peer) -> None:
        if await self._store.bury(peer):
            self._seen.pop(peer.id, None)
            self._herald.node_dead(peer.id)
            self._node.widow()


def _margin(settings: Settings) -> Span:
    return min(settings.cancel_grace, settings.lease // 3)
