"""The session that a message belongs to when nobody names one: its agent and where it came from."""

from hashlib import sha256

from headway.model.run import AgentName, Route, SessionKey
from headway.model.settings import MAX_NAME

_READABLE = 400


def session_key(agent: AgentName, route: Route) -> SessionKey:
    """A key such as `agent:main:telegram:dm:42`, another one for each account, peer and thread.

    What a channel calls its accounts, peers and threads may hold anything, colons too: two places never get the
    same key. A message that names no peer belongs to the agent's one conversation on that channel.
    """
    parts = ["agent", agent, route.channel]
    if route.account:
        parts += ["account", route.account]
    parts += ["dm", route.peer] if route.peer else ["main"]
    if route.thread:
        parts += ["thread", route.thread]
    key = ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)
    if len(key) > MAX_NAME:
        key = f"{key[:_READABLE]}%{sha256(key.encode()).hexdigest()}"
    return SessionKey(key)
