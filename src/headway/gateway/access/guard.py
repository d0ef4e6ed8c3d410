"""The guard at the door: from a request's headers to its caller, or to 401 and 429."""

from collections.abc import Collection, Mapping
from urllib.parse import parse_qs

import msgspec

from headway.gateway.access.book import TokenBook
from headway.gateway.access.caller import EVERYTHING, Caller
from headway.gateway.access.local import refusal
from headway.gateway.access.rate import Rates
from headway.gateway.errors import TooMany, Unauthorized
from headway.model.time import Instant
from headway.model.token import Token

_BEARER = b"bearer "


class Guard:
    """Lets in who shows a token or, while there are none, who is on this machine."""

    def __init__(self, book: TokenBook, rates: Rates, origins: Collection[str]) -> None:
        self._book = book
        self._rates = rates
        self._origins = origins
        self._callers: dict[str, tuple[Token, Caller]] = {}

    async def admit(
        self,
        headers: Mapping[bytes, bytes],
        client: str | None,
        now: Instant,
        *,
        query: bytes = b"",
    ) -> Caller:
        """The caller, or `Unauthorized` or `TooMany`. A `query` may hold the token where no header can."""
        shown = _shown(headers, query)
        if not await self._book.any():
            why = refusal(headers, client, self._origins)
            if why is not None:
                raise Unauthorized(why)
            return EVERYTHING
        if shown is None:
            raise Unauthorized("this server asks for a token: authorization: Bearer hw_…")
        token = await self._book.find(shown)
        if token is None:
            raise Unauthorized("this token is not known, was revoked, or has expired")
        wait_s = self._rates.take(token.id, now)
        if wait_s:
            raise TooMany(wait_s)
        return self._caller(token)

    def _caller(self, token: Token) -> Caller:
        known = self._callers.get(token.id)
        if known is None or known[0] is not token:
            known = self._callers[token.id] = (
                token,
                Caller(token.name, token.scopes, token.agent),
            )
        return known[1]


def with_context(caller: Caller, request_id: str, traceparent: str) -> Caller:
    """The caller as it is in one request."""
    return msgspec.structs.replace(caller, request_id=request_id, traceparent=traceparent)


def _shown(headers: Mapping[bytes, bytes], query: bytes) -> str | None:
    """What the caller shows: a header or, for streams that browsers open, `?access_token=`."""
    header = headers.get(b"authorization")
    if header is not None and header[:7].lower() == _BEARER:
        return header[7:].strip().decode("latin-1")
    if header is None and b"access_token=" in query:
        found = parse_qs(query.decode("latin-1")).get("access_token")
        return found[0] if found else None
    return None
