"""Services: the tasks that run as long as the node does."""

import asyncio
from collections.abc import Callable, Coroutine


class Services:
    """Starts and ends them together. One that breaks breaks the node, loudly."""

    def __init__(self, fail: Callable[[BaseException], None]) -> None:
        self._fail = fail
        self._tasks: list[asyncio.Task[None]] = []

    def start(
        self, service: Coroutine[object, object, None], loop: asyncio.AbstractEventLoop
    ) -> None:
        task = loop.create_task(service)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def cancel(self) -> None:
        """Ask all to end, and wait for none."""
        for task in self._tasks:
            task.cancel()

    async def end(self) -> None:
        """Ask all to end, and wait until they have."""
        self.cancel()
        tasks, self._tasks = self._tasks, []
        if tasks:
            await asyncio.wait(tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)
