"""A load of tasks: so many askers, each asks for the next task as soon as it has its answer."""

import asyncio
from collections.abc import Iterator

import msgspec

from headway.cli.bench.figures import Measured
from headway.cli.exits import first_error
from headway.client import Client, ServerUnavailable
from headway.model.errors import HeadwayError, QueueFull
from headway.model.time import Span
from headway.model.words import State
from headway.ports import Clock
from headway.wire.tasks import TaskRequest, TasksQuery

_FULL_S = 0.05
_LOOK_S = 0.05
_PAGE = 1000


class Load:
    """Asks a server for tasks of one agent, and notes how long each answer takes."""

    def __init__(
        self, client: Client, clock: Clock, agent: str, tasks: int, concurrency: int
    ) -> None:
        self._client = client
        self._clock = clock
        self._agent = agent
        self._tasks = tasks
        self._concurrency = concurrency
        self._latencies: list[Span] = []
        self._ids: list[str] = []
        self._refused = 0

    async def run(self, *, wait: bool) -> Measured:
        began_at = self._clock.elapsed()
        numbers = iter(range(self._tasks))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._concurrency, self._tasks)):
                    group.create_task(self._ask(numbers))
        except* HeadwayError as refused:
            raise first_error(refused) from None
        took = self._clock.elapsed() - began_at
        done_after = await self._all_ended(began_at) if wait else None
        return Measured(
            self._tasks,
            self._concurrency,
            took,
            tuple(self._latencies),
            self._refused,
            await self._done() if wait else 0,
            done_after,
        )

    async def _ask(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            task = TaskRequest(
                agent_id=self._agent, action="bench", params={"number": number}, deadline="10m"
            )
            while True:
                asked_at = self._clock.elapsed()
                try:
                    taken = await self._client.tasks.submit(task)
                except (QueueFull, ServerUnavailable):
                    self._refused += 1
                    await asyncio.sleep(_FULL_S)
                    continue
                self._latencies.append(self._clock.elapsed() - asked_at)
                self._ids.append(taken.task_id)
                break

    async def _all_ended(self, began_at: Span) -> Span:
        """How long after the beginning nothing of the agent is left to do."""
        while True:
            stats = await self._client.tasks.stats()
            loads = [load for load in stats.agents if load.agent_id == self._agent]
            if not any(load.queued or load.inflight for load in loads):
                return self._clock.elapsed() - began_at
            await asyncio.sleep(_LOOK_S)

    async def _done(self) -> int:
        """How many of ours ended well. What has just ended is written down a moment later: look until it stays."""
        before, done = -1, await self._written_done()
        while before < done < len(self._ids):
            await asyncio.sleep(_LOOK_S)
            before, done = done, await self._written_done()
        return done

    async def _written_done(self) -> int:
        query = TasksQuery(agent_id=self._agent, state=State.DONE, limit=_PAGE)
        ours, done = set(self._ids), 0
        while True:
            page = await self._client.tasks.list(query)
            done += sum(task.task_id in ours for task in page.tasks)
            if page.cursor is None:
                return done
            query = msgspec.structs.replace(query, cursor=page.cursor)
