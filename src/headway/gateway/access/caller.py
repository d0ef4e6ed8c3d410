"""Who asks, and what he may."""

from collections.abc import Awaitable, Callable

from headway.gateway.errors import Forbidden
from headway.model.value import Value
from headway.model.words import Scope

_RANKS = {scope: rank for rank, scope in enumerate(Scope)}


class Caller(Value, frozen=True):
    """Whoever sent a request: operations ask it, and only it, what they may do and show."""

    name: str = "local"
    """What people call its token."""
    scopes: tuple[Scope, ...] = ()
    agent: str | None = None
    """The only agent that it may see and touch; None: all."""
    request_id: str = ""
    traceparent: str = ""
    """The span of whoever asks, if he sent one (W3C Trace Context)."""
    gone: Callable[[], Awaitable[object]] | None = None
    """Waits until whoever asked has left, where that can be noticed: nobody need be waited for then."""

    def may(self, scope: Scope) -> bool:
        """Each scope allows what those before it do."""
        wanted = _RANKS[scope]
        # A loop: every request is asked this, and a generator costs more than the answer.
        for held in self.scopes:  # noqa: SIM110
            if _RANKS[held] >= wanted:
                return True
        return False

    def sees(self, agent: str) -> bool:
        """Whether runs, sessions and jobs of this agent exist for the caller."""
        return self.agent is None or self.agent == agent

    def need(self, scope: Scope) -> None:
        if not self.may(scope):
            raise Forbidden(f"this needs the scope `{scope}`", scope=scope)

    def need_agent(self, agent: str) -> None:
        """For what names an agent: the caller may know of it, but not ask it."""
        if not self.sees(agent):
            raise Forbidden(f"this token is for agent {self.agent!r} only", agentId=agent)

    def need_all_agents(self) -> None:
        """For what touches everything there is, such as lanes and limits."""
        if self.agent is not None:
            raise Forbidden(f"this token is for agent {self.agent!r} only")

    def only(self, agent: str | None) -> str | None:
        """The agent to list, if one was named: a caller with an agent of its own sees only that one's."""
        if agent is not None:
            self.need_agent(agent)
        return agent or self.agent


EVERYTHING = Caller(scopes=(Scope.ADMIN,))
"""Whoever asks from the same machine while there are no tokens."""
