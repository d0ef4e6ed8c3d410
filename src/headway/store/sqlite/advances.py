"""How jobs go on: their runs, lines of their logs, and where each stands afterwards, all in one step.

Nobody locks a job. Who decides about it has read its version before, and what he decided is kept only while that
is still the version (C-5): of two nodes that read the same due job one is quicker, and the other's decision is
dropped whole.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from headway.model.job import Advance, Entry
from headway.model.run import JobId
from headway.model.time import Instant
from headway.ports import Admission, Hint
from headway.store.codec import encode_fields, encode_text
from headway.store.sqlite import intake
from headway.store.sqlite.database import Column, Database, is_of_one_request
from headway.store.sqlite.keeping import keep_delivery
from headway.store.sqlite.node import Node
from headway.store.sqlite.timetable import due_at_of, tell_all, time_columns


class _Stand(msgspec.Struct, eq=False, array_like=True, gc=False):
    """Where a job stands before it goes on."""

    job: JobId
    version: int
    due_at: Instant | None


_read_stands = msgspec.json.Decoder(list[_Stand]).decode
_read_fired = msgspec.json.Decoder(list[tuple[JobId, Instant]]).decode


def advance(
    database: Database, node: Node, advances: Sequence[Advance], now: Instant
) -> list[tuple[Admission, ...] | None]:
    """Keep what is decided by the versions that still hold, all of it with few statements.

    An `IntegrityError` says that one of the runs is there already.
    """
    return _Advancing(database, node, now).all(advances)


def advance_apart(
    database: Database, node: Node, advances: Sequence[Advance], now: Instant
) -> list[tuple[Admission, ...] | None]:
    """One job after the other, because something of one cannot be written: its neighbours go on."""
    answers: list[tuple[Admission, ...] | None] = []
    for asked in advances:
        database.save()
        try:
            answers += advance(database, node, [asked], now)
        except Exception as error:
            if not is_of_one_request(error):
                raise
            database.undo()
            answers.append(None)
            if not isinstance(error, sqlite3.IntegrityError):
                reason = f"{type(error).__name__}: {error}"
                fields = encode_fields({"action": "Advance", "job": asked.job, "error": reason})
                database.run("keep_event", now, "write_failed", fields)
        else:
            database.release()
    return answers


class _Advancing:
    """One batch: everything is read first, then compared, then written."""

    def __init__(self, database: Database, node: Node, now: Instant) -> None:
        self._database = database
        self._node = node
        self._now = now
        self._stands: dict[JobId, _Stand] = {}
        self._fired: set[tuple[JobId, Instant]] = set()
        self._runs: list[intake.Asked] = []
        self._lines: list[tuple[Column, ...]] = []
        self._jobs: dict[JobId, tuple[Column, ...]] = {}
        self._deleted: list[tuple[Column]] = []

    def all(self, advances: Sequence[Advance]) -> list[tuple[Admission, ...] | None]:
        self._read(advances)
        kept = [self._take(asked) for asked in advances]
        admissions = self._write()
        answers: list[tuple[Admission, ...] | None] = []
        for asked, taken in zip(advances, kept, strict=True):
            if not taken:
                answers.append(None)
                continue
            for notice in asked.notices:
                keep_delivery(self._database, self._node, notice)
                self._node.hint_me(Hint.ENDED)
            answers.append(tuple(next(admissions) for _ in asked.runs))
        return answers

    def _read(self, advances: Sequence[Advance]) -> None:
        wanted = [(job,) for job in dict.fromkeys(asked.job for asked in advances)]
        for (text,) in self._database.read("standing_jobs", wanted):
            for stand in _read_stands(cast(str, text)):
                self._stands[stand.job] = stand
        firings = [pair for asked in advances for pair in _made(asked)]
        for (text,) in self._database.read("fired_already", firings):
            self._fired.update(_read_fired(cast(str, text)))

    def _take(self, asked: Advance) -> bool:
        """Whether it holds; then it is written with the others, and the job stands where it says."""
        stand = self._stands.get(asked.job)
        if stand is None or stand.version != asked.version:
            return False
        made = _made(asked)
        if len(set(made)) < len(made) or not self._fired.isdisjoint(made):
            # The firing has made its run: the last line of defence, if a version ever failed to tell.
            return False
        self._fired.update(made)
        for run, claim in zip(asked.runs, asked.claims, strict=True):
            self._runs.append(intake.Asked(run, retry=False, claim=claim))
        self._lines += [_line_columns(entry) for entry in asked.entries]
        if asked.delete:
            del self._stands[asked.job]
            self._jobs.pop(asked.job, None)
            self._deleted.append((asked.job,))
            tell_all(self._node)
            return True
        due_at = due_at_of(asked.ticking, enabled=asked.enabled)
        sooner = due_at is not None and (stand.due_at is None or due_at < stand.due_at)
        if sooner or not asked.enabled:
            tell_all(self._node)
        stand.version += 1
        stand.due_at = due_at
        times = time_columns(asked.ticking, enabled=asked.enabled)
        self._jobs[asked.job] = (asked.job, *times, stand.version)
        return True

    def _write(self) -> Iterator[Admission]:
        database = self._database
        admissions: list[Admission] = []
        # First the runs: if one is there already, nothing else was written yet.
        if self._runs:
            admissions = intake.admit(database, self._node, self._runs, self._now)
        database.write("add_firings", self._lines)
        database.write("advance_jobs", list(self._jobs.values()))
        database.write("delete_jobs", self._deleted)
        return iter(admissions)


def _made(asked: Advance) -> list[tuple[JobId, Instant]]:
    """The firings that make runs."""
    return [(entry.job, entry.due_at) for entry in asked.entries if entry.run_id is not None]


def _line_columns(entry: Entry) -> tuple[Column, ...]:
    return (
        entry.job,
        entry.due_at,
        entry.kind,
        entry.at,
        entry.run_id,
        encode_text(entry.reason) if entry.reason else None,
        entry.count,
    )
