"""How the suites talk to a store about jobs: as the timekeeper of a node does."""

from collections.abc import Sequence

import msgspec

from headway import Route
from headway.model.heartbeat import HeartbeatSettings
from headway.model.hours import ActiveHours
from headway.model.job import Advance, Entry, Job, JobRecord, Past, Ticking
from headway.model.payload import Execute, Gate, Say
from headway.model.places import Delivery
from headway.model.run import AgentName, Firing, JobId, LaneName, Run, RunId, SessionKey
from headway.model.schedule import Cron, Every
from headway.model.time import HOUR, MINUTE, SECOND, Instant
from headway.model.words import Fired, Misfire, Overlap, State
from headway.ports import Admission, DueJobs, Granted, JobQuery, LogQuery
from tests.contract.world import ODD, World

CRON = LaneName("cron")


AGENTS = ("agent:a", "agent:b")
"""What a node has that fires plain jobs of these."""


def a_job(name: str, now: Instant, **fields: object) -> Job:
    """A job as it would be made; `fields` says what is special about it."""
    said: dict[str, object] = {
        "id": JobId(f"job-{name}"),
        "name": name,
        "agent": AgentName("a"),
        "schedule": Every(HOUR, now),
        "payload": Say("hello"),
        "created_at": now,
        **fields,
    }
    return Job(**said)  # type: ignore[arg-type]


def a_full_job(now: Instant) -> Job:
    """A job that says everything there is to say, in odd characters where a caller can put them."""
    return a_job(
        "a name with 'quotes', \"more\", % and \N{GRINNING FACE}",
        now,
        schedule=Cron("0 9 * * 1-5", "America/Sao_Paulo"),
        payload=Execute(("echo", ODD), f"/tmp/{ODD}", (("KEY", ODD),), ODD),
        lane=CRON,
        session="agent:a:main",
        timeout=10 * MINUTE,
        retries=2,
        max_attempts=3,
        priority=7,
        overlap=Overlap.INTERRUPT,
        misfire=Misfire.ALL,
        misfire_window=2 * HOUR,
        stagger=30 * SECOND,
        deliver=Route("telegram", account=ODD, peer="42", thread="7"),
        delete_after_run=True,
        gate=Gate("look", ("test", "-e", ODD)),
        heartbeat=HeartbeatSettings(
            interval=10 * MINUTE,
            prompt=ODD,
            hours=ActiveHours(480, 1320, "Europe/Berlin"),
            target=Route("web", peer=ODD),
            checklist="HEARTBEAT.md",
            timeout=MINUTE,
        ),
        declared=True,
    )


class Timekeeper:
    """What one node says about jobs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.store = world.store
        self.clock = world.clock

    async def add(self, name: str = "job", due_at: Instant | None = None, **fields: object) -> Job:
        """A new job that the store must take; it is due now unless said otherwise."""
        now = self.clock.now()
        job = a_job(name, now, **fields)
        ticking = Ticking(next_at=now if due_at is None else due_at)
        assert await self._world.store.add_job(job, ticking)
        return job

    async def add_settled(self, name: str, **fields: object) -> Job:
        """One that will not fire again by itself."""
        job = a_job(name, self.clock.now(), **fields)
        assert await self._world.store.add_job(job, Ticking())
        return job

    async def known(self, job: Job) -> JobRecord:
        record = await self._world.store.find_job(job.id)
        assert record is not None, f"{job.id} is not known"
        return record

    async def version(self, job: Job) -> int:
        return (await self.known(job)).ticking.version

    def run(self, job: Job, fires_at: Instant, /, session: str = "", **fields: object) -> Run:
        """The run of one firing; by itself unless a session is named."""
        run = self._world.run(
            session,
            source=job.source,
            lane=CRON,
            priority=10,
            firing=Firing(job.id, fires_at),
            **fields,
        )
        if session:
            return run
        return msgspec.structs.replace(run, session=SessionKey(f"{job.id}:{run.id}"))

    def line(
        self,
        job: Job,
        due_at: Instant,
        kind: Fired = Fired.ON_TIME,
        run: Run | None = None,
        **fields: object,
    ) -> Entry:
        run_id = None if run is None else run.id
        now = self.clock.now()
        return msgspec.structs.replace(Entry(job.id, due_at, kind, now, run_id), **fields)

    async def step(
        self,
        job: Job,
        *runs: Run,
        claim: bool = True,
        due_at: Instant | None = None,
        next_in: Instant | None = HOUR,
        **fields: object,
    ) -> Advance:
        """How a job goes on by what is known of it now: with these runs, each with its line in the log."""
        record = await self.known(job)
        due = self.clock.now() if due_at is None else due_at
        next_at = None if next_in is None else due + next_in
        said: dict[str, object] = {
            "ticking": msgspec.structs.replace(record.ticking, next_at=next_at),
            "enabled": record.job.enabled,
            "runs": runs,
            "claims": (claim,) * len(runs),
            "entries": tuple(
                self.line(job, run.firing.due_at if run.firing else due, run=run) for run in runs
            ),
            **fields,
        }
        return Advance(job.id, record.ticking.version, **said)  # type: ignore[arg-type]

    async def advance(self, *advances: Advance) -> list[tuple[Admission, ...] | None]:
        answers = list(await self._world.store.advance(advances))
        assert len(answers) == len(advances)
        for advance, admissions in zip(advances, answers, strict=True):
            for run, admission in zip(advance.runs, admissions or (), strict=bool(admissions)):
                if isinstance(admission, Granted):
                    self._world.hold(run, admission)
        return answers

    async def fire(
        self,
        job: Job,
        *,
        session: str = "",
        claim: bool = True,
        due_at: Instant | None = None,
        **fields: object,
    ) -> Run:
        """One firing with a run, which the store must take."""
        due = self.clock.now() if due_at is None else due_at
        run = self.run(job, due, session)
        (admissions,) = await self.advance(
            await self.step(job, run, claim=claim, due_at=due, **fields)  # type: ignore[arg-type]
        )
        assert admissions is not None
        assert len(admissions) == 1
        return run

    async def skip(self, job: Job, reason: str = "busy", count: int = 1) -> None:
        """One firing without a run."""
        line = self.line(job, self.clock.now(), Fired.SKIPPED, reason=reason, count=count)
        (admissions,) = await self.advance(await self.step(job, entries=(line,)))
        assert admissions == ()

    async def due(self, *abilities: str, most: int = 100, now: Instant | None = None) -> DueJobs:
        at = self.clock.now() if now is None else now
        return await self._world.store.due_jobs(at, most, (*abilities, *AGENTS))

    async def names_due(self, *abilities: str, most: int = 100) -> list[str]:
        return [record.job.name for record in (await self.due(*abilities, most=most)).jobs]

    async def log(self, job: Job | None = None, limit: int = 1_000) -> list[Entry]:
        query = LogQuery(None if job is None else job.id, limit)
        return list((await self._world.store.job_log(query)).entries)

    async def listed(self, **query: object) -> list[str]:
        page = await self._world.store.list_jobs(JobQuery(**query))  # type: ignore[arg-type]
        return [record.job.name for record in page.jobs]

    def notice(self, name: str = "notice", **fields: object) -> Delivery:
        """Something to be said that belongs to no session of this node."""
        said = Delivery(
            name,
            Route("telegram", peer="42"),
            "The job was paused.",
            RunId(""),
            SessionKey("nobody's"),
            0,
            first_at=self.clock.now(),
        )
        return msgspec.structs.replace(said, **fields)


def past_of(run: Run, state: State) -> Past:
    """What a job knows of a run that it made on time."""
    assert run.firing is not None
    return Past(run.id, run.firing.due_at, run.submitted_at, state)


def plain(entries: Sequence[Entry]) -> list[Entry]:
    """Lines of the log without the numbers that the store has given them."""
    return [msgspec.structs.replace(entry, number=0) for entry in entries]
