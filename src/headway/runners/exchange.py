"""What all runners share that speak HTTP: one pool of connections, bounds on what is read, and what errors mean.

Addresses, headers and tokens are the operator's own configuration: private addresses are fine. Only the values
that are filled into an address come from callers, and they cannot change where it leads (`fill_url`).

An address with https may be out on the Internet: it is reached as the machine's environment says (HTTPS_PROXY,
SSL_CERT_FILE). One with http is reached directly, whatever HTTP_PROXY says: a proxy would read the token.

A deadline is the kernel's business: it cuts the attempt at that instant, which closes the connection, and the
outcome says so. The request has the same bound, a moment later, for a node that cannot reach its store just then.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from headway.model.errors import InvalidInput, Refused, WorkFailed
from headway.model.outcome import Json
from headway.model.time import SECOND, instant_text
from headway.model.value import Value
from headway.runners.answer import Answer
from headway.turn import Turn

if TYPE_CHECKING:
    from httpx import URL, AsyncBaseTransport, AsyncClient

UNREACHABLE = "unreachable"
BAD_ADDRESS = "bad_address"

_CONNECT_WITHIN_S = 10.0
_KEPT_OPEN_S = 3.0
"""Less than servers wait for the next request: one that is sent just as the server hangs up is lost."""
_CLOSED_WITHIN_S = 2.0
_AFTER_THE_DEADLINE_S = 1.0
_ADDRESS = "an address such as http://127.0.0.1:9867, without a name and password"
_PRINTABLE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) != "%")


class NeedsHttpx(Refused):
    """The part of Headway that speaks HTTP to others is not installed."""

    code = "needs_httpx"

    def __init__(self) -> None:
        super().__init__("an agent behind HTTP needs httpx: pip install 'headway[webhook]'")


class Ask(Value, frozen=True):
    """One request."""

    method: str
    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class Exchange:
    """A pool of connections to whatever a runner speaks with. Opened by its first request, on whichever loop."""

    def __init__(
        self,
        *,
        headers: Mapping[str, str],
        max_body: int,
        connections: int,
        transport: "AsyncBaseTransport | None" = None,
    ) -> None:
        """The headers go with each request (see `headers_of`). With a transport, for tests, nothing goes out."""
        self._httpx = load_httpx()
        self._headers = headers
        self._max_body = max_body
        self._connections = connections
        self._transport = transport
        self._client: AsyncClient | None = self._new_client()
        self._loop: asyncio.AbstractEventLoop | None = None
        """Whose connections the pool holds."""

    def _new_client(self) -> "AsyncClient":
        client: AsyncClient = self._httpx.AsyncClient(
            headers={"User-Agent": "headway", "Accept": "application/json", **self._headers},
            timeout=self._httpx.Timeout(None, connect=_CONNECT_WITHIN_S),
            limits=self._httpx.Limits(
                max_connections=self._connections,
                max_keepalive_connections=self._connections,
                keepalive_expiry=_KEPT_OPEN_S,
            ),
            follow_redirects=False,
            transport=self._transport,
            # None: the pool itself, without a proxy.
            mounts={"http://": None},
            # What one run is given to keep must not be said by another.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )
        return client

    @asynccontextmanager
    async def ask(self, turn: Turn, asked: Ask) -> AsyncIterator[Answer]:
        """The answer, as soon as it begins; one that is no success is raised, and so is all that goes wrong.

        Whoever leaves before it was read to its end closes the connection.
        """
        httpx = self._httpx
        try:
            url = httpx.URL(asked.url)
        except httpx.InvalidURL as wrong:
            raise WorkFailed(
                f"the address is wrong: {wrong}", BAD_ADDRESS, permanent=True
            ) from wrong
        where = origin(url)
        headers = {**about(turn), **asked.headers}
        if asked.body is not None and "content-type" not in self._headers:
            headers["Content-Type"] = "application/json"
        try:
            async with (
                asyncio.timeout(_left_s(turn)),
                self._here().stream(
                    asked.method, url, content=asked.body, headers=headers
                ) as response,
            ):
                answer = Answer(response, where, self._max_body, httpx.HTTPError)
                await answer.need_success()
                yield answer
        except httpx.HTTPError as wrong:
            reason = f"{type(wrong).__name__}: {wrong}".removesuffix(": ")
            raise WorkFailed(
                f"{where} cannot be reached: {reason}", UNREACHABLE, {"reason": reason}
            ) from wrong
        except TimeoutError:
            raise WorkFailed(f"{where} did not answer in time", UNREACHABLE) from None

    def _here(self) -> "AsyncClient":
        """The pool of this loop. Connections of another one, which has ended, are of no use."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop not in {None, loop}:
            self._client = self._new_client()
        self._loop = loop
        return self._client

    async def close(self) -> None:
        """Close all connections. The next request opens new ones."""
        client, self._client, loop, self._loop = self._client, None, self._loop, None
        if client is None or loop is not asyncio.get_running_loop():
            return
        try:
            async with asyncio.timeout(_CLOSED_WITHIN_S):
                await client.aclose()
        except (TimeoutError, self._httpx.HTTPError):
            pass  # Whoever does not let go is left.


def about(turn: Turn) -> dict[str, str]:
    """What every endpoint is told about the attempt (T-3, X-4).

    `X-Request-Id` names the attempt, so that two tries of a run can be told apart.
    """
    run = turn.run
    headers = {
        # What is read of an answer is read as it is: nothing small can become large.
        "Accept-Encoding": "identity",
        "X-Agent-Id": as_header(run.agent),
        "X-Request-Id": as_header(f"{run.id}.{turn.attempt}"),
        "X-Headway-Fence": str(turn.fence),
    }
    if run.deadline_at is not None:
        headers["X-Headway-Deadline"] = instant_text(run.deadline_at)
    if run.traceparent:
        headers["traceparent"] = as_header(run.traceparent)
    return headers


def as_header(value: str) -> str:
    """Any text as a header can hold it: what is no printable ASCII is written as in an address (%C3%BC)."""
    return quote(value, safe=_PRINTABLE)


def load_httpx() -> ModuleType:
    try:
        import httpx  # noqa: PLC0415 - an optional part
    except ImportError:
        raise NeedsHttpx from None
    return httpx


def check_address(url: object, field: str) -> "URL":
    """The address, if requests can be sent there. It is not shown: it may hold a secret."""
    httpx = load_httpx()
    try:
        parsed: URL = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as wrong:
        raise InvalidInput(field, "…", _ADDRESS) from wrong
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.userinfo:
        raise InvalidInput(field, "…", _ADDRESS)
    return parsed


def origin(url: "URL") -> str:
    """The address without what may be secret in it."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def encoded(body: Json) -> bytes:
    return msgspec.json.encode(body)


def _left_s(turn: Turn) -> float | None:
    """Until a moment after the deadline, counted from the attempt's start: no clock of this machine is asked."""
    deadline_at = turn.run.deadline_at
    if deadline_at is None:
        return None
    return max(deadline_at - turn.start.at, 0) / SECOND + _AFTER_THE_DEADLINE_S
