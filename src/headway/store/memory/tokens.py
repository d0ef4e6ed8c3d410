"""Who may ask a server for what, as long as this process lives (O-4)."""

from collections.abc import Sequence

from headway.model.token import Token


class MemoryTokens:
    """Keeps tokens by their ids."""

    def __init__(self) -> None:
        self._tokens: dict[str, Token] = {}

    def add(self, token: Token) -> bool:
        known = self._tokens.get(token.id)
        if known is not None:
            return known == token
        if any(other.name == token.name for other in self._tokens.values()):
            return False
        self._tokens[token.id] = token
        return True

    def all(self) -> Sequence[Token]:
        return sorted(self._tokens.values(), key=_age)

    def revoke(self, token_id: str) -> bool:
        return self._tokens.pop(token_id, None) is not None


def _age(token: Token) -> tuple[int, str]:
    """The oldest first, and those of one instant by their ids."""
    return token.created_at, token.id
