"""`headway tasks cancel`: it and all that it started."""

from typing import TYPE_CHECKING

from headway.cli.options import AsJson, ServerUrl, TokenText
from headway.cli.tasks.options import TaskId

if TYPE_CHECKING:
    from headway.wire.tasks import TaskAnswer


def cancel(
    task: TaskId,
    *,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a task and all that it started. One that runs is told to stop, and ends when it has."""
    from headway.cli.asking import look

    look(server, token, lambda client: client.tasks.cancel(task), _line, json=as_json)


def _line(task: "TaskAnswer") -> str:
    from headway.cli.tasks.telling import state_text

    return f"task {task.task_id} is {state_text(task)}"
