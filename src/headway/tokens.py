"""`hw.tokens`: who may ask a server for what. A secret is shown once, when it is made; only its digest is kept."""

from collections.abc import Callable, Iterable
from hashlib import sha256

from headway.core.request import Duration, agent_name, name_text
from headway.model.errors import InvalidInput, UnknownName
from headway.model.time import span
from headway.model.token import Token
from headway.model.words import Scope
from headway.runtime.engine import Engine
from headway.runtime.ids import new_secret, new_token_id

_PREFIX = "hw"


class Tokens:
    """The tokens of a store. Every server on it goes by them."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine

    async def create(
        self,
        name: str,
        scopes: Iterable[Scope | str],
        *,
        agent: str | None = None,
        expires: Duration | None = None,
    ) -> tuple[Token, str]:
        """A new token, and what its bearer shows: it cannot be read again later."""
        engine = self._engine()
        now = engine.wall()
        secret = new_secret()
        token = Token(
            id=new_token_id(),
            name=name_text(name, "name"),
            digest=digest_of(secret),
            scopes=_scopes(scopes),
            created_at=now,
            agent=None if agent is None else agent_name(agent),
            expires_at=None if expires is None else now + span(expires, "expires"),
        )
        if not await engine.store.add_token(token):
            raise InvalidInput("name", name, "a name that no other token has")
        return token, f"{_PREFIX}_{token.id}_{secret}"

    async def list(self) -> tuple[Token, ...]:
        """All that were not revoked, the oldest first; also those that have expired."""
        return tuple(await self._engine().store.tokens())

    async def revoke(self, token: str) -> bool:
        """By its id or name. Servers refuse it within seconds. False: there is none."""
        store = self._engine().store
        known = await store.tokens()
        found = next((each for each in known if each.id == token), None) or next(
            (each for each in known if each.name == token), None
        )
        return found is not None and await store.revoke_token(found.id)


def digest_of(secret: str) -> str:
    """What is kept of a secret. It has 256 random bits, so one plain round cannot be undone by guessing."""
    return sha256(secret.encode()).hexdigest()


def parts_of(shown: str) -> tuple[str, str] | None:
    """The id and the secret of what a bearer shows; None if it is no token of ours."""
    prefix, _, rest = shown.partition("_")
    token_id, _, secret = rest.partition("_")
    return (token_id, secret) if prefix == _PREFIX and token_id and secret else None


def _scopes(scopes: Iterable[Scope | str]) -> tuple[Scope, ...]:
    if isinstance(scopes, str):
        scopes = (scopes,)
    asked = set(scopes)
    for scope in asked:
        if scope not in tuple(Scope):
            raise UnknownName("scopes", str(scope), Scope)
    if not asked:
        raise InvalidInput("scopes", (), f"at least one of: {', '.join(Scope)}")
    return tuple(scope for scope in Scope if scope in asked)
