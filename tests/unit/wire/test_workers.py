"""Workers and machines as JSON (D-8)."""

import msgspec
import pytest

from headway.model.run import AgentName, LaneName, RunId, SessionKey
from headway.model.words import WorkerKind, WorkerState
from headway.model.worker import Beat, LaneLoad, Snapshot, Worker
from headway.store.worker_codec import snapshot_cursor, worker_cursor
from headway.wire.workers import (
    SnapshotsQuery,
    WorkerPath,
    WorkersQuery,
    machine_answer,
    worker_answer,
    worker_detail,
)

NOON = 1_763_204_400_123_456
WORKER = Worker(
    id="1k3f9a2xq-42.2",
    run_id=RunId("1k3f9a2xq-42"),
    attempt=2,
    agent=AgentName("coder"),
    session=SessionKey("agent:coder:main"),
    kind=WorkerKind.TMUX,
    host="one",
    node=3,
    pid=4711,
    born=1_763_204_399.5,
    started_at=NOON,
    state=WorkerState.IDLE,
    beat_at=NOON,
    missed=1,
    lines=("$ make", "ok"),
    pane="hw-1k3f9a2xq-42-2",
    adopted=True,
)
SHOWN = {
    "id": "1k3f9a2xq-42.2",
    "runId": "1k3f9a2xq-42",
    "attempt": 2,
    "agentId": "coder",
    "session": "agent:coder:main",
    "kind": "tmux",
    "host": "one",
    "node": 3,
    "pid": 4711,
    "born": 1_763_204_399.5,
    "startedAt": "2025-11-15T11:00:00.123Z",
    "state": "idle",
    "beatAt": "2025-11-15T11:00:00.123Z",
    "missed": 1,
    "lines": ["$ make", "ok"],
    "pane": "hw-1k3f9a2xq-42-2",
    "adopted": True,
    "exitCode": None,
}


def _json(answer: msgspec.Struct) -> object:
    return msgspec.json.decode(msgspec.json.encode(answer))


def test_d8_a_worker_is_told_whole() -> None:
    assert _json(worker_answer(WORKER)) == SHOWN


def test_d8_a_worker_comes_with_its_beats() -> None:
    beats = [
        Beat(WORKER.id, NOON, WorkerState.IDLE, ("ok",)),
        Beat(WORKER.id, NOON, WorkerState.BUSY),
    ]
    assert _json(worker_detail(WORKER, beats)) == {
        **SHOWN,
        "beats": [
            {"at": "2025-11-15T11:00:00.123Z", "state": "idle", "lines": ["ok"]},
            {"at": "2025-11-15T11:00:00.123Z", "state": "busy", "lines": []},
        ],
    }


def test_d8_a_machine_is_told_with_its_lanes() -> None:
    lanes = (LaneLoad(LaneName("main"), 4, 3, 17),)
    snapshot = Snapshot("one", 3, NOON, 12.5, 8, 3 << 30, 16 << 30, 0.75, 2, lanes)
    assert _json(machine_answer([snapshot])) == {
        "machines": [
            {
                "host": "one",
                "node": 3,
                "at": "2025-11-15T11:00:00.123Z",
                "cpu": 12.5,
                "cores": 8,
                "memoryUsed": 3 << 30,
                "memoryTotal": 16 << 30,
                "load": 0.75,
                "workers": 2,
                "lanes": [{"name": "main", "width": 4, "running": 3, "waiting": 17}],
            }
        ]
    }


def test_t2_cursors_of_stores_are_taken_and_others_refused() -> None:
    taken = msgspec.convert({"cursor": worker_cursor(NOON, WORKER.id)}, WorkersQuery)
    assert taken.cursor == f'[{NOON},"{WORKER.id}"]'
    assert msgspec.convert({"cursor": snapshot_cursor(NOON, 3)}, SnapshotsQuery).cursor
    for kind in (WorkersQuery, SnapshotsQuery):
        with pytest.raises(msgspec.ValidationError, match="cursor"):
            msgspec.convert({"cursor": "7"}, kind)


@pytest.mark.parametrize(
    ("kind", "asked", "field"),
    [
        (WorkersQuery, {"state": "asleep"}, "state"),
        (WorkersQuery, {"limit": 0}, "limit"),
        (WorkersQuery, {"agent": "coder"}, "agent"),
        (WorkersQuery, {"host": ""}, "host"),
        (WorkerPath, {"id": "no such/name"}, "id"),
        (WorkerPath, {"id": "r.1", "beats": 1001}, "beats"),
        (SnapshotsQuery, {"limit": 1001}, "limit"),
    ],
)
def test_t2_what_is_wrong_is_named(
    kind: type[msgspec.Struct], asked: dict[str, object], field: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert(asked, kind)
