"""How an agent is woken from time to time to look after its checklist (H-1)."""

from typing import Annotated

from msgspec import Meta

from headway.model.hours import ActiveHours
from headway.model.run import LaneName, Route
from headway.model.time import MINUTE, Span
from headway.model.value import Value

LAST = "last"
"""The target that means: where the agent's latest message came from."""
NONE = "none"
"""The target that means: nobody is told; the reply is in the log."""

DEFAULT_PROMPT = (
    "Look after your checklist. Do what is due on it and nothing else. "
    "If nothing needs attention, answer HEARTBEAT_OK."
)


class HeartbeatSettings(Value, frozen=True):
    """The heartbeat of one agent."""

    interval: Annotated[Span, Meta(ge=1)] = 30 * MINUTE
    prompt: str = ""
    """What the agent is told, word for word, so it should say when to answer HEARTBEAT_OK.

    Empty: a built-in text, and then a missing checklist means that there is nothing to do.
    """
    hours: ActiveHours | None = None
    target: Route | str = LAST
    """`last`, `none`, or the route that an alert goes to."""
    checklist: str = ""
    """The path of HEARTBEAT.md; empty: its text is kept in the store."""
    ack_max_chars: Annotated[int, Meta(ge=0)] = 300
    lane: LaneName | None = None
    session: str = "main"
    """`isolated`: a fresh session each time; `main`: the agent's own; else a session key."""
    timeout: Span | None = None
