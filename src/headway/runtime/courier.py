"""The courier: takes what the outbox holds to its channels, until they have it (at least once).

What is in the outbox was stored together with the outcome that it tells of, under the epoch of its session: an
attempt that counts no longer never gets anything in here (X-4).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from headway.calls import call
from headway.core.retry import delay
from headway.model.errors import Permanent, Unavailable
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.time import DAY, MINUTE, SECOND, Instant
from headway.ports import Channel, Clock, Store
from headway.runtime.herald import Herald
from headway.runtime.replies import describe, is_own_cancel

Sends: TypeAlias = Callable[[Delivery], object]
"""Delivers one thing, at once or as an awaitable; raises if it could not."""

_AT_ONCE = 20
_HELD_FOR = MINUTE
"""While one node tries a delivery, no other does, for so long."""
_GIVES_UP_AFTER = DAY
_MOST_DOUBLINGS = 10
_TYPING_S = 5.0


class Courier:
    """Delivers for the channels that this node has."""

    def __init__(self, store: Store, clock: Clock, herald: Herald) -> None:
        self._store = store
        self._clock = clock
        self._herald = herald
        self._channels: dict[str, Channel | Sends | None] = {}
        self._woken = asyncio.Event()
        self._busy: set[str] = set()
        """Channels that are being served."""

    def add(self, name: str, channel: Channel | Sends | None) -> None:
        """A channel of this node or, without a function, of other nodes only."""
        self._channels[name] = channel
        self._woken.set()

    @property
    def has_channels(self) -> bool:
        return bool(self._channels)

    def knows(self, channel: str) -> bool:
        return channel in self._channels

    def look(self) -> None:
        if self._channels:
            self._woken.set()

    async def run(self) -> None:
        """Each channel is served by itself: a slow one holds up no other."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._woken.wait()
                self._woken.clear()
                for name, channel in self._channels.items():
                    if channel is not None and name not in self._busy:
                        self._busy.add(name)
                        group.create_task(self._serve(name))

    async def _serve(self, name: str) -> None:
        """Deliver what is due on one channel, until nothing is."""
        try:
            while due := await self._take(name):
                until = self._clock.now() + _HELD_FOR // 2
                async with asyncio.TaskGroup() as group:
                    for deliveries in _by_session(due):
                        group.create_task(self._deliver_in_turn(deliveries, until))
        except Unavailable:
            self._look_at(self._clock.now() + SECOND)
        finally:
            self._busy.discard(name)

    async def _take(self, name: str) -> Sequence[Delivery]:
        now = self._clock.now()
        return await self._store.take_deliveries([name], _AT_ONCE, now, now + _HELD_FOR)

    def _look_at(self, at: Instant) -> None:
        """Something may be due then."""
        delay_s = max(0, at - self._clock.now()) / SECOND
        asyncio.get_running_loop().call_later(delay_s, self._woken.set)

    async def _deliver_in_turn(self, deliveries: Sequence[Delivery], until: Instant) -> None:
        """What belongs to one conversation arrives in its order; after a failure the rest waits with it."""
        failed_until: Instant | None = None
        for delivery in deliveries:
            if self._clock.now() >= until:
                # Others may take the rest soon: they come again when their time is over.
                self._look_at(self._clock.now() + _HELD_FOR)
                return
            if failed_until is not None:
                await self._settle(delivery, failed_until, "what came before it was not delivered")
                continue
            channel = self._channels[delivery.route.channel]
            assert channel is not None
            try:
                async with asyncio.timeout(_HELD_FOR / SECOND / 3):
                    await self._send(channel, delivery)
            except BaseException as error:
                if is_own_cancel(error, asyncio.current_task()):
                    raise
                failed_until = self._try_again_at(delivery, error)
                self._herald.delivery_failed(delivery, describe(error), failed_until)
                await self._settle(delivery, failed_until, describe(error))
            else:
                await self._settle(delivery, None, "")

    async def _send(self, channel: Channel | Sends, delivery: Delivery) -> None:
        if isinstance(channel, Channel):
            await channel.send(delivery)
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

    def _try_again_at(self, delivery: Delivery, error: BaseException) -> Instant | None:
        now = self._clock.now()
        if isinstance(error, Permanent) or now - delivery.first_at >= _GIVES_UP_AFTER:
            return None
        again_at = now + delay(min(delivery.tries, _MOST_DOUBLINGS), 0.5)
        self._look_at(again_at)
        return again_at

    async def _settle(self, delivery: Delivery, again_at: Instant | None, error: str) -> None:
        try:
            await self._store.settle_delivery(delivery, again_at, error)
        except Unavailable:
            # Not settled: it comes again when its time is over, and its id tells the channel.
            self._look_at(self._clock.now() + _HELD_FOR)


def _by_session(deliveries: Sequence[Delivery]) -> list[list[Delivery]]:
    groups: dict[tuple[str, str], list[Delivery]] = {}
    for delivery in deliveries:
        groups.setdefault((delivery.route.channel, delivery.session), []).append(delivery)
    return list(groups.values())
