"""A client of a server without sockets: a real Headway, its gateway, and what the client makes of its answers."""

import contextlib
from collections.abc import AsyncIterator

import httpx

from headway import Headway
from headway.client import Client
from tests.unit.gateway.calling import opened


@contextlib.asynccontextmanager
async def client_of(hw: Headway, token: str | None = None) -> AsyncIterator[Client]:
    """The Headway runs, and there is a client of its server."""
    async with opened(hw) as gateway:
        transport = httpx.ASGITransport(gateway.app, client=("127.0.0.1", 4321))  # type: ignore[arg-type]
        async with Client("http://localhost:8787", token, transport=transport) as client:
            yield client
