"""Posting signed JSON to an address on the web, and what the answer means.

The receiver answers 2xx when it has the letter. 4xx says that it never will take it, but for 408 and 429; after
anything else it is tried again.
"""

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

from headway.channels.signing import secret_bytes, signed_headers
from headway.model.errors import HeadwayError, Permanent, Refused
from headway.ports import Clock

if TYPE_CHECKING:
    from httpx import URL, AsyncClient

NO_HEADERS: Mapping[str, str] = MappingProxyType({})

_READ_AT_MOST = 1_000
"""So many bytes of an answer are read: enough to show what went wrong."""
_NOT_FOR_EVER = frozenset({408, 429})


class WebhookFailed(HeadwayError):
    """The receiver did not take the letter this time."""

    code = "webhook_failed"


class NotConnected(WebhookFailed):
    """Nothing was sent: nobody took the connection."""


class NeedsHttpx(Refused):
    """The part of Headway that posts is not installed."""

    code = "needs_httpx"

    def __init__(self, what: str = "a webhook") -> None:
        super().__init__(f"{what} needs httpx: pip install 'headway[webhook]'")


class Poster:
    """Posts over a connection of its own each time; never follows a redirect, never keeps a cookie."""

    def __init__(
        self,
        secret: str | bytes,
        clock: Clock,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        by_proxy: bool = True,
    ) -> None:
        """`by_proxy`: whether the environment may name a proxy to go through."""
        self._secret = secret_bytes(secret)
        self._clock = clock
        httpx = load_httpx()
        self._timeout = httpx.Timeout
        self._client: AsyncClient = httpx.AsyncClient(
            headers={"User-Agent": "headway"} | dict(headers),
            # Letters are rare: a connection kept for the next one would mostly be found closed.
            limits=httpx.Limits(max_keepalive_connections=0),
            # One limit holds for all of it, see `answers_within`.
            timeout=None,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            verify=httpx.create_ssl_context(),
            trust_env=by_proxy,
        )
        self._unconnected: tuple[type[Exception], ...] = (httpx.ConnectError, httpx.ConnectTimeout)
        self._http_error: type[Exception] = httpx.HTTPError

    async def post(
        self,
        url: "URL",
        where: str,
        delivery_id: str,
        body: bytes,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        name: str | None = None,
        connect_within_s: float | None = None,
    ) -> tuple[int, str]:
        """Post it; answers the status, and the beginning of what was said.

        `where` is the address as it may be shown, `name` whom the certificate must name if not the URL's host.
        """
        headers = {
            "Content-Type": "application/json",
            # What is read of the answer is read as it is.
            "Accept-Encoding": "identity",
            **headers,
            **signed_headers(self._secret, delivery_id, body, self._clock.wall()),
        }
        try:
            async with self._client.stream(
                "POST",
                url,
                content=body,
                headers=headers,
                timeout=self._timeout(None, connect=connect_within_s),
                extensions={} if name is None else {"sni_hostname": name},
            ) as response:
                beginning = b""
                async for chunk in response.aiter_raw(_READ_AT_MOST):
                    beginning += chunk
                    if len(beginning) >= _READ_AT_MOST:
                        break
                said = beginning[:_READ_AT_MOST].decode(errors="replace").strip()
                return response.status_code, said
        except self._http_error as wrong:
            family = NotConnected if isinstance(wrong, self._unconnected) else WebhookFailed
            reason = f"{type(wrong).__name__}: {wrong}"
            raise family(f"{where} could not be told: {reason}") from wrong

    async def close(self) -> None:
        await self._client.aclose()


@asynccontextmanager
async def answers_within(seconds: float, where: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise WebhookFailed(f"{where} did not answer within {seconds:g} s") from None


def judge(where: str, status: int, answer: str, *, redirects: bool = True) -> None:
    """Raise unless it was taken. `redirects`: whether one may be gone when it is tried again."""
    if 200 <= status < 300:
        return
    reason = f"{where} answered {status}{f': {answer}' if answer else ''}"
    never = 400 <= status < 500 and status not in _NOT_FOR_EVER
    if never or (300 <= status < 400 and not redirects):
        raise Permanent(reason)
    raise WebhookFailed(reason)


def need_httpx(what: str) -> None:
    """Say early that it is missing, without the time that loading it takes."""
    if importlib.util.find_spec("httpx") is None:
        raise NeedsHttpx(what)


def load_httpx() -> ModuleType:
    try:
        import httpx  # noqa: PLC0415 - an optional part
    except ImportError:
        raise NeedsHttpx from None
    return httpx
