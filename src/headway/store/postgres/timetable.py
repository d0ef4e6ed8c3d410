"""Jobs, where each stands in time, and the log of their firings (C-1, C-5, C-11)."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import asyncpg
import msgspec

from headway.model.errors import InvalidInput
from headway.model.job import (
    MAX_RECENT,
    Advance,
    Ending,
    Entry,
    Job,
    JobRecord,
    Past,
    Tally,
    Ticking,
)
from headway.model.outcome import Outcome
from headway.model.run import AgentName, JobId
from headway.model.settings import Settings
from headway.model.time import Instant
from headway.model.words import Fired, State
from headway.ports import (
    Admission,
    Clock,
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
from headway.store.postgres.admissions import AdmissionBatch
from headway.store.postgres.advances import ADVANCE, AdvanceBatch, Planned, parts_of
from headway.store.postgres.connections import Connections
from headway.store.postgres.cursors import position
from headway.store.postgres.hints import Hints
from headway.store.postgres.literals import Call
from headway.store.postgres.statements import statements
from headway.store.postgres.troubles import BAD_DATA
from headway.store.tallies import tallied

Keep = Callable[[str, Instant, dict[str, object]], Awaitable[None]]
Told = Callable[[AdmissionBatch, Sequence[asyncpg.Record]], None]

_LONG = 10.0
"""Seconds that a list may take."""
_LONG_AT_ONCE = 4
"""Of outcomes that are long so many are read together, and cut before the next."""
_read_pasts = msgspec.json.Decoder(tuple[Past, ...]).decode
_NONE_LONG: Mapping[str, Outcome] = MappingProxyType({})
_STATES = {str(state): state for state in State}


class PostgresTimetable:
    """The part of the store that knows what is to happen when."""

    def __init__(
        self,
        connections: Connections,
        schema: str,
        hints: Hints,
        *,
        settings: Settings,
        clock: Clock,
        told: Told,
        keep: Keep,
    ) -> None:
        self._connections = connections
        self._settings = settings
        self._clock = clock
        self._hints = hints
        self._told = told
        self._keep = keep
        self._sql = statements(schema)
        self._due = f"select * from {schema}.due_jobs_v1($1, $2, $3, {MAX_RECENT})"
        self._advance = Call(f"{schema}.advance_v1", *ADVANCE)

    # Jobs.

    async def add(self, job: Job, ticking: Ticking) -> bool:
        return await self._change("add_job", job.id, *_columns(job, ticking))

    async def change(self, job: Job, ticking: Ticking) -> bool:
        try:
            columns = (*_columns(job, ticking), ticking.version)
            return await self._change("change_job", job.id, *columns)
        except asyncpg.UniqueViolationError:
            raise InvalidInput(
                "name", job.name, f"a name that no other job of agent {job.agent} has"
            ) from None

    async def remove(self, job_id: JobId) -> bool:
        return await self._change("remove_job", job_id)

    async def _change(self, statement: str, job_id: JobId, *values: object) -> bool:
        """All nodes hear of it by the very transaction, unless many changes come at once."""
        channel, said = self._hints.by_commit(Hint.JOBS)
        try:
            rows = await self._connections.call(
                self._sql[statement], channel, said, job_id, *values
            )
        except asyncpg.UniqueViolationError:
            raise
        except BAD_DATA as error:
            raise InvalidInput("job", job_id, f"text that can be stored ({error})") from None
        if not rows:
            return False
        if channel is None:
            self._hints.tell_all(Hint.JOBS)
        self._hints.tell(self._hints.node, Hint.JOBS)
        return True

    async def find(self, job_id: JobId) -> JobRecord | None:
        return await self._find("j.id = $2", job_id)

    async def find_named(self, agent: AgentName, name: str) -> JobRecord | None:
        return await self._find("j.agent = $2 and j.name = $3", agent, name)

    async def _find(self, wanted: str, *values: object) -> JobRecord | None:
        statement = self._sql["jobs"].replace("{wanted}", wanted)
        try:
            rows = await self._connections.call(statement, MAX_RECENT, *values)
        except BAD_DATA:
            return None
        records = _records(rows, await self._long_outcomes(rows))
        return records[0] if records else None

    async def list(self, query: JobQuery) -> JobPage:
        """One page, from jobs_name in its order."""
        values: list[object] = [MAX_RECENT, query.limit + 1]
        wanted = ["true"]
        if query.cursor is not None:
            values += read_job_cursor(query.cursor)
            wanted.append("(j.agent, j.name) > ($3, $4)")
        for column, value in (
            ("agent", query.agent),
            ("enabled", query.enabled),
            ("heartbeat", query.heartbeats),
        ):
            if value is not None:
                values.append(value)
                wanted.append(f"j.{column} = ${len(values)}")
        # Only of those that are shown the latest runs are looked up.
        page = f"{' and '.join(wanted)} order by j.agent, j.name limit $2"
        statement = self._sql["jobs"].replace("{wanted}", page)
        try:
            rows = await self._connections.call(statement, *values, within=_LONG)
        except BAD_DATA:
            return JobPage(())
        shown = rows[: query.limit]
        records = tuple(_records(shown, await self._long_outcomes(shown)))
        cursor = None
        if len(rows) > query.limit:
            last = rows[query.limit - 1]
            cursor = job_cursor(last["agent"], last["name"])
        return JobPage(records, cursor)

    # Firings.

    async def due(self, now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
        rows = await self._connections.call(self._due, now, most, list(abilities))
        next_at = rows.pop()["due_at"]
        more = len(rows) > most
        if more:
            next_at = rows[most]["due_at"]
        return DueJobs(tuple(_records(rows[:most])), next_at, more)

    async def settled(self, most: int) -> Sequence[JobRecord]:
        rows = await self._connections.call(self._sql["settled_jobs"], MAX_RECENT, most)
        return _records(rows)

    async def advance(self, advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        answers: dict[int, tuple[Admission, ...] | None] = {}
        for part in parts_of(Planned(*one) for one in enumerate(advances)):
            await self._advance_part(part, answers)
        return [answers[place] for place in range(len(advances))]

    async def _advance_part(
        self, part: Sequence[Planned], answers: dict[int, tuple[Admission, ...] | None]
    ) -> None:
        node = self._hints.node
        now = self._clock.now()
        try:
            batch = AdvanceBatch(part, self._settings, now, claims=node != 0)
            columns = self._advance.values(batch.columns(node))
            rows = await self._connections.call(self._advance.statement, *columns)
        except (*BAD_DATA, TypeError, ValueError, OverflowError) as error:
            await self._advance_halves(part, answers, error)
            return
        told = [row for row in rows if row["kind"] not in {"stale", "sooner"}]
        self._told(batch.admissions, told)
        answers |= batch.answers(row["ord"] for row in rows if row["kind"] == "stale")
        if any(row["kind"] == "sooner" for row in rows):
            self._hints.tell_all(Hint.JOBS)
            self._hints.tell(self._hints.node, Hint.JOBS)
        if batch.has_notices:
            self._hints.tell_all(Hint.ENDED)
            self._hints.tell(self._hints.node, Hint.ENDED)

    async def _advance_halves(
        self,
        part: Sequence[Planned],
        answers: dict[int, tuple[Admission, ...] | None],
        error: BaseException,
    ) -> None:
        """What was made already, or cannot be stored, fails alone, not its neighbours (C-5, N-15)."""
        if len(part) > 1:
            middle = len(part) // 2
            await self._advance_part(part[:middle], answers)
            await self._advance_part(part[middle:], answers)
            return
        place, advance = part[0]
        answers[place] = None
        if not isinstance(error, asyncpg.UniqueViolationError):
            fields: dict[str, object] = {
                "action": "Advance",
                "job": advance.job,
                "error": str(error),
            }
            await self._keep("not_stored", self._clock.now(), fields)

    async def tally(self, endings: Sequence[Ending]) -> Mapping[JobId, int]:
        """Read, count, and write what nobody has counted meanwhile; the rest once more."""
        left, counted = list(endings), dict[JobId, int]()
        while left:
            tallies: dict[JobId, Tally] = {}
            was: dict[JobId, str | None] = {}
            since: dict[JobId, Instant] = {}
            jobs = sorted({ending.job for ending in left})
            for job, enabled_at, body in await self._connections.call(self._sql["tallies"], jobs):
                was[job], since[job] = body, enabled_at
                if body is not None:
                    tallies[job] = decode_tally(body)
            for ending in left:
                if ending.job in since:
                    known = tallies.get(ending.job)
                    tallies[ending.job] = tallied(known, ending, since[ending.job])
            texts = [encode_tally(tallies[job]) for job in since]
            values = (list(since), texts, [was[job] for job in since])
            rows = await self._connections.call(self._sql["keep_tallies"], *values) if since else ()
            kept = {JobId(row["job"]) for row in rows}
            counted |= {job: tallies[job].failed for job in kept}
            left = [ending for ending in left if ending.job in since and ending.job not in kept]
        return counted

    async def log(self, query: LogQuery) -> LogPage:
        values: list[object] = [position(query.cursor), query.limit + 1]
        wanted = "true"
        if query.job is not None:
            values.append(query.job)
            wanted = "f.job = $3"
        statement = self._sql["job_log"].replace("{wanted}", wanted)
        try:
            rows = await self._connections.call(statement, *values, within=_LONG)
        except BAD_DATA:
            return LogPage(())
        cursor = str(rows[query.limit]["number"]) if len(rows) > query.limit else None
        shown = rows[: query.limit]
        long = await self._long_outcomes(shown)
        return LogPage(tuple(_entry(JobId(row["job"]), row, long) for row in shown), cursor)

    async def _long_outcomes(self, rows: Iterable[asyncpg.Record]) -> dict[str, Outcome]:
        """Those that were left out, cut: a page of the largest ones would fill the memory (C-11)."""
        runs = [row["run"] for row in rows if row["long"]]
        found: dict[str, Outcome] = {}
        for first in range(0, len(runs), _LONG_AT_ONCE):
            some = runs[first : first + _LONG_AT_ONCE]
            read = await self._connections.call(self._sql["outcomes"], some, within=_LONG)
            found.update((run, decode_entry_outcome(text)) for run, text in read)
        return found

    async def prune(self, before: Instant, most: int) -> int:
        """Forget lines of the log. Answers how many."""
        rows = await self._connections.call(self._sql["prune_log"], before, most, within=_LONG)
        return int(rows[0]["gone"])

    # Texts.

    async def keep_text(self, name: str, text: str | None) -> None:
        try:
            if text is None:
                await self._connections.call(self._sql["forget_text"], name)
            else:
                await self._connections.call(self._sql["keep_text"], name, encode_text(text))
        except BAD_DATA as error:
            raise InvalidInput("name", name, f"text that can be stored ({error})") from None

    async def text(self, name: str) -> str | None:
        try:
            rows = await self._connections.call(self._sql["text"], name)
        except BAD_DATA:
            return None
        return decode_text(rows[0]["text"]) if rows else None


def _columns(job: Job, ticking: Ticking) -> tuple[object, ...]:
    return (
        job.agent,
        job.name,
        job.heartbeat is not None,
        job.needs,
        encode_job(job),
        job.enabled,
        ticking.next_at,
        ticking.wake_at,
        ticking.claimed_until,
        ticking.since,
        encode_text(ticking.paused) if ticking.paused else None,
        ticking.due_at if job.enabled else None,
    )


def _records(
    rows: Iterable[asyncpg.Record], long: Mapping[str, Outcome] = _NONE_LONG
) -> list[JobRecord]:
    """Jobs as they were read. One that a newer version wrote may not be understood: it is for its nodes (N-20)."""
    records: list[JobRecord] = []
    for row in rows:
        (
            _,
            version,
            next_at,
            wake_at,
            claimed_until,
            since,
            enabled,
            paused,
            body,
            pasts,
            tally,
            *line,
        ) = row
        try:
            job = decode_job(body, enabled=enabled)
        except (msgspec.MsgspecError, ValueError):
            continue
        said = decode_text(paused) if paused else ""
        ticking = Ticking(version, next_at, wake_at, claimed_until, since, said)
        recent = _read_pasts(pasts) if pasts else ()
        last = _entry(job.id, row, long) if line and row["run"] is not None else None
        counted = None if tally is None else decode_tally(tally)
        records.append(JobRecord(job, ticking, recent, last, counted))
    return records


def _entry(job: JobId, row: asyncpg.Record, long: Mapping[str, Outcome]) -> Entry:
    run, reason, state, outcome = row["run"], row["reason"], row["state"], row["outcome"]
    return Entry(
        job,
        row["line_due_at"],
        Fired(row["kind"]),
        row["at"],
        run,
        decode_text(reason) if reason else "",
        row["count"],
        row["number"],
        None if state is None else _STATES[state],
        row["attempt"] or 0,
        row["started_at"],
        row["finished_at"],
        long.get(run) if outcome is None else decode_entry_outcome(outcome),
    )
