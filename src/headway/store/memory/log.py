"""The log of what jobs have made (C-11): the last lines of each job, and what became of their runs."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from headway.core.alarms import NEVER
from headway.model.job import MAX_RECENT, Entry, Past
from headway.model.run import JobId, RunId
from headway.model.time import Instant
from headway.model.views import RunView
from headway.model.words import FINAL_STATES, State
from headway.ports import LogPage, LogQuery
from headway.store.codec import summary_of
from headway.store.memory.cursors import position

MOST_LINES = 200
"""Of each job."""


class JobLog:
    """Keeps lines as they were written; what their runs have come to is looked up when they are read."""

    def __init__(
        self,
        state_of: Callable[[RunId], State | None],
        view_of: Callable[[RunId], RunView | None],
        most_removed: int,
    ) -> None:
        self._state_of = state_of
        self._view_of = view_of
        self._most_removed = most_removed
        self._numbered = 0
        self._lines: dict[int, Entry] = {}
        """All lines by their numbers, the oldest first."""
        self._by_job: dict[JobId, list[Entry]] = {}
        self._fired: set[tuple[JobId, Instant]] = set()
        """The due times that have had their runs."""
        self._removed: deque[JobId] = deque()
        """Jobs that are gone while their log stays, the first one gone first."""

    def has_fired(self, job: JobId, entries: Iterable[Entry]) -> bool:
        """Whether one of these would be a second run of its due time (C-5)."""
        return any(
            entry.run_id is not None and (job, entry.due_at) in self._fired for entry in entries
        )

    def append(self, job: JobId, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        lines = self._by_job.setdefault(job, [])
        for entry in entries:
            number = self._numbered = self._numbered + 1
            line = self._lines[number] = msgspec.structs.replace(entry, job=job, number=number)
            lines.append(line)
            if entry.run_id is not None:
                self._fired.add((job, entry.due_at))
        if len(lines) > MOST_LINES:
            self._shorten(lines, len(lines) - MOST_LINES)

    def _shorten(self, lines: list[Entry], spare: int) -> None:
        """Drop the oldest. A run that is not finished keeps its line: what fires next depends on it (C-7)."""
        place = 0
        while spare and place < len(lines):
            if self._is_unfinished(lines[place]):
                place += 1
            else:
                self._drop(lines.pop(place))
                spare -= 1

    def recent(self, job: JobId) -> tuple[Past, ...]:
        found: list[Past] = []
        state_of = self._state_of
        for line in reversed(self._by_job.get(job, ())):
            run_id = line.run_id
            state = None if run_id is None else state_of(run_id)
            if run_id is not None and state is not None:
                found.append(Past(run_id, line.due_at, line.at, state))
                if len(found) == MAX_RECENT:
                    break
        return tuple(found)

    def last(self, job: JobId) -> Entry | None:
        """The latest line whose run has ended."""
        for line in reversed(self._by_job.get(job, ())):
            if line.run_id is not None and self._state_of(line.run_id) in FINAL_STATES:
                return self._shown(line)
        return None

    def page(self, query: LogQuery) -> LogPage:
        upto = NEVER if query.cursor is None else position(query.cursor)
        found = list(islice(self._upto(query.job, upto), query.limit + 1))
        cursor = str(found[query.limit].number) if len(found) > query.limit else None
        return LogPage(tuple(map(self._shown, found[: query.limit])), cursor)

    def _upto(self, job: JobId | None, upto: int) -> Iterator[Entry]:
        """Lines with no greater number, the newest first."""
        if job is None:
            return (line for line in reversed(self._lines.values()) if line.number <= upto)
        lines = self._by_job.get(job, [])
        end = bisect_right(lines, upto, key=lambda line: line.number)
        return (lines[place] for place in range(end - 1, -1, -1))

    def _shown(self, line: Entry) -> Entry:
        view = None if line.run_id is None else self._view_of(line.run_id)
        if view is None:
            return line
        return msgspec.structs.replace(
            line,
            state=view.state,
            attempts=view.attempt,
            started_at=view.started_at,
            finished_at=view.finished_at,
            outcome=None if view.outcome is None else summary_of(view.outcome),
        )

    def added(self, job: JobId) -> None:
        """A job of this id is there; one of the same id may have been removed before (C-12)."""
        if job in self._by_job and job in self._removed:
            self._removed.remove(job)

    def removed(self, job: JobId) -> None:
        """The job is gone; its log stays, but not the logs of any number of such jobs."""
        if job not in self._by_job:
            return
        self._removed.append(job)
        if len(self._removed) > self._most_removed:
            self._forget(self._removed.popleft())

    def _forget(self, job: JobId) -> None:
        for line in self._by_job.pop(job, ()):
            self._drop(line)

    def prune(self, before: Instant) -> None:
        """Forget lines from before then, but for those whose runs are not finished."""
        past: list[Entry] = []
        for line in self._lines.values():
            if line.at > before:
                break
            if not self._is_unfinished(line):
                past.append(line)
        for line in past:
            lines = self._by_job[line.job]
            lines.remove(line)
            if not lines:
                del self._by_job[line.job]
            self._drop(line)
        while self._removed and self._removed[0] not in self._by_job:
            self._removed.popleft()

    def _is_unfinished(self, line: Entry) -> bool:
        if line.run_id is None:
            return False
        state = self._state_of(line.run_id)
        return state is not None and state not in FINAL_STATES

    def _drop(self, line: Entry) -> None:
        del self._lines[line.number]
        if line.run_id is not None:
            self._fired.discard((line.job, line.due_at))
