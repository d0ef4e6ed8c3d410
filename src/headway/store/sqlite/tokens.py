"""Who may ask a server for what (O-4)."""

from collections.abc import Sequence
from typing import cast

from headway.model.token import Token
from headway.store.codec import decode_token, encode_token
from headway.store.sqlite.database import Database


def add_token(database: Database, token: Token) -> bool:
    """False: its name or its id is another one's. That it is there already is no reason: an answer may be lost."""
    body = encode_token(token)
    if database.run("add_token", token.id, token.name, token.created_at, body):
        return True
    return database.row("same_token", token.id, body) is not None


def tokens(database: Database) -> Sequence[Token]:
    return [decode_token(cast(str, body)) for (body,) in database.rows("tokens")]


def revoke_token(database: Database, token_id: str) -> bool:
    return bool(database.run("revoke_token", token_id))
