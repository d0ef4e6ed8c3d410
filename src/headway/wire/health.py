"""Whether a server lives and may be asked, as JSON."""

from headway.wire.base import Answer, Request


class NothingAsked(Request, frozen=True):
    """There is nothing to say."""


class Health(Answer, frozen=True):
    """The process answers."""

    status: str


class Readiness(Answer, frozen=True):
    """Whether work can be asked for just now."""

    ready: bool
    reasons: tuple[str, ...]
    """Why not: it has not started, it drains, its store is away."""
