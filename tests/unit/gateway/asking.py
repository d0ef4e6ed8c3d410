"""Asking a server as somebody: with all rights, or with a token for one agent."""

import contextlib
from collections.abc import AsyncIterator
from urllib.parse import quote

import httpx

from headway import Headway
from headway.gateway import Gateway
from tests.unit.gateway.calling import client, opened


def path(*segments: str) -> str:
    """A path of these segments, whatever is in them."""
    return "/" + "/".join(quote(segment, safe="") for segment in segments)


@contextlib.asynccontextmanager
async def bearing(
    gateway: Gateway, hw: Headway, *scopes: str, agent: str | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who shows a token with these scopes."""
    name = f"{agent or 'anyone'} {' '.join(scopes)}"
    _, secret = await hw.tokens.create(name, scopes, agent=agent)
    async with client(gateway, token=secret) as http:
        yield http


@contextlib.asynccontextmanager
async def asked_by(
    hw: Headway, *scopes: str, agent: str | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """A server, and somebody with a token."""
    async with opened(hw) as gateway, bearing(gateway, hw, *scopes, agent=agent) as http:
        yield http


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of an answer that says no, in the one form (T-2)."""
    body = answer.json()
    assert set(body) == {"error", "code", "retryable", "details"}, body
    return answer.status_code, body["code"]
