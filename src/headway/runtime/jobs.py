"""Jobs as people and programs handle them: adding, changing, pausing, running by hand, reading the log.

A change is made from what was read, and refused by the store if the job has changed since; then it is made again
from what the job is by now. So a change never undoes a firing, nor a firing a change.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from headway.core import declared
from headway.core import jobs as rules
from headway.core.firing import latest_start, run_now
from headway.core.heartbeat import next_wake
from headway.core.jobs import HEARTBEAT
from headway.model.errors import InvalidInput, JobNotFound, Unavailable, UnknownName
from headway.model.heartbeat import HeartbeatSettings
from headway.model.job import MAX_RECENT, Job, JobRecord, Ticking
from headway.model.run import AgentName, JobId, RunId
from headway.model.time import Instant
from headway.model.words import State
from headway.ports import Clock, JobPage, JobQuery, LogPage, LogQuery, Store
from headway.runtime.ids import RunIds, new_job_id
from headway.runtime.intake import Intake
from headway.runtime.looks import checklist_name
from headway.runtime.orders import Orders
from headway.runtime.timekeeper import Timekeeper
from headway.turn import current_turn

_TRIES = 20
_LINES = 500
_WAITING = frozenset({State.PENDING, State.QUEUED})

Change: TypeAlias = Callable[[JobRecord, Instant], tuple[Job, Ticking]]


class Jobs:
    """Keeps the jobs of a store."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: RunIds,
        *,
        intake: Intake,
        orders: Orders,
        timekeeper: Timekeeper,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._intake = intake
        self._orders = orders
        self._timekeeper = timekeeper

    async def add(self, fields: Mapping[str, object], zone: str) -> JobRecord:
        now = self._clock.wall()
        job = rules.new_job(new_job_id(), fields, now, zone)
        return await self._add(job, now)

    async def _add(self, job: Job, now: Instant) -> JobRecord:
        ticking = rules.first_ticking(job, now)
        if not await self._store.add_job(job, ticking):
            raise InvalidInput("name", job.name, f"one that no other job of agent {job.agent} has")
        self._timekeeper.look()
        return JobRecord(job, msgspec.structs.replace(ticking, version=1))

    async def put(self, job: Job) -> tuple[JobRecord, bool]:
        """Add a job that was read from a file, or put it in the place of the one that has its id or name."""
        now = self._clock.wall()
        known = await self._store.find_job(job.id)
        if known is None:
            known = await self._store.find_job_named(job.agent, job.name)
        if known is None:
            return await self._add(job, now), True

        def change(record: JobRecord, now: Instant) -> tuple[Job, Ticking]:
            kept = record.job
            new = msgspec.structs.replace(job, id=kept.id, created_at=kept.created_at)
            return new, rules.reticked(kept, new, record.ticking, now)

        changed = await self._change(known.job.id, change)
        if not changed.job.enabled:
            await self._stop_waiting(changed)
        return changed, False

    async def put_fields(self, fields: Mapping[str, object], zone: str) -> tuple[JobRecord, bool]:
        return await self.put(rules.new_job(new_job_id(), fields, self._clock.wall(), zone))

    async def known(self, named: str) -> JobRecord | None:
        """The job of this id, or the one called `agent/name`."""
        found = await self._store.find_job(JobId(named))
        parts = named.split("/")
        for place in range(1, len(parts)):
            if found is None:
                # Both may have a slash in them.
                agent, name = "/".join(parts[:place]), "/".join(parts[place:])
                found = await self._store.find_job_named(AgentName(agent), name)
        return found

    async def find(self, job_id: JobId) -> JobRecord:
        record = await self._store.find_job(job_id)
        if record is None:
            raise JobNotFound(job_id)
        return record

    async def find_named(self, agent: AgentName, name: str) -> JobRecord:
        record = await self._store.find_job_named(agent, name)
        if record is None:
            raise JobNotFound(f"{agent}/{name}")
        return record

    async def list(self, query: JobQuery) -> JobPage:
        return await self._store.list_jobs(query)

    async def log(self, query: LogQuery) -> LogPage:
        return await self._store.job_log(query)

    async def edit(self, job_id: JobId, patch: Mapping[str, object]) -> JobRecord:
        """Change what the patch names, and nothing else (C-13)."""

        def change(record: JobRecord, now: Instant) -> tuple[Job, Ticking]:
            if record.job.heartbeat is not None and patch.keys() - {"enabled"}:
                what = "enabled only: this is a heartbeat; the rest: hw.heartbeats.set, `headway heartbeat set`"
                raise InvalidInput("patch", sorted(patch), what)
            job = rules.patched(record.job, patch, now)
            return job, rules.reticked(record.job, job, record.ticking, now)

        record = await self._change(job_id, change)
        if not record.job.enabled:
            await self._stop_waiting(record)
        return record

    async def pause(self, job_id: JobId) -> JobRecord:
        """No firing of it starts any more, until it is resumed (C-10)."""
        return await self.edit(job_id, {"enabled": False})

    async def resume(self, job_id: JobId) -> JobRecord:
        return await self.edit(job_id, {"enabled": True})

    async def remove(self, job_id: JobId) -> None:
        """The job goes, its log stays; firings that wait end, one that runs goes on."""
        await self.pause(job_id)
        if not await self._store.remove_job(job_id):
            raise JobNotFound(job_id)
        self._timekeeper.look()

    async def run(self, job_id: JobId, *, only_if_due: bool = False) -> RunId | None:
        """Fire it now, beside its schedule. None: it was to run only if due, and is not (C-10)."""
        for tried in range(_TRIES):
            record = await self.find(job_id)
            if not self._store.durable and record.job.agent not in self._intake.agents:
                raise UnknownName("agent", record.job.agent, self._intake.agents)
            if record.job.heartbeat is not None:
                what = "a job: a heartbeat is woken by hw.heartbeats.wake, `headway heartbeat wake`"
                raise InvalidInput("job", job_id, what)
            # A moment later each time: at this very instant it may have been run by hand already.
            now = self._clock.wall() + tried
            if only_if_due:
                due_at = record.ticking.due_at
                if due_at is None or due_at > now or not record.job.enabled:
                    return None
                decision = self._timekeeper.decide(record, now)
            else:
                composer = self._intake.composer(record.job.agent)
                decision = run_now(record, now, composer, self._ids.next())
            (kept,) = await self._timekeeper.carry_out([decision])
            if kept:
                return decision.advance.runs[-1].id if decision.advance.runs else None
        raise _contended(job_id)

    async def declare(self, fields: Mapping[str, object], zone: str) -> JobRecord | None:
        """What a program says in its code: made once, renewed where that has changed. None: its time is past."""
        now = self._clock.wall()
        agent, name = AgentName(str(fields.get("agent"))), str(fields.get("name"))
        record = await self._store.find_job_named(agent, name)
        if record is None:
            try:
                job = rules.new_job(new_job_id(), fields, now, zone)
            except InvalidInput as wrong:
                if wrong.field == "at":
                    return None
                raise
            try:
                return await self._add(msgspec.structs.replace(job, declared=True), now)
            except InvalidInput:
                # Another node that runs the same program was quicker.
                return await self.find_named(agent, name)

        def change(record: JobRecord, now: Instant) -> tuple[Job, Ticking]:
            job = declared.redeclared(record.job, fields, now, zone)
            return job, rules.reticked(record.job, job, record.ticking, now)

        return await self._change(record.job.id, change)

    # Heartbeats.

    async def declare_heartbeat(self, agent: AgentName, settings: HeartbeatSettings) -> JobRecord:
        now = self._clock.wall()
        fresh = declared.heartbeat_job(new_job_id(), agent, settings, now)
        record = await self._store.find_job_named(agent, fresh.name)
        if record is None:
            try:
                return await self._add(fresh, now)
            except InvalidInput:
                record = await self.find_named(agent, fresh.name)

        def change(record: JobRecord, now: Instant) -> tuple[Job, Ticking]:
            known = record.job
            job = msgspec.structs.replace(
                fresh, id=known.id, created_at=known.created_at, enabled=known.enabled
            )
            return job, rules.reticked(known, job, record.ticking, now)

        return await self._change(record.job.id, change)

    async def maybe_heartbeat(self, agent: AgentName) -> JobRecord | None:
        return await self._store.find_job_named(agent, HEARTBEAT)

    async def heartbeat(self, agent: AgentName) -> JobRecord:
        record = await self.maybe_heartbeat(agent)
        if record is None:
            raise InvalidInput("agent", agent, "an agent that has a heartbeat")
        return record

    async def wake(self, agent: AgentName, *, manual: bool = True) -> Instant | None:
        """Wake an agent soon, beside its cadence. None: its own heartbeat asks, and cannot wake it again (H-4)."""
        turn = current_turn.get()
        firing = None if turn is None or turn.agent != agent else turn.run.firing
        if firing is not None and firing.ack_max_chars is not None:
            return None

        def change(record: JobRecord, now: Instant) -> tuple[Job, Ticking]:
            wake_at = next_wake(now, latest_start(record), manual, record.ticking.wake_at)
            if wake_at == record.ticking.wake_at:
                return record.job, record.ticking
            # A node that looks just now is refused by the new version, so nobody waits for it.
            stands = msgspec.structs.replace(record.ticking, wake_at=wake_at, claimed_until=None)
            return record.job, stands

        record = await self.heartbeat(agent)
        if not record.job.enabled:
            raise InvalidInput("agent", agent, "an agent whose heartbeat is enabled")
        return (await self._change(record.job.id, change)).ticking.wake_at

    async def checklist(self, agent: AgentName) -> str | None:
        return await self._store.text(checklist_name(agent))

    async def set_checklist(self, agent: AgentName, text: str | None) -> None:
        await self._store.keep_text(checklist_name(agent), text)

    async def _change(self, job_id: JobId, change: Change) -> JobRecord:
        for _ in range(_TRIES):
            record = await self.find(job_id)
            job, ticking = change(record, self._clock.wall())
            if job == record.job and ticking == record.ticking:
                return record
            if await self._store.change_job(job, ticking):
                self._timekeeper.look()
                changed = msgspec.structs.replace(ticking, version=ticking.version + 1)
                return msgspec.structs.replace(record, job=job, ticking=changed)
        raise _contended(job_id)

    async def _stop_waiting(self, record: JobRecord) -> None:
        """Firings that have not started end with the job's being disabled (C-10)."""
        waiting = [past.run_id for past in record.recent if past.state in _WAITING]
        cursor: str | None = None
        while len(waiting) >= MAX_RECENT:
            # So many wait that there may be more: those that make up for missed firings.
            page = await self._store.job_log(LogQuery(record.job.id, _LINES, cursor))
            found = [entry.run_id for entry in page.entries if entry.state in _WAITING]
            waiting += [run_id for run_id in found if run_id is not None]
            cursor = page.cursor
            if cursor is None or not found:
                break
        for run_id in dict.fromkeys(waiting):
            await self._orders.end_waiting(run_id)


def _contended(job_id: JobId) -> Unavailable:
    return Unavailable(f"job {job_id} changes all the time; try again")
