"""Workers and machines as they were seen (D-8). Only the watch writes here; reading never does."""

from collections.abc import Sequence
from typing import cast

from headway.model.settings import Settings
from headway.model.time import Instant
from headway.model.words import WorkerState
from headway.model.worker import Beat, Snapshot, Worker
from headway.ports import SnapshotPage, SnapshotQuery, WorkerPage, WorkerQuery
from headway.store.sqlite.database import Column, Database
from headway.store.sqlite.statements import STATEMENTS
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


def beat(database: Database, workers: Sequence[Worker], at: Instant) -> None:
    for worker in {worker.id: worker for worker in workers}.values():
        if database.run("beat", *_row(worker, at)):
            database.run("add_beat", worker.id, encode_beat(worker))


def _row(worker: Worker, at: Instant) -> tuple[Column, ...]:
    return (
        worker.id,
        worker.agent,
        worker.host,
        worker.node,
        process_of(worker),
        worker.started_at,
        at,
        worker.state is WorkerState.DEAD,
        worker.state,
        encode_worker(worker),
    )


def page(database: Database, query: WorkerQuery) -> WorkerPage:
    """The latest first; a page goes on after the last one of the page before."""
    # Written out, not given: only so is it known which of the indexes has them.
    wanted = ["dead = 1" if query.state is WorkerState.DEAD else "dead = 0"]
    values: list[Column] = []
    for column, value in (("agent", query.agent), ("host", query.host), ("state", query.state)):
        if value is not None:
            wanted.append(f"{column} = ?")
            values.append(value)
    if query.cursor is not None:
        wanted.append("(started_at, id) < (?, ?)")
        values += read_worker_cursor(query.cursor)
    found = _page_of(database, "worker_page", wanted, values, query.limit)
    rows = cast(list[tuple[int, str, str]], found)
    shown = rows[: query.limit]
    workers = (decode_worker(body) for _, _, body in shown)
    more = len(rows) > query.limit and shown
    return WorkerPage(
        tuple(worker for worker in workers if worker is not None),
        worker_cursor(*shown[-1][:2]) if more else None,
    )


def find(database: Database, worker_id: str) -> Worker | None:
    row = database.row("worker", worker_id)
    return None if row is None else decode_worker(cast(str, row[0]))


def beats(database: Database, worker_id: str, most: int) -> list[Beat]:
    rows = cast(list[tuple[int, str]], database.rows("beats", worker_id, most))
    found = (decode_beat(worker_id, at, body) for at, body in rows)
    return [beat for beat in found if beat is not None]


def keep_snapshot(database: Database, snapshot: Snapshot) -> None:
    body = encode_snapshot(snapshot)
    database.run("keep_snapshot", snapshot.host, snapshot.at, snapshot.node, body)


def snapshots(database: Database, query: SnapshotQuery) -> SnapshotPage:
    """The latest first; a page goes on after the last one of the page before."""
    wanted = ["TRUE"]
    values: list[Column] = []
    if query.host is not None:
        wanted.append("host = ?")
        values.append(query.host)
    if query.cursor is not None:
        wanted.append("(at, node) < (?, ?)")
        values += read_snapshot_cursor(query.cursor)
    found = _page_of(database, "snapshot_page", wanted, values, query.limit)
    rows = cast(list[tuple[int, int, str]], found)
    shown = rows[: query.limit]
    more = len(rows) > query.limit and shown
    return SnapshotPage(
        tuple(decode_snapshot(body) for _, _, body in shown),
        snapshot_cursor(*shown[-1][:2]) if more else None,
    )


def _page_of(
    database: Database, name: str, wanted: Sequence[str], values: Sequence[Column], limit: int
) -> list[tuple[Column, ...]]:
    """One row more than was asked for, if there is one."""
    text = STATEMENTS[name].text.replace("/* wanted */ TRUE", " AND ".join(wanted))
    return database.plain(text, (*values, limit + 1))


def machines(database: Database) -> list[Snapshot]:
    return [decode_snapshot(cast(str, body)) for (body,) in database.rows("machines")]


def prune(database: Database, settings: Settings, most: int, now: Instant) -> bool:
    """Forget the oldest that are past their retention, at most so many of each; whether there may be more."""
    beats_before = now - settings.beat_retention
    forgotten = (
        database.run("forget_beats", beats_before, most),
        database.run("forget_dead_workers", beats_before, most),
        database.run("forget_lost_workers", beats_before, most),
        database.run("forget_snapshots", now - settings.snapshot_retention, most),
    )
    return max(forgotten) >= most
