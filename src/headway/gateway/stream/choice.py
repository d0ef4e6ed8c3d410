"""Which events a listener wants, and which it may see."""

from collections.abc import Callable, Iterable

from headway.model.errors import UnknownName
from headway.model.events import CATALOGUE, Event
from headway.model.telling import kind_of

_RUNS = ("run_id", "message", "into")
"""The fields in which events name a run."""
BY_NAME: dict[str, type[Event]] = {kind_of(kind): kind for kind in CATALOGUE}


def wanted(
    *,
    events: Iterable[str] = (),
    agent: str | None = None,
    session: str | None = None,
    run_id: str | None = None,
    bound_to: str | None = None,
) -> Callable[[Event], bool]:
    """What answers, for each event, whether it is told. Each thing that is said narrows it.

    Who is bound to one agent sees only what names that agent: not the other agents', and not the node's own.
    """
    kinds = frozenset(_kind(name) for name in events)

    def wants(event: Event) -> bool:
        if kinds and type(event) not in kinds:
            return False
        if bound_to is not None and getattr(event, "agent", None) != bound_to:
            return False
        if agent is not None and getattr(event, "agent", None) != agent:
            return False
        if session is not None and getattr(event, "session", None) != session:
            return False
        return run_id is None or any(getattr(event, field, None) == run_id for field in _RUNS)

    return wants


def _kind(name: str) -> type[Event]:
    kind = BY_NAME.get(name)
    if kind is None:
        raise UnknownName("event", name, BY_NAME)
    return kind
