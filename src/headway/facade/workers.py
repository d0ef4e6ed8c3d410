"""Reading about workers and machines: the store's sight of them, which no reader changes (D-8)."""

from collections.abc import Sequence

from headway.core.request import whole_number
from headway.facade.options import check_sought
from headway.model.errors import InvalidInput, UnknownName
from headway.model.text import is_whole
from headway.model.words import WorkerState
from headway.model.worker import Beat, Worker
from headway.ports import SnapshotPage, SnapshotQuery, WorkerPage, WorkerQuery
from headway.runtime.engine import Engine

_MOST = 1000


async def list_workers(
    engine: Engine,
    *,
    agent: str | None,
    host: str | None,
    state: WorkerState | str | None,
    limit: int,
    cursor: str | None,
) -> WorkerPage:
    if state is not None and state not in tuple(WorkerState):
        raise UnknownName("state", str(state), WorkerState)
    for name, value in (("agent", agent), ("host", host), ("cursor", cursor)):
        check_sought(name, value)
    whole_number(1, _MOST)(limit, "limit")
    wanted = None if state is None else WorkerState(state)
    return await engine.store.workers(WorkerQuery(agent, host, wanted, limit, cursor))


async def find_worker(engine: Engine, worker: str) -> Worker | None:
    if not isinstance(worker, str):
        raise InvalidInput("worker", worker, "the id of a worker, such as `<run>.1`")
    return await engine.store.find_worker(worker) if is_whole(worker) else None


async def list_beats(engine: Engine, worker: str, limit: int) -> Sequence[Beat]:
    check_sought("worker", worker)
    whole_number(1, _MOST)(limit, "limit")
    return await engine.store.beats(worker, limit)


async def list_snapshots(
    engine: Engine, *, host: str | None, limit: int, cursor: str | None
) -> SnapshotPage:
    check_sought("host", host)
    check_sought("cursor", cursor)
    whole_number(1, _MOST)(limit, "limit")
    return await engine.store.snapshots(SnapshotQuery(host, limit, cursor))
