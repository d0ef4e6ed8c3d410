"""A channel that posts what is said to an address on the web, signed.

The receiver answers 2xx when it has the letter. 4xx says that it never will take it, but for 408 and 429; after
anything else it is tried again. It checks the signature with `verify_signature`, and remembers ids: a letter whose
answer was lost comes again.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Literal

import msgspec

from headway.channels.letter import letter_of
from headway.model.errors import HeadwayError, InvalidInput, Permanent, Refused
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.time import SECOND, span
from headway.ports import Clock
from headway.runtime.clock import SystemClock

if TYPE_CHECKING:
    from httpx import URL, AsyncClient

ID, TIMESTAMP, SIGNATURE = "X-Headway-Id", "X-Headway-Timestamp", "X-Headway-Signature"

_READ_AT_MOST = 1_000
"""So many bytes of an answer are read: enough to show what went wrong."""
_NOT_FOR_EVER = frozenset({408, 429})
_ADDRESS = "an address such as https://example.com/hook"
_NONE: Mapping[str, str] = MappingProxyType({})


class WebhookFailed(HeadwayError):
    """The receiver did not take the letter this time."""

    code = "webhook_failed"


class NeedsHttpx(Refused):
    """The part of Headway that posts is not installed."""

    code = "needs_httpx"

    def __init__(self) -> None:
        super().__init__("a webhook needs httpx: pip install 'headway[webhook]'")


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
        headers: Mapping[str, str] = _NONE,
        clock: Clock | None = None,
    ) -> None:
        """`headers` go with each letter, such as `Authorization`; the clock dates the signatures."""
        self._secret = _bytes_of(secret)
        self._timeout_s = span(timeout, "timeout") / SECOND
        self._clock = SystemClock() if clock is None else clock
        httpx = _httpx()
        self._url = _check_url(url, httpx)
        self._client: AsyncClient = httpx.AsyncClient(
            headers={"User-Agent": "headway"} | _check_headers(headers),
            # Letters are rare: a connection kept for the next one would mostly be found closed.
            limits=httpx.Limits(max_keepalive_connections=0),
            # One limit holds for all of it, see `send`.
            timeout=None,
            follow_redirects=False,
        )
        self._http_error: type[Exception] = httpx.HTTPError
        port = f":{self._url.port}" if self._url.port else ""
        self._where = f"{self._url.scheme}://{self._url.host}{port}"
        """The address without what may be secret in it."""

    def __repr__(self) -> str:
        return f"<WebhookChannel {self._where}>"

    async def send(self, delivery: Delivery) -> None:
        body = msgspec.json.encode(letter_of(delivery))
        timestamp = str(self._clock.wall() // SECOND)
        headers = {
            "Content-Type": "application/json",
            # What is read of the answer is read as it is.
            "Accept-Encoding": "identity",
            ID: delivery.id,
            TIMESTAMP: timestamp,
            SIGNATURE: sign(self._secret, timestamp, body),
        }
        try:
            async with asyncio.timeout(self._timeout_s):
                status, answer = await self._post(body, headers)
        except self._http_error as wrong:
            reason = f"{type(wrong).__name__}: {wrong}"
            raise WebhookFailed(f"{self._where} could not be told: {reason}") from wrong
        except TimeoutError:
            raise WebhookFailed(
                f"{self._where} did not answer within {self._timeout_s:g} s"
            ) from None
        self._judge(status, answer)

    async def typing(self, route: Route, on: bool) -> None:
        """A receiver is told what is said, not that something will be."""

    async def close(self) -> None:
        await self._client.aclose()

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        async with self._client.stream(
            "POST", self._url, content=body, headers=headers
        ) as response:
            beginning = b""
            async for chunk in response.aiter_raw(_READ_AT_MOST):
                beginning += chunk
                if len(beginning) >= _READ_AT_MOST:
                    break
            return response.status_code, beginning[:_READ_AT_MOST].decode(errors="replace").strip()

    def _judge(self, status: int, answer: str) -> None:
        if 200 <= status < 300:
            return
        reason = f"{self._where} answered {status}{f': {answer}' if answer else ''}"
        if 400 <= status < 500 and status not in _NOT_FOR_EVER:
            raise Permanent(reason)
        raise WebhookFailed(reason)


def sign(secret: str | bytes, timestamp: str, body: bytes) -> str:
    """What `X-Headway-Signature` holds for a body that is sent at this time."""
    signed = timestamp.encode() + b"." + body
    return f"sha256={hmac.new(_bytes_of(secret), signed, hashlib.sha256).hexdigest()}"


def verify_signature(
    secret: str | bytes,
    timestamp: str,
    body: bytes,
    signature: str,
    *,
    within: str | timedelta | Literal[0] = "5m",
    clock: Clock | None = None,
) -> bool:
    """For receivers: whether this body was sent by one who knows the secret, and lately.

    `timestamp` and `signature` are the headers and `body` the bytes as they came. A copy of a letter that is
    replayed later than `within` is refused. How long the comparison takes tells nothing of the secret.
    """
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15):
        return False
    expected = sign(secret, timestamp, body).encode()
    if not hmac.compare_digest(expected, signature.encode(errors="replace")):
        return False
    now = (SystemClock() if clock is None else clock).wall()
    return abs(now - int(timestamp) * SECOND) <= span(within, "within")


def _httpx() -> ModuleType:
    try:
        import httpx  # noqa: PLC0415 - an optional part
    except ImportError:
        raise NeedsHttpx from None
    return httpx


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


def _bytes_of(secret: str | bytes) -> bytes:
    written = secret.encode() if isinstance(secret, str) else secret
    if not written:
        raise InvalidInput("secret", "", "some words that only the receiver knows")
    return written
