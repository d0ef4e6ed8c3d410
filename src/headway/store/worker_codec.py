"""How workers, their beats and machines are written into a database, and read back."""

from typing import Annotated, TypeAlias, cast

import msgspec
from msgspec import Meta

from headway.model.value import Value
from headway.model.words import WorkerState
from headway.model.worker import Beat, Snapshot, Worker
from headway.store.texts import read_cursor, reader, text_of

_parts = msgspec.structs.astuple

_Number: TypeAlias = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _WrittenWorker(Worker, frozen=True, omit_defaults=True):
    pass


class _WrittenSnapshot(Snapshot, frozen=True, omit_defaults=True):
    pass


class _WrittenBeat(Value, frozen=True, omit_defaults=True):
    """Whose it is and when it was stand in the key."""

    state: WorkerState
    lines: tuple[str, ...] = ()


_read_worker = reader(Worker)
_read_beat = reader(_WrittenBeat)
_read_snapshot = reader(Snapshot)
_read_worker_cursor = reader(tuple[_Number, str])
_read_snapshot_cursor = reader(tuple[_Number, _Number])


def encode_worker(worker: Worker) -> str:
    return text_of(_WrittenWorker(*_parts(worker)))


def decode_worker(text: str | bytes) -> Worker | None:
    """None: a newer version knows kinds or states of workers that this one does not."""
    try:
        return cast(Worker, _read_worker(text))
    except msgspec.ValidationError:
        return None


def process_of(worker: Worker) -> str:
    """Which process it is: a pid may be used again, and so may the number of an attempt (W-2)."""
    return text_of((worker.host, worker.pid, worker.born))


def encode_beat(worker: Worker) -> str:
    return text_of(_WrittenBeat(worker.state, worker.lines))


def decode_beat(worker_id: str, at: int, text: str | bytes) -> Beat | None:
    """None: a newer version knows states that this one does not."""
    try:
        written = cast(_WrittenBeat, _read_beat(text))
    except msgspec.ValidationError:
        return None
    return Beat(worker_id, at, written.state, written.lines)


def encode_snapshot(snapshot: Snapshot) -> str:
    return text_of(_WrittenSnapshot(*_parts(snapshot)))


def decode_snapshot(text: str | bytes) -> Snapshot:
    return cast(Snapshot, _read_snapshot(text))


def worker_cursor(started_at: int, worker_id: str) -> str:
    """Where a page of workers ended."""
    return text_of((started_at, worker_id))


def read_worker_cursor(cursor: str) -> tuple[int, str]:
    return cast(tuple[int, str], read_cursor(_read_worker_cursor, cursor))


def snapshot_cursor(at: int, node: int) -> str:
    """Where a page of snapshots ended."""
    return text_of((at, node))


def read_snapshot_cursor(cursor: str) -> tuple[int, int]:
    return cast(tuple[int, int], read_cursor(_read_snapshot_cursor, cursor))
