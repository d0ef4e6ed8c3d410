"""What the templates of a runner are filled in with."""

import uuid  # noqa: TID251 - names made from names, not by chance

from headway.model.outcome import Json
from headway.model.task import Task
from headway.turn import Turn

_NO_TASK = Task("")


def values_of(turn: Turn) -> dict[str, Json]:
    """One value for each of `core.template.NAMES`."""
    task = turn.task or _NO_TASK
    return {
        "text": turn.text,
        "agent": turn.agent,
        "session": turn.session,
        "session_uuid": session_uuid(turn.agent, turn.session),
        "run_id": turn.id,
        "trace_id": turn.trace_id,
        "job_id": turn.job or "",
        "attempt": turn.attempt,
        "fence": str(turn.fence),
        "action": task.action,
        "tab_id": task.tab_id,
        "selector": task.selector,
        "ref": task.ref,
        "params": task.params,  # type: ignore[dict-item]  # as JSON holds it
    }


def session_uuid(agent: str, session: str) -> str:
    """The same for one agent and session on every machine: for agents that call their sessions by a UUID."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"headway:{agent}:{session}"))
