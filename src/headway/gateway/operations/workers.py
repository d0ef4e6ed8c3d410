"""What can be asked about workers: the processes and panes that execute attempts, and their signs of life."""

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.errors import NotThere
from headway.gateway.operations import operation
from headway.model.words import Scope
from headway.wire.workers import (
    WorkerDetail,
    WorkerPage,
    WorkerPath,
    WorkersQuery,
    worker_answer,
    worker_detail,
)


@operation(Scope.READ)
async def list_workers(desk: Desk, caller: Caller, asked: WorkersQuery) -> WorkerPage:
    """List the workers of all nodes as they were last seen, the latest first: without a state those that live.

    A token for one agent sees only that agent's.
    """
    page = await desk.hw.workers(
        agent=caller.only(asked.agent_id),
        host=asked.host,
        state=asked.state,
        limit=asked.limit,
        cursor=asked.cursor,
    )
    return WorkerPage(workers=tuple(map(worker_answer, page.workers)), cursor=page.cursor)


@operation(Scope.READ)
async def get_worker(desk: Desk, caller: Caller, asked: WorkerPath) -> WorkerDetail:
    """Show one worker with its latest beats, the newest first."""
    worker = await desk.hw.worker(asked.id)
    if worker is None or not caller.sees(worker.agent):
        raise NotThere("worker", asked.id)
    beats = await desk.hw.beats(worker.id, limit=asked.beats) if asked.beats else ()
    return worker_detail(worker, beats)
