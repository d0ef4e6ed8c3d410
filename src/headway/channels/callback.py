"""The channel of callbacks: tells whoever asked for a task how it ended (T-4).

A notice is in the outbox since the outcome is stored; from there on it is a letter like any other. What is
particular is where it goes: to an address that a caller chose. So it is looked up and checked anew each time, and
the connection is made to the very address that was checked, while the request and the certificate go by the name.
"""

import contextlib
from typing import TYPE_CHECKING

from headway.channels.posting import (
    NotConnected,
    Poster,
    WebhookFailed,
    answers_within,
    judge,
    load_httpx,
    need_httpx,
)
from headway.channels.reaching import Lookup, MayNotBeTold, Resolver, reach
from headway.core.addresses import Address, read_address
from headway.core.callback_url import CallbackUrl, read_callback_url
from headway.model.errors import InvalidInput, Permanent
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.settings import CallbackSettings
from headway.model.time import SECOND
from headway.ports import Clock
from headway.runtime.clock import SystemClock
from headway.wire.notice import notice_id

if TYPE_CHECKING:
    from httpx import URL

_MOST_ADDRESSES = 3
"""So many addresses of a host are tried, one after the other, if nobody takes the connection."""


class CallbackChannel:
    """Posts notices to the addresses in their routes; to public ones only, unless the settings say otherwise."""

    def __init__(
        self,
        settings: CallbackSettings,
        *,
        clock: Clock | None = None,
        resolve: Resolver | None = None,
    ) -> None:
        need_httpx("a callback")
        self._settings = settings
        self._clock = SystemClock() if clock is None else clock
        self._resolve = Lookup() if resolve is None else resolve
        self._poster: Poster | None = None
        """Made when the first notice is sent: its certificates take a moment to load. It keeps no connections."""

    async def check(self, url: str) -> None:
        """Whether a task may call back there. Nothing is connected to."""
        to = read_callback_url(url, "callback")
        try:
            await reach(to, self._resolve, private=self._settings.private)
        except MayNotBeTold as wrong:
            raise InvalidInput("callback", to.origin, str(wrong)) from None

    def receiver(self, route: Route) -> str:
        """Who takes it: notices to one host hold up no others."""
        try:
            to = read_callback_url(route.peer, "callback")
        except InvalidInput:
            return ""
        return f"{to.host}:{to.port}"

    async def send(self, delivery: Delivery) -> None:
        if delivery.id != notice_id(delivery.run_id):
            raise Permanent("only a notice of Headway's own is signed as one")
        try:
            to = read_callback_url(delivery.route.peer, "callback")
        except InvalidInput as wrong:
            raise Permanent(str(wrong)) from None
        if self._poster is None:
            # Before the time runs that the receiver has.
            self._poster = Poster(self._settings.secret, self._clock, by_proxy=False)
        async with answers_within(self._settings.timeout / SECOND, to.origin):
            try:
                addresses = await reach(to, self._resolve, private=self._settings.private)
            except MayNotBeTold as wrong:
                # Names change, and so do mistakes in them: it is tried again like any other failure.
                raise WebhookFailed(f"{to.origin} was not told: it must be {wrong}") from None
            told = await self._post(to, addresses[:_MOST_ADDRESSES], delivery)
        judge(to.origin, *told, redirects=False)

    async def typing(self, route: Route, on: bool) -> None:
        """Nobody looks."""

    async def _post(
        self, to: CallbackUrl, addresses: tuple[Address, ...], delivery: Delivery
    ) -> tuple[int, str]:
        """Post to the first address that takes the connection."""
        for address in addresses[:-1]:
            with contextlib.suppress(NotConnected):
                return await self._post_to(to, address, len(addresses), delivery)
        return await self._post_to(to, addresses[-1], len(addresses), delivery)

    async def _post_to(
        self, to: CallbackUrl, address: Address, among: int, delivery: Delivery
    ) -> tuple[int, str]:
        assert self._poster is not None
        return await self._poster.post(
            _pinned(to, address),
            to.origin,
            delivery.id,
            delivery.text.encode(),
            headers={"Host": to.host_header},
            name=_name(to),
            connect_within_s=self._settings.timeout / SECOND / among,
        )


def _pinned(to: CallbackUrl, address: Address) -> "URL":
    """The same request, to exactly this address."""
    url: URL = load_httpx().URL(
        scheme=to.scheme, host=str(address), port=to.port, raw_path=to.target.encode()
    )
    return url


def _name(to: CallbackUrl) -> str | None:
    """Whom the certificate must name; an address is named by itself."""
    return None if read_address(to.host) is not None else to.host.removesuffix(".")
