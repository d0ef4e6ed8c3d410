"""The tokens that there are, as they were read a moment ago."""

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence

from headway.model.errors import Unavailable
from headway.model.time import MILLISECOND, SECOND, Instant, Span
from headway.model.token import Token
from headway.tokens import digest_of, parts_of

FRESH: Span = 2 * SECOND
"""For so long a revoked token still works."""
SOON: Span = 200 * MILLISECOND
"""For so long a new token may not work yet: an unknown one makes the book look again, but not more often."""


class TokenBook:
    """Knows tokens by their id. Reads the store again when what it knows is old."""

    def __init__(
        self,
        read: Callable[[], Awaitable[Sequence[Token]]],
        elapsed: Callable[[], Instant],
        wall: Callable[[], Instant],
    ) -> None:
        self._read = read
        self._elapsed = elapsed
        self._wall = wall
        self._tokens: Mapping[str, Token] | None = None
        self._read_at: Instant = 0
        self._reading = False

    async def any(self) -> bool:
        """Whether there are tokens at all, also expired ones: without any, only this machine may ask."""
        return bool(await self._known())

    async def find(self, shown: str) -> Token | None:
        """The token that a bearer shows, if it is one and has not expired."""
        parts = parts_of(shown)
        if parts is None:
            return None
        token_id, secret = parts
        token = (await self._known()).get(token_id) or (await self._known(SOON)).get(token_id)
        # A wrong id takes as long as a wrong secret.
        right = hmac.compare_digest(digest_of(secret), token.digest if token else "")
        if token is None or not right:
            return None
        if token.expires_at is not None and token.expires_at <= self._wall():
            return None
        return token

    async def _known(self, fresh: Span = FRESH) -> Mapping[str, Token]:
        tokens = self._tokens
        if tokens is not None and (self._reading or self._elapsed() - self._read_at < fresh):
            return tokens
        self._reading = True
        try:
            self._tokens = {token.id: token for token in await self._read()}
        except Unavailable:
            # While the store is away, those go on that were known before.
            if tokens is None:
                raise
        finally:
            self._reading = False
            self._read_at = self._elapsed()
        assert self._tokens is not None
        return self._tokens
