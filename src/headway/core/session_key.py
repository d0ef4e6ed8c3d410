"""The session that a message belongs to when nobody names one: its agent and where it came from."""

from hashlib import sha256

from headway.model.run import AgentName, Route, SessionKey
from headway.model.settings import MAX_NAME

_READABLE = 400
_FIRST = "agent"


def session_key(agent: AgentName, route: Route) -> SessionKey:
    """A key such as `agent:main:telegram:dm:42`, another one for each account, peer and thread.

    What a channel calls its accounts, peers and threads may hold anything, colons too: two places never get the
    same key. A message that names no peer belongs to the agent's one conversation on that channel.
    """
    parts = [_FIRST, agent, route.channel]
    if route.account:
        parts += ["account", route.account]
    parts += ["dm", route.peer] if route.peer else ["main"]
    if route.thread:
        parts += ["thread", route.thread]
    key = ":".join(map(_quoted, parts))
    if len(key) > MAX_NAME:
        key = f"{key[:_READABLE]}%{sha256(key.encode()).hexdigest()}"
    return SessionKey(key)


def is_named_after(agent: str, key: str) -> bool:
    """Whether it is the key of a place of this agent."""
    return key.startswith(f"{_FIRST}:{_quoted(agent)}:")


def is_of_a_place(key: str) -> bool:
    """Whether it is the key of a place, of whichever agent."""
    return key.startswith(f"{_FIRST}:")


def _quoted(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")
