"""A server without sockets: a real Headway, its gateway, and a client that speaks HTTP with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import cast

import httpx

from headway import Headway
from headway.gateway import Gateway, build_app
from headway.model.server import ServerSettings
from headway.model.time import SECOND, Span


def client(gateway: Gateway, *, token: str = "", host: str = "127.0.0.1") -> httpx.AsyncClient:
    """Somebody at this address who asks, with a token or without."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    transport = httpx.ASGITransport(gateway.app, raise_app_exceptions=True, client=(host, 4321))  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://localhost:8787", headers=headers)


@contextlib.asynccontextmanager
async def served(
    hw: Headway, settings: ServerSettings | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """The Headway runs, and there is a client of its server."""
    async with opened(hw, settings) as gateway, client(gateway) as http:
        yield http


@contextlib.asynccontextmanager
async def opened(hw: Headway, settings: ServerSettings | None = None) -> AsyncIterator[Gateway]:
    async with hw, build_app(hw, settings) as gateway:
        yield gateway


async def passes(span: Span) -> None:
    """So much virtual time goes by."""
    await asyncio.sleep(span / SECOND)


async def raw(
    gateway: Gateway, method: str, path: str, body: bytes = b""
) -> tuple[int, dict[bytes, bytes], bytes]:
    """One request without a client in between: the quickest way to ask very often."""
    head: dict[bytes, bytes] = {}
    status = 0
    pieces: list[bytes] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Mapping[str, object]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = cast("int", message["status"])
            head.update(cast("list[tuple[bytes, bytes]]", message["headers"]))
        else:
            pieces.append(cast("bytes", message["body"]))

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 4321),
    }
    await gateway.app(scope, receive, send)  # type: ignore[arg-type]
    return status, head, b"".join(pieces)
