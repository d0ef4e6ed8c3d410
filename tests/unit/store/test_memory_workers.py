"""Workers in memory: bounded, whatever the retention."""

import msgspec

from headway.model.words import WorkerState
from headway.ports import SnapshotQuery, WorkerQuery
from headway.store.memory.workers import MOST_BEATS, MOST_DEAD, MOST_SNAPSHOTS, MemoryWorkers
from tests.contract.workers_contract import SNAPSHOT, a_worker

ALL = 1_000_000


def test_d8_of_each_worker_only_the_latest_beats_are_kept() -> None:
    workers = MemoryWorkers()
    for at in range(MOST_BEATS + 5):
        workers.beat([a_worker()], at)
    beats = workers.beats("r-1.1", ALL)
    assert [beat.at for beat in beats] == list(range(MOST_BEATS + 4, 4, -1))


def test_d8_the_first_that_died_is_the_first_forgotten() -> None:
    workers = MemoryWorkers()
    workers.beat([a_worker("alive.1")], 0)
    for number in range(MOST_DEAD + 2):
        workers.beat([a_worker(f"r-{number}.1", WorkerState.DEAD)], 1)
    assert workers.find("r-1.1") is None
    assert workers.find("r-2.1") is not None
    assert workers.find("alive.1") is not None
    page = workers.page(WorkerQuery(state=WorkerState.DEAD, limit=ALL))
    assert len(page.workers) == MOST_DEAD
    workers.prune(1, 0)
    assert workers.page(WorkerQuery(state=WorkerState.DEAD, limit=ALL)).workers == ()
    workers.beat([a_worker("late.1", WorkerState.DEAD)], 2)
    assert workers.find("late.1") is not None


def test_d8_only_so_many_snapshots_are_kept() -> None:
    workers = MemoryWorkers()
    for at in range(MOST_SNAPSHOTS, MOST_SNAPSHOTS + 10):
        workers.keep_snapshot(msgspec.structs.replace(SNAPSHOT, at=at))
    assert len(workers.snapshots(SnapshotQuery(limit=ALL)).snapshots) == 10
    assert workers._snapshots.maxlen == MOST_SNAPSHOTS
    workers.prune(0, MOST_SNAPSHOTS + 8)
    assert workers._snapshots.maxlen == MOST_SNAPSHOTS
    (latest,) = workers.machines()
    assert latest.at == MOST_SNAPSHOTS + 9
