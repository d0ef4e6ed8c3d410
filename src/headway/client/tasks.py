"""Tasks on a server (T-1)."""

from headway.client.line import Line
from headway.wire.stats import StatsAnswer
from headway.wire.tasks import (
    BatchAnswer,
    BatchRequest,
    TaskAccepted,
    TaskAnswer,
    TaskPage,
    TaskPath,
    TaskRequest,
    TasksQuery,
)


class Tasks:
    """What programs ask agents for."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def submit(self, task: TaskRequest) -> TaskAccepted:
        return await self._line.ask("POST", "/tasks", TaskAccepted, task)

    async def batch(self, tasks: BatchRequest) -> BatchAnswer:
        """Up to 50 at once; each is taken or refused by itself or, with `atomic`, all or none."""
        return await self._line.ask("POST", "/tasks/batch", BatchAnswer, tasks)

    async def list(self, query: TasksQuery) -> TaskPage:
        return await self._line.ask("GET", "/tasks", TaskPage, query)

    async def get(self, task_id: str) -> TaskAnswer:
        return await self._line.ask("GET", "/tasks/{taskId}", TaskAnswer, TaskPath(task_id=task_id))

    async def cancel(self, task_id: str) -> TaskAnswer:
        path = TaskPath(task_id=task_id)
        return await self._line.ask("POST", "/tasks/{taskId}/cancel", TaskAnswer, path)

    async def stats(self) -> StatsAnswer:
        """What the node is at."""
        return await self._line.ask("GET", "/scheduler/stats", StatsAnswer)
