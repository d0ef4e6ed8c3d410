"""Serves the endpoints of one path: who asks, what is asked, the operation, the answer.

This is the way of every request, so it is flat: no middleware for each step, one decode, one encode.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias
from urllib.parse import quote

import msgspec
from litestar.types import Receive, Scope, Send

from headway.gateway.access.caller import Caller
from headway.gateway.access.guard import with_context
from headway.gateway.binding import Binder
from headway.gateway.desk import Desk
from headway.gateway.endpoint import Endpoint
from headway.gateway.errors import Gone, TooLarge, WrongMedia, WrongMethod, tell
from headway.gateway.stream.cutting import until_gone
from headway.gateway.tracing import read_traceparent

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

_encode = msgspec.json.Encoder().encode
_JSON = b"application/json"
_PUBLIC = Caller("public")
_LONGEST = 18
"""So many digits of a length are looked at: more of them are too many anyway."""
_NO_HEADERS: Headers = ()


class Sends(Protocol):
    """An answer that sends itself, such as a stream."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Resource:
    """A path, and what can be done there."""

    def __init__(self, desk: Desk, path: str, endpoints: Sequence[Endpoint]) -> None:
        self.path = path
        self._desk = desk
        self._served = {endpoint.method: Served(desk, endpoint) for endpoint in endpoints}
        if "GET" in self._served:
            self._served.setdefault("HEAD", self._served["GET"])
        self._allowed = ", ".join(sorted(self._served))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        observed = self._desk.observed
        if observed is None:
            await self._serve(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        status = await self._serve(scope, receive, send)
        method = _method(scope)
        known = method if method in self._served else "other"
        observed(known, self.path, status, loop.time() - began_s)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Serve one request; answers its status."""
        method = _method(scope)
        sends: Sends | None = None
        status, headers, body = 200, _NO_HEADERS, b""
        try:
            served = self._served.get(method)
            if served is None:
                raise WrongMethod(method, self._allowed)
            answer = await served.answer(scope, receive)
            if isinstance(answer, msgspec.Struct):
                status, headers = served.head(answer)
                body = _encode(answer)
            else:
                sends = answer
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller is told in the one form
            told = tell(error)
            status, headers, body = told.status, told.headers, told.encoded()
        if sends is not None:
            await sends(scope, receive, send)
            return 200
        await send_json(send, status, headers, b"" if method == "HEAD" else body, len(body))
        return status


class Served:
    """One endpoint, ready to be asked."""

    def __init__(self, desk: Desk, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._desk = desk
        self._operation = endpoint.operation
        self._binder = Binder(endpoint)
        self._made = _made_fields(endpoint)
        self._waits = "wait" in endpoint.query

    async def answer(self, scope: Scope, receive: Receive) -> "msgspec.Struct | Sends":
        headers: dict[bytes, bytes] = dict(scope["headers"])
        caller = await self._caller(scope, headers)
        body = b""
        if self._binder.needs_body:
            body = await read_body(receive, headers, self._desk.settings.body_limit)
        asked = self._binder.bind(raw_path(scope), scope["query_string"], headers, body)
        if self._waits:
            caller = msgspec.structs.replace(caller, gone=partial(until_gone, receive))
        # The scope was asked before the body was read.
        answer: msgspec.Struct | Sends = await self._operation.work(self._desk, caller, asked)
        return answer

    async def _caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        if self.endpoint.scope is None:
            return _PUBLIC
        client = scope.get("client")
        caller = await self._desk.guard.admit(
            headers,
            None if client is None else client[0],
            self._desk.clock.elapsed(),
            query=scope["query_string"] if self.endpoint.streams else b"",
        )
        caller.need(self.endpoint.scope)
        traceparent = headers.get(b"traceparent")
        request_id: str = scope.get("headway.request_id", "")  # type: ignore[assignment]
        if traceparent is None and not request_id:
            return caller
        return with_context(caller, request_id, read_traceparent(traceparent))

    def head(self, answer: msgspec.Struct) -> tuple[int, Headers]:
        """The status and the headers of an answer."""
        endpoint = self.endpoint
        status = endpoint.status if endpoint.choose is None else endpoint.choose(answer)
        if not self._made:
            return status, ()
        path = endpoint.location
        for wire_name, field in self._made:
            value = getattr(answer, field)
            if not value:
                return status, ()
            path = path.replace(f"{{{wire_name}}}", quote(str(value), safe=""))
        return status, ((b"location", path.encode()),)


async def send_json(
    send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes, length: int
) -> None:
    head = [
        (b"content-type", _JSON),
        (b"content-length", str(length).encode()),
        (b"cache-control", b"no-store"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], limit: int) -> bytes:
    """The whole body, and never more of it than may be: who announces too much is not even read."""
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length[:_LONGEST]) > limit:
        raise TooLarge("body", limit)
    body, more = await _piece(receive)
    if more:
        pieces, size = [body], len(body)
        while more and size <= limit:
            body, more = await _piece(receive)
            pieces.append(body)
            size += len(body)
        body = b"".join(pieces)
    if len(body) > limit:
        raise TooLarge("body", limit)
    media = headers.get(b"content-type", b"")
    if body and media.partition(b";")[0].strip().lower() != _JSON:
        raise WrongMedia(media.decode("latin-1"))
    return body


async def _piece(receive: Receive) -> tuple[bytes, bool]:
    """The next piece of a body, and whether more follows."""
    message = await receive()
    if message["type"] != "http.request":
        raise Gone
    return message.get("body", b""), message.get("more_body", False)


def raw_path(scope: Scope) -> bytes:
    raw: bytes = scope.get("raw_path") or b""
    return raw.partition(b"?")[0]


def _method(scope: Scope) -> str:
    return str(scope.get("method", ""))


def _made_fields(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    """The fields of the answer that its location names, as on the wire and in Python."""
    if not endpoint.location:
        return ()
    return tuple(
        (field.encode_name, field.name)
        for field in msgspec.structs.fields(endpoint.operation.answer)
        if f"{{{field.encode_name}}}" in endpoint.location
    )
