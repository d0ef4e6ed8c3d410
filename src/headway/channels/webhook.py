"""A channel that posts what is said to an address on the web, signed.

The receiver answers 2xx when it has the letter. 4xx says that it never will take it, but for 408 and 429; after
anything else it is tried again. It checks the signature with `verify_signature`, and remembers ids: a letter whose
answer was lost comes again.
"""

from collections.abc import Mapping
from datetime import timedelta
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from headway.channels.letter import letter_of
from headway.channels.posting import NO_HEADERS, Poster, answers_within, judge, load_httpx
from headway.channels.signing import secret_bytes
from headway.model.errors import InvalidInput
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.time import SECOND, span
from headway.ports import Clock
from headway.runtime.clock import SystemClock

if TYPE_CHECKING:
    from httpx import URL

_ADDRESS = "an address such as https://example.com/hook"


class WebhookChannel:
    """Posts each delivery as JSON, over a connection of its own; never follows a redirect.

    It shows no typing: the letter that is `empty` says that nothing comes.
    """

    def __init__(
        self,
        url: str,
        secret: str | bytes,
        *,
        timeout: str | timedelta = "10s",
        headers: Mapping[str, str] = NO_HEADERS,
        clock: Clock | None = None,
    ) -> None:
        """`headers` go with each letter, such as `Authorization`; the clock dates the signatures."""
        secret_bytes(secret)
        self._timeout_s = span(timeout, "timeout") / SECOND
        self._url = _check_url(url, load_httpx())
        self._poster = Poster(
            secret, SystemClock() if clock is None else clock, headers=_check_headers(headers)
        )
        port = f":{self._url.port}" if self._url.port else ""
        self._where = f"{self._url.scheme}://{self._url.host}{port}"
        """The address without what may be secret in it."""

    def __repr__(self) -> str:
        return f"<WebhookChannel {self._where}>"

    async def send(self, delivery: Delivery) -> None:
        body = msgspec.json.encode(letter_of(delivery))
        async with answers_within(self._timeout_s, self._where):
            told = await self._poster.post(self._url, self._where, delivery.id, body)
        judge(self._where, *told)

    async def typing(self, route: Route, on: bool) -> None:
        """A receiver is told what is said, not that something will be."""

    async def close(self) -> None:
        await self._poster.close()


def _check_url(url: str, httpx: ModuleType) -> "URL":
    """The address, if letters can be posted there. It is not shown: it may hold a secret."""
    try:
        parsed: URL = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as wrong:
        raise InvalidInput("url", "…", _ADDRESS) from wrong
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise InvalidInput("url", "…", _ADDRESS)
    return parsed


def _check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not (name.isascii() and name.isprintable() and value.isascii() and value.isprintable()):
            raise InvalidInput("headers", name, "a name and a value of printable ASCII characters")
    return dict(headers)
