"""Tokens: who may ask a server for what (O-4). Only the digest of a secret is kept."""

from headway.model.run import AgentName
from headway.model.time import Instant
from headway.model.value import Value
from headway.model.words import Scope


class Token(Value, frozen=True):
    """A right to ask, as it is kept."""

    id: str
    """Part of what its bearer shows, so that one row is looked at and no other."""
    name: str
    """What people call it; unique."""
    digest: str
    """SHA-256 of the secret, in hexadecimal."""
    scopes: tuple[Scope, ...]
    created_at: Instant
    agent: AgentName | None = None
    """The only agent whose runs, sessions and jobs it may see and touch; None: all."""
    expires_at: Instant | None = None
