"""Jobs that go on, in columns: as the function `advance_v1` takes them."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headway.model.job import Advance
from headway.model.settings import Settings
from headway.model.time import Instant
from headway.ports import Admission
from headway.store.codec import encode_text
from headway.store.postgres.admissions import AdmissionBatch, Asked
from headway.store.postgres.literals import ADMIT
from headway.store.postgres.records import delivery_row

_MOST_JOBS = 500
_MOST_RUNS = 1_000
_MOST_BYTES = 4_000_000
"""A batch must be written within a moment: the rest goes into the next one."""

_TEXT, _INTEGER, _BIGINT, _BOOLEAN = "text[]", "integer[]", "bigint[]", "boolean[]"

ADVANCE = (
    "bigint", "bigint",
    _TEXT, _BIGINT, _BIGINT, _BIGINT, _BIGINT, _BIGINT, _TEXT, _BOOLEAN, _BIGINT, _BOOLEAN,
    _INTEGER, _TEXT, _BIGINT, _TEXT, _BIGINT, _TEXT, _TEXT, _INTEGER,
    _INTEGER, _TEXT, _TEXT, _BIGINT, _TEXT, _TEXT, _TEXT, _BIGINT,
    _INTEGER, _BOOLEAN, *ADMIT[2:],
)  # fmt: skip
"""The parameters of `advance_v1`."""


class Planned(NamedTuple):
    """An advance, and its place among those that the caller gave."""

    place: int
    advance: Advance


class AdvanceBatch:
    """Jobs that go on together, each at most once. Runs, lines and notices keep the order in which they came."""

    def __init__(
        self, planned: Sequence[Planned], settings: Settings, now: Instant, *, claims: bool
    ) -> None:
        self._planned = planned
        self._now = now
        self._jobs: tuple[list[object], ...] = tuple([] for _ in range(10))
        self._entries: tuple[list[object], ...] = tuple([] for _ in range(8))
        self._notices: tuple[list[object], ...] = tuple([] for _ in range(8))
        self._runs_of: list[int] = []
        asked: list[Asked] = []
        loop = asyncio.get_running_loop()
        by_id = sorted(advance.job for _, advance in planned)
        self._numbers = {job: number for number, job in enumerate(by_id, 1)}
        rows: list[tuple[object, ...]] = [()] * len(planned)
        for _, advance in planned:
            number = self._numbers[advance.job]
            rows[number - 1] = _job_row(advance)
            for run, claim in zip(advance.runs, _claims(advance), strict=True):
                self._runs_of.append(number)
                asked.append(Asked(run, False, claim and claims, loop.create_future()))
            for entry in advance.entries:
                reason = encode_text(entry.reason) if entry.reason else None
                what = (entry.job, entry.due_at, entry.kind, entry.at, entry.run_id, reason)
                _append(self._entries, (number, *what, entry.count))
            for notice in advance.notices:
                _append(self._notices, (number, *delivery_row(notice)))
        for row in rows:
            _append(self._jobs, row)
        self.admissions = AdmissionBatch(asked, settings, now)

    @property
    def has_notices(self) -> bool:
        return bool(self._notices[0])

    def columns(self, node: int) -> list[object]:
        """The arguments of `advance_v1`."""
        first, now, *runs = self.admissions.columns(node, self._now)
        claims = [one.claim for one in self.admissions.asked]
        logs = (*self._entries, *self._notices)
        return [first, now, *self._jobs, *logs, self._runs_of, claims, *runs]

    def answers(self, stale: Iterable[int]) -> dict[int, tuple[Admission, ...] | None]:
        """By the caller's places: what became of the runs of each, None for those that did not hold."""
        found: list[list[Admission] | None] = [[] for _ in self._planned]
        for number in stale:
            found[number - 1] = None
        for number, one in zip(self._runs_of, self.admissions.asked, strict=True):
            admissions = found[number - 1]
            if admissions is not None:
                admissions.append(one.answer.result())
        answers: dict[int, tuple[Admission, ...] | None] = {}
        for place, advance in self._planned:
            admissions = found[self._numbers[advance.job] - 1]
            answers[place] = None if admissions is None else tuple(admissions)
        return answers


def parts_of(advances: Iterable[Planned]) -> list[list[Planned]]:
    """The advances in parts that can be written together: mostly one. A job is in a part only once."""
    parts: list[list[Planned]] = []
    while rest := list(advances):
        advances = []
        part: list[Planned] = []
        jobs: set[str] = set()
        runs = size = 0
        for one in rest:
            advance = one.advance
            full = len(part) >= _MOST_JOBS or runs >= _MOST_RUNS or size > _MOST_BYTES
            if full or advance.job in jobs:
                advances.append(one)
                continue
            jobs.add(advance.job)
            part.append(one)
            runs += len(advance.runs)
            size += sum(len(run.text) for run in advance.runs)
        parts.append(part)
    return parts


def _job_row(advance: Advance) -> tuple[object, ...]:
    ticking = advance.ticking
    goes_on = advance.enabled and not advance.delete
    return (
        advance.job,
        advance.version,
        ticking.next_at,
        ticking.wake_at,
        ticking.claimed_until,
        ticking.since,
        encode_text(ticking.paused) if ticking.paused else None,
        advance.enabled,
        ticking.due_at if goes_on else None,
        advance.delete,
    )


def _claims(advance: Advance) -> Sequence[bool]:
    """For each run whether its session is to be taken; where nothing is said, it is not."""
    return advance.claims or (False,) * len(advance.runs)


def _append(columns: tuple[list[object], ...], row: Sequence[object]) -> None:
    for column, value in zip(columns, row, strict=True):
        column.append(value)
