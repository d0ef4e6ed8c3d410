"""Who may ask a server for what (O-4)."""

from collections.abc import Sequence

from headway.model.errors import InvalidInput
from headway.model.token import Token
from headway.store.codec import decode_token, encode_token
from headway.store.postgres.connections import Connections
from headway.store.postgres.statements import statements
from headway.store.postgres.troubles import BAD_DATA


class PostgresTokens:
    """The part of the store that keeps tokens."""

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections = connections
        self._sql = statements(schema)

    async def add(self, token: Token) -> bool:
        body = encode_token(token)
        values = (token.id, token.name, token.created_at, body)
        try:
            if await self._connections.call(self._sql["add_token"], *values):
                return True
        except BAD_DATA as error:
            raise InvalidInput("name", token.name, f"text that can be stored ({error})") from None
        # It may be there already: an answer was lost, and it is added again.
        return bool(await self._connections.call(self._sql["same_token"], token.id, body))

    async def all(self) -> Sequence[Token]:
        rows = await self._connections.call(self._sql["tokens"])
        return [decode_token(row["body"]) for row in rows]

    async def revoke(self, token_id: str) -> bool:
        try:
            return bool(await self._connections.call(self._sql["revoke_token"], token_id))
        except BAD_DATA:
            return False
