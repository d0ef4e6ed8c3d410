"""The line to a server: one request and its answer, each as a struct."""

import asyncio
import re
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

import httpx
import msgspec

from headway.client.errors import NoServer, NotHeadway, ServerFailed, ServerUnavailable, error_of
from headway.model.errors import HeadwayError, InvalidInput
from headway.wire.base import Answer, Request

SomeAnswer = TypeVar("SomeAnswer", bound=Answer)

_HOST_AND_PORT = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}/?", re.ASCII)
_PLACE = re.compile(r"\{(\w+)\}")
_TRIES = 4
_LONGEST_WAIT_S = 10.0
_CONNECT_S = 5.0
_ANSWER_S = 60.0
_encode = msgspec.json.Encoder().encode


class Line:
    """Asks one server. What only reads is asked again if the server says that it cannot just now."""

    def __init__(
        self, url: str, token: str | None = None, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.url = checked(url)
        self.token = token
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            transport=transport,
            timeout=httpx.Timeout(_ANSWER_S, connect=_CONNECT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
        )

    async def close(self) -> None:
        await self.http.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        answer: type[SomeAnswer],
        asked: Request | Mapping[str, object] | None = None,
        *,
        query: tuple[str, ...] = (),
    ) -> SomeAnswer:
        """Send what is asked where it belongs: into the path, the query or the body; and read the answer."""
        said = said_of(asked)
        where = _PLACE.sub(lambda found: quote(str(said.pop(found[1])), safe=""), path)
        in_query = method in {"GET", "DELETE"}
        params = params_of(said if in_query else {name: said.pop(name, None) for name in query})
        content = None if in_query else _encode(said)
        told = await self._answered(method, where, params, content)
        try:
            return msgspec.json.decode(told.content, type=answer)
        except msgspec.ValidationError as wrong:
            raise ServerFailed(
                told.status_code, f"the server answers what cannot be read: {wrong}"
            ) from None
        except msgspec.DecodeError:
            raise NotHeadway(told.status_code, told.content, self.url) from None

    async def _answered(
        self, method: str, path: str, params: httpx.QueryParams, content: bytes | None
    ) -> httpx.Response:
        tries = _TRIES if method == "GET" else 1
        while True:
            tries -= 1
            try:
                return await self._once(method, path, params, content)
            except ServerUnavailable as away:
                if not tries:
                    raise
                wait_s = 1.0 if away.retry_after_s is None else away.retry_after_s
                await asyncio.sleep(min(wait_s, _LONGEST_WAIT_S))

    async def _once(
        self, method: str, path: str, params: httpx.QueryParams, content: bytes | None
    ) -> httpx.Response:
        headers = {} if content is None else {"content-type": "application/json"}
        try:
            told = await self.http.request(
                method, path, params=params, content=content, headers=headers
            )
        except httpx.HTTPError as away:
            raise self.gone(away) from None
        if told.is_success or (told.status_code == 503 and path == "/readyz"):
            return told
        raise error_of(told.status_code, told.content, told.headers.get("retry-after"), self.url)

    def gone(self, away: Exception) -> HeadwayError:
        """Why nothing answers, in a few words."""
        return NoServer(self.url, _why(away))


def checked(url: str) -> str:
    """The address of a server, without a slash at its end; `host:port` alone is one too."""
    if _HOST_AND_PORT.fullmatch(url):
        url = f"http://{url}"
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL("")
    if address.scheme not in {"http", "https"} or not address.host:
        raise InvalidInput("--server", url, "the address of a server: http://127.0.0.1:8787")
    return str(url).rstrip("/")


def said_of(asked: Request | Mapping[str, object] | None) -> dict[str, object]:
    """What was said, by the names of the wire. What was left out is not sent: defaults are the server's."""
    if asked is None:
        return {}
    if isinstance(asked, Mapping):
        return dict(asked)
    plain: dict[str, object] = msgspec.to_builtins(asked)
    defaults = {
        field.encode_name: field.default
        for field in msgspec.structs.fields(asked)
        if field.default is not msgspec.NODEFAULT
    }
    return {
        name: value
        for name, value in plain.items()
        if name not in defaults or value != defaults[name]
    }


def params_of(said: Mapping[str, object]) -> httpx.QueryParams:
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in said.items():
        values = value if isinstance(value, list | tuple) else (value,)
        pairs += [(name, _text(each)) for each in values if each is not None]
    return httpx.QueryParams(pairs)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _why(away: Exception) -> str:
    match away:
        case httpx.ConnectTimeout():
            return "it takes too long to connect"
        case httpx.ConnectError():
            return "connection refused" if "All connection attempts" in str(away) else str(away)
        case httpx.TimeoutException():
            return "it does not answer in time"
        case _:
            return str(away) or type(away).__name__
