"""The one table of a run's states (R-1). Nothing else in Headway changes a state."""

from collections.abc import Mapping
from types import MappingProxyType

from headway.model.errors import IllegalTransition
from headway.model.words import State

TRANSITIONS: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.PENDING: frozenset({State.QUEUED, State.CANCELLED, State.FAILED}),
        State.QUEUED: frozenset({State.ASSIGNED, State.PENDING, State.CANCELLED, State.FAILED}),
        State.ASSIGNED: frozenset({State.RUNNING, State.QUEUED, State.CANCELLED, State.FAILED}),
        State.RUNNING: frozenset(
            {State.DONE, State.FAILED, State.CANCELLED, State.QUEUED, State.PENDING}
        ),
        State.DONE: frozenset(),
        State.FAILED: frozenset(),
        State.CANCELLED: frozenset(),
        State.REJECTED: frozenset(),
    }
)
FIRST_STATES = frozenset({State.PENDING, State.QUEUED, State.REJECTED})


def advance(current: State, target: State) -> State:
    """The target, if the table has that step; anything else is a bug and raises."""
    if target not in TRANSITIONS[current]:
        raise IllegalTransition(current, target)
    return target


def diagram() -> str:
    """The table as a Mermaid state diagram, for the documents."""
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {state}" for state in State if state in FIRST_STATES]
    for state, targets in TRANSITIONS.items():
        lines += [f"    {state} --> {target}" for target in State if target in targets]
        if not targets:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines)
