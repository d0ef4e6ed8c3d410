"""The state machine with jobs: it plays a timekeeper beside the engine, and compares every answer.

It adds jobs, changes them, lets them go on by what it has read of them or by what it read before, and reads what
is due, the lists and the log. The runs that firings make are decided about like any others.
"""

from collections.abc import Mapping

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from headway import Outcome, Route
from headway.core.actions import Deliver
from headway.model.errors import InvalidInput
from headway.model.heartbeat import HeartbeatSettings
from headway.model.job import Advance, Entry, Job, JobRecord, Past, Ticking
from headway.model.payload import Gate, Say
from headway.model.places import Delivery
from headway.model.run import AgentName, Firing, JobId, Run, RunId, SessionKey
from headway.model.schedule import Every
from headway.model.time import HOUR, MINUTE, SECOND, Instant, Span
from headway.model.words import Fired
from headway.ports import DueJobs, JobQuery, LetterQuery, LogQuery, Store
from tests.contract.machine import AGENTS, OUTCOMES, SESSIONS, SETTINGS, Live, StoreMachine, picks
from tests.contract.world import a_run

NAMES = ("x", "y", "Z")
KINDS: Mapping[str, Mapping[str, object]] = {
    "plain": {},
    "gate": {"gate": Gate(function="look")},
    "beat": {"heartbeat": HeartbeatSettings(checklist="HEARTBEAT.md")},
    "short beat": {"heartbeat": HeartbeatSettings(interval=MINUTE)},
}
ABILITIES = (
    (),
    ("agent:a", "agent:b", "function:look"),
    ("agent:a", "agent:b", "function:look", "gate:a", "file:a", "checklist:a", "checklist:b"),
)
DELAYS = (-HOUR, 0, SECOND, 10 * MINUTE)


class JobMachine(StoreMachine):
    """Derive from it and say how to make the store."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[JobId] = []
        self.read: list[JobRecord] = []
        """What was read of jobs before, and may be true no longer."""
        self.versions: set[tuple[JobId, int]] = set()
        self.instants: set[Instant] = set()
        self.lines: list[Entry] = []
        self.firings = 0
        self.notes = 0

    # What people ask for.

    @rule(
        name=st.sampled_from(NAMES),
        agent=st.sampled_from(AGENTS),
        kind=st.sampled_from(list(KINDS)),
        enabled=st.booleans(),
        delay=st.sampled_from((None, *DELAYS)),
    )
    def add_job(
        self, *, name: str, agent: str, kind: str, enabled: bool, delay: Span | None
    ) -> None:
        job_id = JobId(f"job-{len(self.jobs)}")
        job = Job(
            job_id,
            name,
            AgentName(agent),
            Every(HOUR, 0),
            Say("hello"),
            self.clock.now(),
            enabled,
            **KINDS[kind],  # type: ignore[arg-type]
        )
        ticking = Ticking(next_at=self._at(delay))
        ours, theirs = self._both(lambda store: store.add_job(job, ticking))
        assert theirs is ours
        if ours:
            self.jobs.append(job_id)
        self._same_job(job_id)

    @precondition(lambda self: self.read)
    @rule(
        pick=picks,
        name=st.sampled_from((None, *NAMES)),
        enabled=st.booleans(),
        delay=st.sampled_from((None, *DELAYS)),
        kind=st.sampled_from((None, *KINDS)),
    )
    def change_job(
        self, *, pick: int, name: str | None, enabled: bool, delay: Span | None, kind: str | None
    ) -> None:
        """By what was read just now or earlier: then nothing may change."""
        record = self.read[pick % len(self.read)]
        fields: dict[str, object] = {"enabled": enabled, "name": name or record.job.name}
        if kind is not None:
            fields |= {"gate": None, "heartbeat": None, **KINDS[kind]}
        job = msgspec.structs.replace(record.job, **fields)
        ticking = msgspec.structs.replace(record.ticking, next_at=self._at(delay))
        ours, theirs = self._both(lambda store: _changed(store, job, ticking))
        assert theirs == ours
        self._same_job(job.id)

    @precondition(lambda self: self.jobs)
    @rule(pick=picks)
    def remove_job(self, pick: int) -> None:
        job_id = self.jobs[pick % len(self.jobs)]
        ours, theirs = self._both(lambda store: store.remove_job(job_id))
        assert theirs is ours
        self._same_job(job_id)

    @rule(text=st.sampled_from((None, "", "one", "two\0")))
    def keep_text(self, text: str | None) -> None:
        self._both(lambda store: store.keep_text("name", text))
        ours, theirs = self._both(lambda store: store.text("name"))
        assert theirs == ours

    @rule(agent=st.sampled_from(AGENTS), at=st.integers(0, 5), peer=st.sampled_from("xyz"))
    def note_route(self, agent: str, at: int, peer: str) -> None:
        name = AgentName(agent)
        # No two notes of one instant: nothing says which of them counts.
        self.notes += 1
        noted_at = at * SECOND + self.notes
        self._both(lambda store: store.note_routes({name: Route("web", peer=peer)}, noted_at))
        ours, theirs = self._both(lambda store: store.last_route(name))
        assert theirs == ours

    # What a timekeeper decides.

    @precondition(lambda self: self.read)
    @rule(
        pick=picks,
        latest=st.booleans(),
        runs=st.integers(0, 2),
        session=st.sampled_from(SESSIONS),
        again=st.booleans(),
        delay=st.sampled_from((None, *DELAYS)),
        claimed=st.booleans(),
        enabled=st.booleans(),
        notice=st.sampled_from((None, "", "k")),
        delete=st.booleans(),
        pause=st.booleans(),
    )
    def advance(
        self,
        *,
        pick: int,
        latest: bool,
        runs: int,
        session: str,
        again: bool,
        delay: Span | None,
        claimed: bool,
        enabled: bool,
        notice: str | None,
        delete: bool,
        pause: bool,
    ) -> None:
        read = self.read[-1] if latest else self.read[pick % len(self.read)]
        job = read.job
        made = [self._firing(job, session, number, again=again) for number in range(runs)]
        now = self.clock.now()
        lines = [
            Entry(job.id, run.firing.due_at, Fired.ON_TIME, now, run.id)
            for run in made
            if run.firing is not None
        ]
        if not runs or pick % 3 == 0:
            lines.insert(0, Entry(job.id, now, Fired.SKIPPED, now, None, "why\0", 1 + pick % 4))
        ticking = Ticking(
            read.ticking.version,
            self._at(delay),
            claimed_until=self._at(MINUTE) if claimed else None,
            since=now,
            paused="why" if pause else "",
        )
        notices = () if notice is None else (self._notice(notice),)
        advance = Advance(
            job.id,
            read.ticking.version,
            ticking,
            enabled or not pause,
            tuple(made),
            (True,) * len(made),
            tuple(lines),
            notices,
            delete and pick % 4 == 0,
        )
        self._advance(advance)

    def _advance(self, advance: Advance) -> None:
        (ours,), (theirs,) = self._both(lambda store: store.advance([advance]))
        assert (ours is None) is (theirs is None)
        if ours is not None and theirs is not None:
            for run, mine, other in zip(advance.runs, ours, theirs, strict=True):
                held = self._granted(run.session, mine, other)
                self.runs[run.id] = run
                held.lives.append(Live(run, held.seen))
            self.lines += advance.entries
        self._same_job(advance.job)
        self._same_log(advance.job, 2)
        if advance.notices:
            self._same_outbox()

    @precondition(lambda self: self.read)
    @rule(pick=picks, session=st.sampled_from(SESSIONS), outcome=st.sampled_from(OUTCOMES))
    def fire_and_finish(self, pick: int, session: str, outcome: Outcome) -> None:
        """A job goes on as most do: by what is known of it, with a run that is carried through."""
        self._flush()
        known = self._both(lambda store: store.list_jobs(JobQuery(heartbeats=None)))[0].jobs
        if not known:
            return
        record = known[pick % len(known)]
        run = self._firing(record.job, session, 0, again=False)
        self._advance(self._step(record, run))
        waiting = [live.run.id for _, live in self._lives(running=False)]
        self.start(waiting.index(run.id), pick % 2 == 0)
        running = [live.run.id for _, live in self._lives(running=True)]
        self.finish(running.index(run.id), outcome)
        self._flush()
        # The same due time once more, although by the latest version: it has had its run.
        record = [read for read in self.read if read.job.id == record.job.id][-1]
        again = msgspec.structs.replace(run, id=RunId(f"{run.id}-again"))
        self._advance(self._step(record, again))
        assert again.id not in self.runs

    def _step(self, record: JobRecord, run: Run) -> Advance:
        assert run.firing is not None
        line = Entry(record.job.id, run.firing.due_at, Fired.LATE, self.clock.now(), run.id)
        return Advance(
            record.job.id,
            record.ticking.version,
            msgspec.structs.replace(record.ticking, next_at=self._at(HOUR)),
            record.job.enabled,
            (run,),
            (True,),
            (line,),
        )

    def _compare_all(self) -> None:
        super()._compare_all()
        for job_id in self.jobs:
            self._same_job(job_id)

    def _firing(self, job: Job, session: str, number: int, *, again: bool) -> Run:
        """A run of a due time that is new, or has had one."""
        due_at = self._at(0)
        assert due_at is not None
        known = self._both(lambda store: store.job_log(LogQuery(job.id, 1_000)))[0].entries
        fired = [
            line.due_at
            for line in known
            if line.run_id is not None and line.at + SETTINGS.retention > self.clock.now()
        ]
        if again and fired and number == 0:
            due_at = fired[0]
        self.firings += 1
        return a_run(
            f"firing-{self.firings}",
            session,
            self.clock,
            {"agent": job.agent, "source": job.source, "firing": Firing(job.id, due_at)},
        )

    def _notice(self, once: str) -> Delivery:
        self.deliveries += 1
        now = self.clock.advance(1)
        return Delivery(
            f"d-{self.deliveries}",
            Route("web"),
            "notice",
            RunId("nobody's"),
            SessionKey("nobody's"),
            0,
            first_at=now,
            once=once,
            once_until=now + 10 * MINUTE if once else 0,
        )

    @precondition(lambda self: self._held())
    @rule(pick=picks, once=st.sampled_from(("k", "l")), lasts=st.sampled_from((MINUTE, HOUR)))
    def deliver_once(self, pick: int, once: str, lasts: Span) -> None:
        held = self._held()[pick % len(self._held())]
        self.deliveries += 1
        name, now = f"d-{self.deliveries}", self.clock.advance(1)
        self._decide(
            lambda side: Deliver(
                Delivery(
                    name, Route("telegram"), "text", RunId("nobody's"), held.key,
                    held.epochs[side], first_at=now, once=once, once_until=now + lasts,
                )
            )
        )  # fmt: skip

    # What is read.

    def _same_job(self, job_id: JobId) -> None:
        ours, theirs = self._both(lambda store: store.find_job(job_id))
        assert self._fresh(theirs) == self._fresh(ours)
        if ours is not None:
            self._note(ours)
            job = ours.job
            named = self._both(lambda store: store.find_job_named(job.agent, job.name))
            assert self._fresh(named[0]) == self._fresh(named[1]) == self._fresh(ours)

    def _note(self, record: JobRecord) -> None:
        """Once for each version: so what is old is not outnumbered."""
        version = record.job.id, record.ticking.version
        if version not in self.versions:
            self.versions.add(version)
            self.read.append(record)

    @rule(
        agent=st.sampled_from((None, *AGENTS)),
        enabled=st.sampled_from((None, False, True)),
        heartbeats=st.sampled_from((None, False, True)),
        limit=st.integers(1, 3),
    )
    def list_jobs(
        self, agent: str | None, enabled: bool | None, heartbeats: bool | None, limit: int
    ) -> None:
        query = JobQuery(agent, enabled, heartbeats, limit)

        async def pages(store: Store) -> list[JobRecord | None]:
            records: list[JobRecord | None] = []
            cursor: str | None = None
            while True:
                page = await store.list_jobs(msgspec.structs.replace(query, cursor=cursor))
                records += map(self._fresh, page.jobs)
                cursor = page.cursor
                assert len(page.jobs) == limit or cursor is None
                if cursor is None:
                    return records

        ours, theirs = self._both(pages)
        assert theirs == ours

    @rule(
        ahead=st.sampled_from((0, 0, SECOND, HOUR)),
        most=st.integers(1, 4),
        abilities=st.sampled_from(ABILITIES),
    )
    def due_jobs(self, ahead: Span, most: int, abilities: tuple[str, ...]) -> None:
        now = self.clock.now() + ahead
        ours, theirs = self._both(lambda store: store.due_jobs(now, most, abilities))
        assert self._fresh_due(theirs) == self._fresh_due(ours)
        for record in ours.jobs:
            self._note(record)

    @rule(early=st.booleans(), abilities=st.sampled_from(ABILITIES))
    def wait_for_the_next(self, early: bool, abilities: tuple[str, ...]) -> None:
        due = self._both(lambda store: store.due_jobs(self.clock.now(), 1_000, abilities))[0]
        if due.next_at is not None:
            self.clock.advance(due.next_at - self.clock.now() - early)
            self.due_jobs(0, 1_000, abilities)

    @rule()
    def settled_jobs(self) -> None:
        ours, theirs = self._both(lambda store: store.settled_jobs(1_000))
        known = [{one.job.id: self._fresh(one) for one in side} for side in (ours, theirs)]
        assert known[1] == known[0]

    @precondition(lambda self: self.jobs)
    @rule(pick=picks, everything=st.booleans(), limit=st.integers(1, 3))
    def job_log(self, pick: int, everything: bool, limit: int) -> None:
        self._same_log(None if everything else self.jobs[pick % len(self.jobs)], limit)

    def _same_log(self, job_id: JobId | None, limit: int = 1_000) -> None:
        async def pages(store: Store) -> list[Entry]:
            lines: list[Entry] = []
            cursor: str | None = None
            while True:
                page = await store.job_log(LogQuery(job_id, limit, cursor))
                lines += page.entries
                cursor = page.cursor
                assert len(page.entries) == limit or cursor is None
                if cursor is None:
                    break
            numbers = [line.number for line in lines]
            assert numbers == sorted(set(numbers), reverse=True)
            return [
                msgspec.structs.replace(line, number=0)
                for line in lines
                if not self._was_forgotten(line.run_id, line.at)
            ]

        ours, theirs = self._both(pages)
        assert theirs == ours

    @precondition(lambda self: self.lines)
    @rule(pick=picks, early=st.booleans())
    def prune_lines(self, pick: int, early: bool) -> None:
        """At the end of one line's time. What is past it is gone then, unless its run is unfinished."""
        self._flush()
        line = self.lines[pick % len(self.lines)]
        past_at = line.at + SETTINGS.retention - early
        if past_at > self.clock.now():
            self.clock.advance(past_at - self.clock.now())
        self._both(lambda store: store.prune(1_000))
        self._same_log(None)
        self._same_log(line.job)
        for page in self._both(lambda store: store.job_log(LogQuery(limit=1_000))):
            assert not any(self._was_forgotten(kept.run_id, kept.at) for kept in page.entries)

    @rule(dead=st.booleans(), channel=st.sampled_from((None, "web")), limit=st.integers(1, 3))
    def letters(self, dead: bool, channel: str | None, limit: int) -> None:
        self._same_letters(LetterQuery(dead, channel, limit))

    def _same_letters(self, query: LetterQuery) -> None:
        async def pages(store: Store) -> list[Delivery]:
            letters: list[Delivery] = []
            cursor: str | None = None
            while True:
                page = await store.letters(msgspec.structs.replace(query, cursor=cursor))
                letters += page.letters
                cursor = page.cursor
                assert len(page.letters) == query.limit or cursor is None
                if cursor is None:
                    break
            forgotten = self.clock.now() - SETTINGS.retention
            return [
                msgspec.structs.replace(letter, epoch=0)
                for letter in letters
                if not query.dead or letter.first_at > forgotten
            ]

        ours, theirs = self._both(pages)
        assert theirs == ours

    def _same_outbox(self) -> None:
        for dead in (False, True):
            self._same_letters(LetterQuery(dead, limit=1_000))

    @rule(pick=picks, tries=st.integers(0, 2), retry=st.booleans())
    def give_up_a_letter(self, pick: int, tries: int, retry: bool) -> None:
        """One that waits is tried in vain, given up, and perhaps sent anew."""
        self._flush()
        waits = self._both(lambda store: store.letters(LetterQuery(False, limit=1_000)))[0].letters
        if not waits:
            return
        letter = waits[pick % len(waits)]
        for tried in range(tries + 1):
            said = msgspec.structs.replace(letter, tries=letter.tries + tried)
            again_at = None if tried == tries else self.clock.now()
            self._both(lambda store: store.settle_delivery(said, again_at, "no"))  # noqa: B023
        self._same_outbox()
        now = self.clock.advance(1)
        if retry and letter.first_at + SETTINGS.retention > now:
            assert self._both(lambda store: store.retry_letter(letter.id, now)) == (True, True)
            self._same_outbox()
        assert self._both(lambda store: store.retry_letter("nope", now)) == (False, False)

    @precondition(lambda self: self._held())
    @rule(pick=picks, early=st.booleans(), lasts=st.sampled_from((MINUTE, HOUR)))
    def say_again_when_it_may_be(self, pick: int, early: bool, lasts: Span) -> None:
        self.deliver_once(pick, "m", lasts)
        self.clock.advance(lasts - 1 - early)
        self.deliver_once(pick, "m", lasts)
        self._flush()
        self._same_outbox()

    # What a store may have forgotten, or not yet.

    def _was_forgotten(self, run_id: RunId | None, at: Instant) -> bool:
        past = at + SETTINGS.retention <= self.clock.now()
        return past and (run_id is None or run_id in self.ended)

    def _fresh(self, record: JobRecord | None) -> JobRecord | None:
        """A record without what it may have forgotten, and without the numbers of lines."""
        if record is None:
            return None
        last = record.last
        if last is not None:
            forgotten = self._was_forgotten(last.run_id, last.at)
            last = None if forgotten else msgspec.structs.replace(last, number=0)
        recent = tuple(filter(self._is_known, record.recent))
        return msgspec.structs.replace(record, recent=recent, last=last)

    def _is_known(self, past: Past) -> bool:
        return not self._was_forgotten(past.run_id, past.made_at)

    def _fresh_due(self, due: DueJobs) -> object:
        jobs = [self._fresh(record) for record in due.jobs]
        return jobs, due.more, None if due.more else due.next_at

    def _at(self, delay: Span | None) -> Instant | None:
        """Then, and at no instant that was used before: so the order of what is due is clear."""
        if delay is None:
            return None
        at = self.clock.now() + delay
        while at in self.instants:
            at += 1
        self.instants.add(at)
        return at


async def _changed(store: Store, job: Job, ticking: Ticking) -> bool | str:
    try:
        return await store.change_job(job, ticking)
    except InvalidInput as refused:
        return refused.field
