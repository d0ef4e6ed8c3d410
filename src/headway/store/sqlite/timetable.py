"""Jobs, where each stands in time, and the log of their firings. How a job goes on is in `advances`."""

from collections.abc import Sequence
from typing import cast

import msgspec

from headway.model.job import Ending, Entry, Job, JobRecord, Past, Tally, Ticking
from headway.model.run import AgentName, JobId, RunId
from headway.model.time import Instant
from headway.model.words import Fired, State
from headway.ports import (
    DueJobs,
    Hint,
    JobPage,
    JobQuery,
    LogPage,
    LogQuery,
)
from headway.store.codec import (
    decode_entry_outcome,
    decode_job,
    decode_tally,
    decode_text,
    encode_job,
    encode_tally,
    encode_text,
    job_cursor,
    read_job_cursor,
)
from headway.store.sqlite.database import Column, Database
from headway.store.sqlite.node import Node
from headway.store.sqlite.reading import position
from headway.store.sqlite.statements import STATEMENTS
from headway.store.tallies import tallied

_FIRST = -(1 << 63)
_LAST = (1 << 63) - 1


class _JobRow(msgspec.Struct, eq=False, array_like=True, gc=False):
    number: int
    body: str
    enabled: int
    due_at: Instant | None
    version: int
    next_at: Instant | None
    wake_at: Instant | None
    claimed_until: Instant | None
    since: Instant
    paused: str | None
    recent: str
    tally: str | None = None

    def record(self) -> JobRecord:
        ticking = Ticking(
            self.version,
            self.next_at,
            self.wake_at,
            self.claimed_until,
            self.since,
            decode_text(self.paused) if self.paused else "",
        )
        job = decode_job(self.body, enabled=bool(self.enabled))
        tally = None if self.tally is None else decode_tally(self.tally)
        return JobRecord(job, ticking, _read_past(self.recent), tally=tally)


_read_jobs = msgspec.json.Decoder(list[_JobRow]).decode
_read_tallies = msgspec.json.Decoder(list[tuple[JobId, Instant, str | None]]).decode
_read_past = msgspec.json.Decoder(tuple[Past, ...]).decode

_RECORDS = f"{STATEMENTS['job_records'].text} WHERE jobs.number IN"
_LINES = f"{STATEMENTS['log_lines'].text} WHERE firings.number IN"


def due_at_of(ticking: Ticking, *, enabled: bool) -> Instant | None:
    return ticking.due_at if enabled else None


def _rule_columns(job: Job) -> tuple[Column, ...]:
    return (
        job.agent,
        job.name,
        int(job.heartbeat is not None),
        int(job.delete_after_run),
        job.needs,
        encode_job(job),
    )


def time_columns(ticking: Ticking, *, enabled: bool) -> tuple[Column, ...]:
    return (
        int(enabled),
        due_at_of(ticking, enabled=enabled),
        ticking.next_at,
        ticking.wake_at,
        ticking.claimed_until,
        ticking.since,
        encode_text(ticking.paused) if ticking.paused else None,
    )


def tell_all(node: Node) -> None:
    """The next instant may be another: for all nodes, and for the timekeeper of this one."""
    node.hint_all(Hint.JOBS)
    node.hint_me(Hint.JOBS)


def add_job(database: Database, node: Node, job: Job, ticking: Ticking) -> bool:
    times = time_columns(ticking, enabled=job.enabled)
    added = database.run("add_job", job.id, *_rule_columns(job), *times) == 1
    if added:
        tell_all(node)
    return added


def change_job(database: Database, node: Node, job: Job, ticking: Ticking) -> bool | None:
    """False: its version is another. None: another job of the agent has the name."""
    known = database.row("version_of_job", job.id)
    if known is None or known[0] != ticking.version:
        return False
    taken = database.row("name_taken", job.agent, job.name, job.id)
    if taken is not None and taken[0]:
        return None
    times = time_columns(ticking, enabled=job.enabled)
    database.run("change_job", *_rule_columns(job), *times, job.id)
    tell_all(node)
    return True


def remove_job(database: Database, node: Node, job_id: JobId) -> bool:
    removed = database.run("remove_job", job_id) == 1
    if removed:
        tell_all(node)
    return removed


def tally(database: Database, endings: Sequence[Ending]) -> dict[JobId, int]:
    """Count how runs ended; of jobs that are gone nothing is counted."""
    tallies: dict[JobId, Tally | None] = {}
    since: dict[JobId, Instant] = {}
    wanted = [(job,) for job in dict.fromkeys(ending.job for ending in endings)]
    for (text,) in database.read("tallies_of", wanted):
        for job, enabled_at, body in _read_tallies(cast(str, text)):
            since[job] = enabled_at
            tallies[job] = None if body is None else decode_tally(body)
    counted: dict[JobId, Tally] = {}
    for ending in endings:
        if ending.job in since:
            tallied_so_far = counted.get(ending.job) or tallies[ending.job]
            counted[ending.job] = tallied(tallied_so_far, ending, since[ending.job])
    if counted:
        database.write("keep_tallies", [(job, encode_tally(one)) for job, one in counted.items()])
    return {job: one.failed for job, one in counted.items()}


# Reading.


def find_job(database: Database, job_id: JobId) -> JobRecord | None:
    return _found(database, "job_of_id", job_id)


def find_job_named(database: Database, agent: AgentName, name: str) -> JobRecord | None:
    return _found(database, "job_named", agent, name)


def _found(database: Database, which: str, *values: Column) -> JobRecord | None:
    records = _readable(_records(database, STATEMENTS[which].text, values))
    return _with_last(database, records)[0] if records else None


def _records(database: Database, which: str, values: Sequence[Column]) -> list[_JobRow]:
    """The jobs whose numbers a statement answers, in no order."""
    ((text,),) = database.plain(f"{_RECORDS} ({which})", values)
    return _read_jobs(cast(str, text))


def list_jobs(database: Database, query: JobQuery) -> JobPage:
    """By agent and name; a page goes on after the last one of the page before."""
    conditions = ["TRUE"]
    values: list[Column] = []
    if query.cursor is not None:
        conditions.append("(agent, name) > (?, ?)")
        values += read_job_cursor(query.cursor)
    if query.agent is not None:
        conditions.append("agent = ?")
        values.append(query.agent)
    if query.enabled is not None:
        conditions.append("enabled = ?")
        values.append(int(query.enabled))
    if query.heartbeats is not None:
        conditions.append("heartbeat = ?")
        values.append(int(query.heartbeats))
    which = f"SELECT number FROM jobs WHERE {' AND '.join(conditions)} ORDER BY agent, name LIMIT ?"
    rows = _records(database, which, (*values, query.limit + 1))
    records = _readable(rows)
    records.sort(key=lambda record: (record.job.agent, record.job.name))
    page = records[: query.limit]
    cursor = None
    if len(rows) > query.limit and page:
        cursor = job_cursor(page[-1].job.agent, page[-1].job.name)
    return JobPage(tuple(_with_last(database, page)), cursor)


def due_jobs(database: Database, now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
    """Those that are due, but for those that this version cannot read (N-20)."""
    able = msgspec.json.encode(list(abilities)).decode()
    which = STATEMENTS["jobs_due_by"].text
    jobs: list[JobRecord] = []
    after = (_FIRST, _FIRST)
    while len(jobs) < most:
        asked = most - len(jobs)
        rows = _records(database, which, (now, *after, able, asked))
        if not rows:
            break
        rows.sort(key=lambda row: (row.due_at, row.number))
        jobs += _readable(rows)
        after = (cast(int, rows[-1].due_at), rows[-1].number)
        if len(rows) < asked:
            break
    following = database.row("next_job", *after, able)
    next_at = None if following is None else cast(int, following[0])
    return DueJobs(tuple(jobs), next_at, next_at is not None and next_at <= now)


def settled_jobs(database: Database, most: int) -> list[JobRecord]:
    rows = _records(database, STATEMENTS["jobs_settled"].text, (most,))
    rows.sort(key=lambda row: row.number)
    return _readable(rows)


def _readable(rows: Sequence[_JobRow]) -> list[JobRecord]:
    """What a newer version has written is for nodes of that version."""
    records: list[JobRecord] = []
    for row in rows:
        try:
            records.append(row.record())
        except msgspec.ValidationError:
            continue
    return records


def _with_last(database: Database, records: Sequence[JobRecord]) -> list[JobRecord]:
    """Each with the latest line whose run has ended."""
    numbers = database.read("last_lines", [(record.job.id,) for record in records])
    wanted = [cast(int, number) for (number,) in numbers if number is not None]
    lines = {line.job: line for line in _lines_of(database, wanted)}
    return [msgspec.structs.replace(record, last=lines.get(record.job.id)) for record in records]


def _lines_of(database: Database, numbers: Sequence[int]) -> list[Entry]:
    if not numbers:
        return []
    which = "SELECT value FROM json_each(?)"
    return _lines(database, which, (msgspec.json.encode(numbers).decode(),))


def job_log(database: Database, query: LogQuery) -> LogPage:
    """Newest first; the cursor is the number of the line that the next page begins with."""
    upto = _LAST if query.cursor is None else position(query.cursor)
    which = STATEMENTS["lines_of_all" if query.job is None else "lines_of_job"].text
    of_job = () if query.job is None else (query.job,)
    entries = _lines(database, which, (upto, query.limit + 1, *of_job))
    cursor = str(entries[query.limit].number) if len(entries) > query.limit else None
    return LogPage(tuple(entries[: query.limit]), cursor)


def _lines(database: Database, which: str, values: Sequence[Column]) -> list[Entry]:
    """The lines whose numbers a statement answers, the newest first."""
    rows = database.plain(f"{_LINES} ({which}) ORDER BY firings.number DESC", values)
    return [_entry(row) for row in rows]


def _entry(row: tuple[Column, ...]) -> Entry:
    job, due_at, kind, at, run_id, reason, count, number = row[:8]
    state, attempts, started_at, finished_at, outcome = row[8:]
    return Entry(
        JobId(cast(str, job)),
        cast(int, due_at),
        Fired(cast(str, kind)),
        cast(int, at),
        cast(RunId | None, run_id),
        decode_text(cast(str, reason)) if reason else "",
        cast(int, count),
        cast(int, number),
        None if state is None else State(cast(str, state)),
        cast(int, attempts),
        cast(int | None, started_at),
        cast(int | None, finished_at),
        None if outcome is None else decode_entry_outcome(cast(str, outcome)),
    )


# Texts.


def keep_text(database: Database, name: str, text: str | None) -> None:
    if text is None:
        database.run("forget_text", name)
    else:
        database.run("keep_text", name, encode_text(text))


def text_of(database: Database, name: str) -> str | None:
    row = database.row("text_of", name)
    return None if row is None else decode_text(cast(str, row[0]))
