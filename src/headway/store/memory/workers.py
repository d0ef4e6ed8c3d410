"""Workers and machines as they were seen, as long as this process lives (D-8)."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from headway.model.time import Instant
from headway.model.words import WorkerState
from headway.model.worker import Beat, Snapshot, Worker
from headway.ports import SnapshotPage, SnapshotQuery, WorkerPage, WorkerQuery
from headway.store.worker_codec import (
    process_of,
    read_snapshot_cursor,
    read_worker_cursor,
    snapshot_cursor,
    worker_cursor,
)

MOST_BEATS = 1_000
"""Of each worker, whatever the retention."""
MOST_DEAD = 10_000
MOST_SNAPSHOTS = 10_000


class _Seen(msgspec.Struct, eq=False):
    """A worker as it was last found, and when that was."""

    worker: Worker
    at: Instant
    beats: deque[Beat]

    def is_told_by(self, worker: Worker, at: Instant) -> bool:
        """Whether what was found then says more than is known."""
        known = self.worker
        if process_of(worker) != process_of(known):
            return at > self.at
        dies = worker.state is WorkerState.DEAD and worker.node == known.node
        return known.state is not WorkerState.DEAD and (at > self.at or dies)


class MemoryWorkers:
    """Keeps workers by their ids, and the snapshots of the only machine there is."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._dead: dict[str, None] = {}
        """Those that are dead, the first one first."""
        self._snapshots: deque[Snapshot] = deque(maxlen=MOST_SNAPSHOTS)

    def beat(self, workers: Iterable[Worker], at: Instant) -> None:
        for worker in {worker.id: worker for worker in workers}.values():
            self._beat(worker, at)

    def _beat(self, worker: Worker, at: Instant) -> None:
        known = self._seen.get(worker.id)
        dies = worker.state is WorkerState.DEAD
        if known is None:
            known = self._seen[worker.id] = _Seen(worker, at, deque(maxlen=MOST_BEATS))
        elif not known.is_told_by(worker, at):
            return
        known.worker, known.at = worker, max(at, known.at)
        self._dead.pop(worker.id, None)
        if known.beats and known.beats[-1].at >= at:
            known.beats.pop()
        known.beats.append(Beat(worker.id, known.at, worker.state, worker.lines))
        if dies:
            self._dead[worker.id] = None
            if len(self._dead) > MOST_DEAD:
                first = next(iter(self._dead))
                del self._dead[first], self._seen[first]

    def page(self, query: WorkerQuery) -> WorkerPage:
        after = None if query.cursor is None else read_worker_cursor(query.cursor)
        found = [
            seen.worker
            for seen in self._seen.values()
            if _matches(query, seen.worker) and (after is None or _place(seen.worker) < after)
        ]
        found.sort(key=_place, reverse=True)
        shown = found[: query.limit]
        more = len(found) > len(shown) and shown
        return WorkerPage(tuple(shown), worker_cursor(*_place(shown[-1])) if more else None)

    def find(self, worker_id: str) -> Worker | None:
        seen = self._seen.get(worker_id)
        return None if seen is None else seen.worker

    def beats(self, worker_id: str, most: int) -> Sequence[Beat]:
        seen = self._seen.get(worker_id)
        return [] if seen is None else list(islice(reversed(seen.beats), most))

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        place = _moment(snapshot)
        if all(_moment(known) != place for known in reversed(self._snapshots)):
            self._snapshots.append(snapshot)

    def snapshots(self, query: SnapshotQuery) -> SnapshotPage:
        before = None if query.cursor is None else read_snapshot_cursor(query.cursor)
        found = [
            snapshot
            for snapshot in self._snapshots
            if query.host in {None, snapshot.host}
            and (before is None or _moment(snapshot) < before)
        ]
        found.sort(key=_moment, reverse=True)
        shown = found[: query.limit]
        more = len(found) > len(shown) and shown
        return SnapshotPage(tuple(shown), snapshot_cursor(*_moment(shown[-1])) if more else None)

    def machines(self) -> Sequence[Snapshot]:
        latest: dict[str, Snapshot] = {}
        for snapshot in sorted(self._snapshots, key=_moment):
            latest[snapshot.host] = snapshot
        return [latest[host] for host in sorted(latest)]

    def prune(self, beats_before: Instant, snapshots_before: Instant) -> None:
        """Forget what is past its retention; a worker that nobody looks at any more goes with its last beat."""
        for worker_id, seen in list(self._seen.items()):
            while seen.beats and seen.beats[0].at <= beats_before:
                seen.beats.popleft()
            if seen.at <= beats_before:
                del self._seen[worker_id]
        self._dead = {worker_id: None for worker_id in self._dead if worker_id in self._seen}
        kept = (known for known in self._snapshots if known.at > snapshots_before)
        self._snapshots = deque(kept, maxlen=MOST_SNAPSHOTS)


def _matches(query: WorkerQuery, worker: Worker) -> bool:
    lives = worker.state is not WorkerState.DEAD
    return (
        (lives if query.state is None else worker.state is query.state)
        and query.agent in {None, worker.agent}
        and query.host in {None, worker.host}
    )


def _place(worker: Worker) -> tuple[Instant, str]:
    return worker.started_at, worker.id


def _moment(snapshot: Snapshot) -> tuple[Instant, int]:
    return snapshot.at, snapshot.node
