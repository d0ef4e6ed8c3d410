"""Serves the OpenAPI document, and a page of it for people that needs nothing from elsewhere."""

from collections.abc import Callable, Sequence
from functools import cache

import msgspec
from litestar.types import Receive, Scope, Send

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.endpoint import Endpoint
from headway.gateway.openapi import document
from headway.gateway.operations import Operation, operation
from headway.gateway.page import page
from headway.wire.health import NothingAsked

TAG = "Description"
_HTML = "text/html; charset=utf-8"
_NO_SCRIPTS = b"default-src 'none'; style-src 'unsafe-inline'"


class Sheet:
    """Something to read that is always the same."""

    def __init__(self, media: str, body: bytes) -> None:
        self._media = media.encode()
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        headers = [
            (b"content-type", self._media),
            (b"content-length", str(len(self._body)).encode()),
            (b"content-security-policy", _NO_SCRIPTS),
            (b"x-content-type-options", b"nosniff"),
        ]
        body = b"" if scope.get("method") == "HEAD" else self._body
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})


class Pointer:
    """Shows the way to something; from here, so that it also holds where all of this is mounted elsewhere."""

    def __init__(self, place: bytes) -> None:
        self._headers = [(b"location", place), (b"content-length", b"0")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": 307, "headers": self._headers})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def describing(table: Sequence[Endpoint]) -> list[Endpoint]:
    """The endpoints that describe the others. Both are drawn when they are first asked for."""

    @cache
    def as_json() -> Sheet:
        return Sheet("application/json", msgspec.json.encode(document(table)))

    @cache
    def as_page() -> Sheet:
        return Sheet(_HTML, page(document(table)).encode())

    return [
        Endpoint(
            "GET", "/openapi.json", _reading(as_json), TAG, media="application/vnd.oai.openapi+json"
        ),
        Endpoint("GET", "/docs", _reading(as_page), TAG, media="text/html"),
        Endpoint("GET", "/", _reading(lambda: Pointer(b"docs")), TAG, media="text/html"),
    ]


def _reading(
    sheet: Callable[[], Sheet | Pointer],
) -> Operation[NothingAsked, Sheet | Pointer]:
    @operation(None)
    async def read(desk: Desk, caller: Caller, asked: NothingAsked) -> Sheet | Pointer:  # noqa: ARG001
        """What can be asked here."""
        return sheet()

    return read
