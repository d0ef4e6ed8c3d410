"""The courier: takes what the outbox holds to its channels, until they have it (at least once).

What is in the outbox was stored together with the outcome that it tells of, under the epoch of its session: an
attempt that counts no longer never gets anything in here (X-4).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from headway.calls import call
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.time import SECOND, Instant, Span
from headway.ports import Channel, Clock, Store
from headway.runtime.herald import Herald
from headway.runtime.replies import describe, is_own_cancel
from headway.runtime.round import ManyReceivers, Round

Sends: TypeAlias = Callable[[Delivery], object]
"""Delivers one thing, at once or as an awaitable; raises if it could not."""

_TYPING_S = 5.0


class Courier:
    """Delivers for the channels that this node has."""

    def __init__(self, store: Store, clock: Clock, herald: Herald) -> None:
        self._store = store
        self._clock = clock
        self._herald = herald
        self._channels: dict[str, Channel | Sends | None] = {}
        self._rounds: dict[str, Round] = {}
        """One for each channel that was looked at. Each goes on by itself: a slow channel holds up no other."""
        self._woken = asyncio.Event()
        self._rested = asyncio.Event()
        """Whether some round may have come to rest."""
        self._looks: set[Instant] = set()
        """When something may be due."""

    def add(self, name: str, channel: Channel | Sends | None) -> None:
        """A channel of this node or, without a function, of other nodes only."""
        self._channels[name] = channel
        self._woken.set()

    def remove(self, name: str) -> None:
        """This node has the channel no more; what is for it waits for one that has."""
        self._channels.pop(name, None)

    @property
    def has_channels(self) -> bool:
        return bool(self._channels)

    def knows(self, channel: str) -> bool:
        return channel in self._channels

    def round(self, name: str) -> Round:
        """What is at hand for a channel that was looked at."""
        return self._rounds[name]

    def look(self) -> None:
        if self._channels:
            self._woken.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                await self._woken.wait()
                self._woken.clear()
                for name, channel in self._channels.items():
                    if channel is None:
                        continue
                    if name not in self._rounds:
                        self._rounds[name] = self._new_round(name, channel)
                        group.create_task(self._rounds[name].run())
                    self._rounds[name].wake()

    async def finish(self, within: Span) -> None:
        """Deliver what is due, and take no more. What is not delivered by then waits for whoever comes next."""
        self.look()
        await asyncio.sleep(0)
        rounds = tuple(self._rounds.values())
        for each in rounds:
            each.wake()
        with suppress(TimeoutError):
            async with asyncio.timeout(within / SECOND):
                while not all(each.at_rest for each in rounds):
                    self._rested.clear()
                    await self._rested.wait()
        for each in rounds:
            await each.close()

    def _new_round(self, name: str, channel: Channel | Sends) -> Round:
        return Round(
            name,
            self._store,
            self._clock,
            self._herald,
            send=self._send,
            receiver=_receiver(channel),
            look_at=self._look_at,
            rested=self._rested.set,
        )

    def _look_at(self, at: Instant) -> None:
        """Something may be due then."""
        if at in self._looks:
            return
        self._looks.add(at)
        delay_s = max(0, at - self._clock.now()) / SECOND
        asyncio.get_running_loop().call_later(delay_s, self._look_now, at)

    def _look_now(self, at: Instant) -> None:
        self._looks.discard(at)
        self._woken.set()

    async def _send(self, delivery: Delivery) -> None:
        channel = self._channels.get(delivery.route.channel)
        if isinstance(channel, Channel):
            await channel.send(delivery)
        elif channel is None:
            raise LookupError(f"this node has the channel {delivery.route.channel} no more")
        elif delivery.text or delivery.attachments:
            # A plain function shows no typing, so there is nothing that an empty message could end.
            await call(channel, delivery)

    def types(self, route: Route) -> bool:
        """Whether the channel of this node shows that an agent is at work."""
        return isinstance(self._channels.get(route.channel), Channel)

    async def typing(self, route: Route, *, on: bool) -> None:
        channel = self._channels.get(route.channel)
        if isinstance(channel, Channel):
            try:
                async with asyncio.timeout(_TYPING_S):
                    await channel.typing(route, on)
            except BaseException as error:
                if is_own_cancel(error, asyncio.current_task()):
                    raise
                self._herald.callback_failed(f"typing on {route.channel}", describe(error))


def _receiver(channel: object) -> Callable[[Route], str] | None:
    """What tells the receivers of a channel that has many."""
    return channel.receiver if isinstance(channel, ManyReceivers) else None
