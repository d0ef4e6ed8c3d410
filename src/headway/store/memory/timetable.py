"""The jobs, where each stands in time, and which is due next."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TypeAlias

import msgspec

from headway.model.errors import InvalidInput
from headway.model.job import Advance, Ending, Job, JobRecord, Tally, Ticking
from headway.model.run import AgentName, JobId, Run
from headway.model.time import Instant
from headway.ports import Admission, DueJobs, JobPage, JobQuery
from headway.store.codec import job_cursor, read_job_cursor
from headway.store.memory.log import JobLog
from headway.store.memory.outbox import MemoryOutbox
from headway.store.tallies import tallied

_SPARE = 64
"""How many outdated instants may always wait to be met."""


class _Kept(msgspec.Struct, eq=False):
    """A job as it is now."""

    job: Job
    ticking: Ticking
    mark: int
    """Which of the instants at which it was to be due counts: that of its latest change."""

    @property
    def due_at(self) -> Instant | None:
        return self.ticking.due_at if self.job.enabled else None


_Due: TypeAlias = tuple[Instant, int, JobId]
_Name: TypeAlias = tuple[AgentName, str]


class MemoryTimetable:
    """Keeps jobs by their ids, and a heap of the instants at which they are due.

    A change adds an instant and leaves the old one in the heap, to be dropped when it is met or when there are too
    many: so a firing costs the same however many jobs there are.
    """

    def __init__(
        self,
        log: JobLog,
        outbox: MemoryOutbox,
        admit: Callable[[Run], Admission],
        changed: Callable[[], None],
    ) -> None:
        self._log = log
        self._outbox = outbox
        self._admit = admit
        self._changed = changed
        self._jobs: dict[JobId, _Kept] = {}
        self._names: dict[_Name, JobId] = {}
        self._sorted: list[_Name] | None = None
        """The names in order; None if they have changed since."""
        self._tallies: dict[JobId, Tally] = {}
        self._due: list[_Due] = []
        self._marks = 0
        self._settled: dict[JobId, None] = {}
        """Enabled jobs that are not due at any time."""

    def add(self, job: Job, ticking: Ticking) -> bool:
        if job.id in self._jobs or (job.agent, job.name) in self._names:
            return False
        self._name(job)
        self._keep(job, ticking, 1)
        self._log.added(job.id)
        self._changed()
        return True

    def change(self, job: Job, ticking: Ticking) -> bool:
        kept = self._jobs.get(job.id)
        if kept is None or kept.ticking.version != ticking.version:
            return False
        before, after = (kept.job.agent, kept.job.name), (job.agent, job.name)
        if before != after:
            if after in self._names:
                raise InvalidInput("name", job.name, "a name that no other job of the agent has")
            del self._names[before]
            self._name(job)
        self._keep(job, ticking, ticking.version + 1)
        self._changed()
        return True

    def remove(self, job_id: JobId) -> bool:
        if job_id not in self._jobs:
            return False
        self._drop(job_id)
        self._changed()
        return True

    def find(self, job_id: JobId) -> JobRecord | None:
        kept = self._jobs.get(job_id)
        return None if kept is None else self._whole(kept)

    def find_named(self, agent: AgentName, name: str) -> JobRecord | None:
        job_id = self._names.get((agent, name))
        return None if job_id is None else self.find(job_id)

    def page(self, query: JobQuery) -> JobPage:
        if self._sorted is None:
            self._sorted = sorted(self._names)
        names = self._sorted
        begin = 0
        if query.cursor is not None:
            begin = bisect_right(names, read_job_cursor(query.cursor))
        matching = (
            kept
            for place in range(begin, len(names))
            if _matches(query, (kept := self._jobs[self._names[names[place]]]).job)
        )
        found = list(islice(matching, query.limit + 1))
        shown = found[: query.limit]
        cursor = None
        if len(found) > len(shown):
            cursor = job_cursor(shown[-1].job.agent, shown[-1].job.name)
        return JobPage(tuple(map(self._whole, shown)), cursor)

    def due(self, now: Instant, most: int, abilities: Collection[str]) -> DueJobs:
        due: list[_Kept] = []
        met: list[_Due] = []
        next_at: Instant | None = None
        while self._due:
            first = heappop(self._due)
            kept = self._jobs.get(first[2])
            if kept is None or kept.mark != first[1]:
                continue
            met.append(first)
            if kept.job.needs and kept.job.needs not in abilities:
                continue
            if first[0] > now or len(due) == most:
                next_at = first[0]
                break
            due.append(kept)
        for instant in met:
            heappush(self._due, instant)
        more = next_at is not None and next_at <= now
        return DueJobs(tuple(map(self._record, due)), next_at, more)

    def settled(self, most: int) -> Sequence[JobRecord]:
        return [self._record(self._jobs[job_id]) for job_id in islice(self._settled, most)]

    def tally(self, endings: Sequence[Ending]) -> Mapping[JobId, int]:
        counted: dict[JobId, int] = {}
        for ending in endings:
            kept = self._jobs.get(ending.job)
            if kept is not None:
                tally = tallied(self._tallies.get(ending.job), ending, kept.ticking.since)
                self._tallies[ending.job] = tally
                counted[ending.job] = tally.failed
        return counted

    def advance(self, advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        answers: list[tuple[Admission, ...] | None] = []
        any_earlier = False
        for advance in advances:
            admissions, earlier = self._advance(advance)
            answers.append(admissions)
            any_earlier = any_earlier or earlier
        if any_earlier:
            self._changed()
        return answers

    def _advance(self, advance: Advance) -> tuple[tuple[Admission, ...] | None, bool]:
        """What became of its runs, and whether all must know: it is due earlier, or enabled or there no more."""
        kept = self._jobs.get(advance.job)
        if (
            kept is None
            or kept.ticking.version != advance.version
            or self._log.has_fired(advance.job, advance.entries)
        ):
            return None, False
        admissions = tuple(map(self._admit, advance.runs))
        self._log.append(advance.job, advance.entries)
        for notice in advance.notices:
            self._outbox.put(notice)
        if advance.delete:
            self._drop(advance.job)
            return admissions, True
        before = kept.due_at
        job = kept.job
        if job.enabled is not advance.enabled:
            job = msgspec.structs.replace(job, enabled=advance.enabled)
        due_at = self._keep(job, advance.ticking, advance.version + 1)
        sooner = due_at is not None and (before is None or due_at < before)
        return admissions, sooner or job.enabled is not kept.job.enabled

    def _name(self, job: Job) -> None:
        self._names[job.agent, job.name] = job.id
        self._sorted = None

    def _keep(self, job: Job, ticking: Ticking, version: int) -> Instant | None:
        """Keep a job as it is now; answers when it is due."""
        mark = self._marks = self._marks + 1
        kept = _Kept(job, msgspec.structs.replace(ticking, version=version), mark)
        self._jobs[job.id] = kept
        due_at = kept.due_at
        if due_at is None and job.enabled:
            self._settled[job.id] = None
        else:
            self._settled.pop(job.id, None)
        if due_at is not None:
            heappush(self._due, (due_at, mark, job.id))
            if len(self._due) > 2 * len(self._jobs) + _SPARE:
                self._due = [due for due in self._due if self._counts(due)]
                heapify(self._due)
        return due_at

    def _counts(self, due: _Due) -> bool:
        kept = self._jobs.get(due[2])
        return kept is not None and kept.mark == due[1]

    def _drop(self, job_id: JobId) -> None:
        job = self._jobs.pop(job_id).job
        del self._names[job.agent, job.name]
        self._sorted = None
        self._settled.pop(job_id, None)
        self._tallies.pop(job_id, None)
        self._log.removed(job_id)

    def _record(self, kept: _Kept) -> JobRecord:
        job_id = kept.job.id
        tally = self._tallies.get(job_id)
        return JobRecord(kept.job, kept.ticking, self._log.recent(job_id), tally=tally)

    def _whole(self, kept: _Kept) -> JobRecord:
        return msgspec.structs.replace(self._record(kept), last=self._log.last(kept.job.id))


def _matches(query: JobQuery, job: Job) -> bool:
    return (
        (query.agent is None or job.agent == query.agent)
        and (query.enabled is None or job.enabled is query.enabled)
        and (query.heartbeats is None or (job.heartbeat is not None) is query.heartbeats)
    )
