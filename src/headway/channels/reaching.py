"""Finding out where a callback would go, and whether it may go there (T-4).

Asked when a task is submitted, and again right before each connection: what a name resolves to is up to whoever
has the name. What is answered here are addresses, and to one of these the connection is made, not to the name.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

from headway.calls import in_thread
from headway.core.addresses import Address, not_public, read_address, read_odd_address
from headway.core.callback_url import CallbackUrl
from headway.model.errors import HeadwayError

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, as text, the best first. Raises `OSError` if there are none."""

_LOOKS_AT_ONCE = 16
_OF_ONE_DOMAIN = 4
_WITHIN_S = 5.0


class MayNotBeTold(HeadwayError):
    """An address that nothing is sent to. The text says what it should have been."""

    code = "may_not_be_told"


class Lookup:
    """Asks the system for the addresses of a name, in threads, and never in many at once.

    A thread that waits for a slow server of names cannot be ended: it counts until it has returned. So names of
    one domain get a part of the threads only: who has a domain has as many names in it as he likes.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(_LOOKS_AT_ONCE)
        self._shares: dict[str, _Share] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        domain = ".".join(host.lower().removesuffix(".").rsplit(".", 2)[-2:])
        share = self._shares.setdefault(domain, _Share())
        share.users += 1
        try:
            await share.free.acquire()
            try:
                await self._free.acquire()
            except BaseException:
                share.free.release()
                raise
        except BaseException:
            self._leave(domain)
            raise
        asked = in_thread(_look_up, host, port)
        asked.add_done_callback(partial(self._returned, domain))
        return await asyncio.shield(asked)

    def _returned(self, domain: str, asked: "asyncio.Future[Sequence[str]]") -> None:
        self._free.release()
        self._shares[domain].free.release()
        self._leave(domain)
        if not asked.cancelled():
            # Whoever asked may have given up: then nobody else looks at its error.
            asked.exception()

    def _leave(self, domain: str) -> None:
        share = self._shares[domain]
        share.users -= 1
        if not share.users:
            del self._shares[domain]


class _Share:
    """The lookups of one domain."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(_OF_ONE_DOMAIN)
        self.users = 0


async def reach(
    url: CallbackUrl, resolve: Resolver, *, private: bool, within_s: float = _WITHIN_S
) -> tuple[Address, ...]:
    """The addresses of a host, if every one of them may be told; `MayNotBeTold` if not.

    Every one: whoever mixes a private address among public ones shall not have a chance that it is taken.
    """
    addresses = _written(url.host, private=private)
    if not addresses:
        addresses = await _resolved(url, resolve, within_s)
    if not private:
        for address in addresses:
            if what := not_public(address):
                raise MayNotBeTold(_public_only(f"it leads to an address {what}"))
    return addresses


def _written(host: str, *, private: bool) -> tuple[Address, ...]:
    """The address that a host is; nothing if it is a name."""
    plain = read_address(host)
    if plain is not None:
        return (plain,)
    odd = read_odd_address(host)
    if odd is None:
        return ()
    if not private:
        raise MayNotBeTold(_public_only("an address of IPv4 is written as four plain numbers"))
    return (odd,)


async def _resolved(url: CallbackUrl, resolve: Resolver, within_s: float) -> tuple[Address, ...]:
    try:
        async with asyncio.timeout(within_s):
            found = await resolve(url.host, url.port)
    except TimeoutError:
        raise MayNotBeTold(
            f"at a host that can be looked up: that took over {within_s:g} s"
        ) from None
    except (OSError, UnicodeError):
        raise MayNotBeTold("at a host that can be looked up: there is none of this name") from None
    addresses = [read_address(text.partition("%")[0]) for text in found]
    if not addresses or not all(addresses):
        raise MayNotBeTold("at a host that can be looked up: it has no addresses")
    return tuple(dict.fromkeys(address for address in addresses if address is not None))


def _public_only(why: str) -> str:
    return f"at an address of the public internet: {why} (callbacks.private allows others)"


def _look_up(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(where[0]) for *_, where in found]
