"""Workers and machines as they were seen (D-8). Only the watch writes here; reading never does."""

from collections.abc import Sequence

from headway.model.errors import InvalidInput
from headway.model.settings import Settings
from headway.model.time import Instant
from headway.model.words import WorkerState
from headway.model.worker import Beat, Snapshot, Worker
from headway.ports import SnapshotPage, SnapshotQuery, WorkerPage, WorkerQuery
from headway.store.postgres.connections import Connections
from headway.store.postgres.statements import statements
from headway.store.postgres.troubles import BAD_DATA
from headway.store.worker_codec import (
    decode_beat,
    decode_snapshot,
    decode_worker,
    encode_beat,
    encode_snapshot,
    encode_worker,
    process_of,
    read_snapshot_cursor,
    read_worker_cursor,
    snapshot_cursor,
    worker_cursor,
)


class PostgresWorkers:
    """The part of the store that keeps workers and machines."""

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections = connections
        self._sql = statements(schema)

    async def beat(self, workers: Sequence[Worker], at: Instant) -> None:
        told = {worker.id: worker for worker in workers}.values()
        if not told:
            return
        columns = (
            [worker.id for worker in told],
            [worker.agent for worker in told],
            [worker.host for worker in told],
            [worker.node for worker in told],
            [process_of(worker) for worker in told],
            [worker.started_at for worker in told],
            [worker.state is WorkerState.DEAD for worker in told],
            [str(worker.state) for worker in told],
            [encode_worker(worker) for worker in told],
            [encode_beat(worker) for worker in told],
        )
        try:
            await self._connections.call(self._sql["beat"], at, *columns)
        except BAD_DATA as error:
            raise InvalidInput("workers", "", f"text that can be stored ({error})") from None

    async def page(self, query: WorkerQuery) -> WorkerPage:
        """The latest first; a page goes on after the last one of the page before."""
        # Written out, not given: only so is it known which of the indexes has them.
        wanted = [f"w.dead_at is {'not null' if query.state is WorkerState.DEAD else 'null'}"]
        values: list[object] = [query.limit + 1]
        state = None if query.state is None else str(query.state)
        for column, value in (("agent", query.agent), ("host", query.host), ("state", state)):
            if value is not None:
                values.append(value)
                wanted.append(f"w.{column} = ${len(values)}")
        if query.cursor is not None:
            values += read_worker_cursor(query.cursor)
            wanted.append(f"(w.started_at, w.id) < (${len(values) - 1}, ${len(values)})")
        statement = self._sql["worker_page"].format(wanted=" and ".join(wanted))
        try:
            rows = await self._connections.call(statement, *values)
        except BAD_DATA:
            return WorkerPage(())
        shown = rows[: query.limit]
        workers = (decode_worker(row["body"]) for row in shown)
        more = len(rows) > query.limit and shown
        cursor = worker_cursor(shown[-1]["started_at"], shown[-1]["id"]) if more else None
        return WorkerPage(tuple(worker for worker in workers if worker is not None), cursor)

    async def find(self, worker_id: str) -> Worker | None:
        try:
            rows = await self._connections.call(self._sql["worker"], worker_id)
        except BAD_DATA:
            return None
        return decode_worker(rows[0]["body"]) if rows else None

    async def beats(self, worker_id: str, most: int) -> Sequence[Beat]:
        try:
            rows = await self._connections.call(self._sql["beats"], worker_id, most)
        except BAD_DATA:
            return []
        found = (decode_beat(worker_id, row["at"], row["body"]) for row in rows)
        return [beat for beat in found if beat is not None]

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        values = (snapshot.host, snapshot.at, snapshot.node, encode_snapshot(snapshot))
        try:
            await self._connections.call(self._sql["keep_snapshot"], *values)
        except BAD_DATA as error:
            raise InvalidInput(
                "host", snapshot.host, f"text that can be stored ({error})"
            ) from None

    async def snapshots(self, query: SnapshotQuery) -> SnapshotPage:
        """The latest first; a page goes on after the last one of the page before."""
        wanted = ["true"]
        values: list[object] = [query.limit + 1]
        if query.host is not None:
            values.append(query.host)
            wanted.append(f"s.host = ${len(values)}")
        if query.cursor is not None:
            values += read_snapshot_cursor(query.cursor)
            wanted.append(f"(s.at, s.node) < (${len(values) - 1}, ${len(values)})")
        statement = self._sql["snapshot_page"].format(wanted=" and ".join(wanted))
        try:
            rows = await self._connections.call(statement, *values)
        except BAD_DATA:
            return SnapshotPage(())
        shown = rows[: query.limit]
        more = len(rows) > query.limit and shown
        cursor = snapshot_cursor(shown[-1]["at"], shown[-1]["node"]) if more else None
        return SnapshotPage(tuple(decode_snapshot(row["body"]) for row in shown), cursor)

    async def machines(self) -> Sequence[Snapshot]:
        rows = await self._connections.call(self._sql["machines"])
        return [decode_snapshot(row["body"]) for row in rows]

    async def prune(self, settings: Settings, most: int, now: Instant) -> bool:
        """Forget the oldest that are past their retention, at most so many of each; whether there may be more."""
        values = (now - settings.beat_retention, now - settings.snapshot_retention, most)
        rows = await self._connections.call(self._sql["prune_workers"], *values)
        return int(rows[0]["gone"]) >= most
