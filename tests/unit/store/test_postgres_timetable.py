"""Jobs in the PostgreSQL store, beyond the contract: many at once, hints, poolers, indexes, long replies."""

import asyncio
from collections.abc import Iterator

import asyncpg
import msgspec
import pytest

from headway import Outcome, Reply, Route, Settings, State
from headway.core.actions import Finish, Start
from headway.model.errors import InvalidInput, StoreUnavailable
from headway.model.job import Advance, Entry, Job, Ticking
from headway.model.payload import Say
from headway.model.places import Delivery
from headway.model.run import AgentName, Firing, JobId, Run, RunId, SessionKey
from headway.model.schedule import Every
from headway.model.time import HOUR, MINUTE, SECOND, Instant
from headway.model.words import Fired, Source
from headway.ports import Granted, Hint, JobQuery, LetterQuery, LogQuery
from headway.store.codec import summary_of
from tests.postgres import Pooler, fresh_url, own_server, with_option
from tests.unit.store.test_postgres import AGENT, Node, nodes, on_a_loop, sql

MANY = 1_000
ABILITIES = ("agent:a",)
EVERY_S = 0.02
MOST_AT_ONCE = 10
"""There are no more hints than one in so many seconds, and a few after a silence."""


def a_job(number: int, **fields: object) -> Job:
    said: dict[str, object] = {
        "id": JobId(f"job-{number:05}"),
        "name": f"name {number:05}",
        "agent": AGENT,
        "schedule": Every(HOUR, 0),
        "payload": Say("hello"),
        "created_at": 0,
        **fields,
    }
    return Job(**said)  # type: ignore[arg-type]


def a_firing(node: Node, job: JobId, version: int, due_at: Instant, name: str = "") -> Advance:
    """The job goes on with one run, in a session of its own."""
    now = node.clock.now()
    run_id = RunId(f"{node.number}-{job}-{version}{name}")
    run = node.run(run_id, f"job:{run_id}", source=Source.FIRING, firing=Firing(job, due_at))
    line = Entry(job, due_at, Fired.ON_TIME, now, run_id)
    ticking = Ticking(next_at=due_at + HOUR)
    return Advance(job, version, ticking, runs=(run,), claims=(True,), entries=(line,))


async def add_many(node: Node, count: int) -> list[JobId]:
    jobs = [a_job(number) for number in range(count)]
    now = node.clock.now()
    assert all(
        await asyncio.gather(*(node.store.add_job(job, Ticking(next_at=now)) for job in jobs))
    )
    return [job.id for job in jobs]


async def advance_due(node: Node, name: str = "") -> tuple[list[Advance], list[bool]]:
    """As a timekeeper does: read what is due, decide, keep. Which of the decisions held?"""
    due = await node.store.due_jobs(node.clock.now(), MANY, ABILITIES)
    steps = [
        a_firing(node, record.job.id, record.ticking.version, record.ticking.next_at or 0, name)
        for record in due.jobs
    ]
    answers = await node.store.advance(steps)
    return steps, [answer is not None for answer in answers]


# Many at once.


@on_a_loop
async def test_c5_of_a_thousand_jobs_that_two_nodes_find_due_at_once_each_fires_once() -> None:
    url = fresh_url()
    async with nodes("a", "b", url=url) as (a, b), sql(url) as (connection, schema):
        jobs = await add_many(a, MANY)
        made = await asyncio.gather(advance_due(a), advance_due(b))
        held = [
            step for steps, kept in made for step, holds in zip(steps, kept, strict=True) if holds
        ]
        assert sorted(step.job for step in held) == jobs
        runs = {step.runs[0].id for step in held}
        assert await _column(connection, f"select id from {schema}.runs") == runs
        assert await _column(connection, f"select run from {schema}.firings") == runs
        assert await _column(connection, f"select distinct version from {schema}.jobs") == {2}
        due = await a.store.due_jobs(a.clock.now(), MANY, ABILITIES)
        assert (due.jobs, due.next_at) == ((), a.clock.now() + HOUR)


@on_a_loop
async def test_c5_a_firing_that_was_made_already_fails_alone() -> None:
    """The unique index stands behind the versions: here a job of the same id was made anew."""
    async with nodes("a") as (a,):
        jobs = await add_many(a, 20)
        now = a.clock.now()
        await a.store.advance([a_firing(a, jobs[13], 1, now)])
        await a.store.remove_job(jobs[13])
        await a.store.add_job(a_job(13), Ticking(next_at=now))
        steps, held = await advance_due(a, "again")
        assert [step.job for step, holds in zip(steps, held, strict=True) if not holds] == [
            jobs[13]
        ]
        record = await a.store.find_job(jobs[13])
        assert record is not None
        assert (record.ticking.version, len(record.recent)) == (1, 1)
        assert await a.store.find(RunId(f"{a.number}-{jobs[13]}-1again")) is None


@on_a_loop
async def test_c6_a_job_that_makes_up_for_many_firings_goes_on_in_one_step() -> None:
    async with nodes("a") as (a,):
        (job,) = await add_many(a, 1)
        now = a.clock.now()
        single = [a_firing(a, job, number, now + number) for number in range(MANY)]
        step = msgspec.structs.replace(
            single[0],
            version=1,
            runs=tuple(
                msgspec.structs.replace(one.runs[0], session=SessionKey("job")) for one in single
            ),
            claims=(True,) * MANY,
            entries=tuple(one.entries[0] for one in single),
        )
        (admissions,) = await a.store.advance([step])
        assert admissions is not None
        granted = [one for one in admissions if isinstance(one, Granted)]
        assert [one.seq for one in granted] == list(range(1, MANY + 1))
        assert [one.fresh for one in granted] == [True] + [False] * (MANY - 1)


@on_a_loop
async def test_s1_firings_of_many_jobs_in_one_session_have_the_order_in_which_they_were_decided() -> (
    None
):
    """Rows are locked by the ids of jobs, and their runs are numbered by what was due first."""
    async with nodes("a") as (a,):
        jobs = await add_many(a, 9)
        steps = []
        for number, job in enumerate(reversed(jobs)):
            step = a_firing(a, job, 2 if number == 4 else 1, number)
            run = msgspec.structs.replace(step.runs[0], session=SessionKey("main"))
            steps.append(msgspec.structs.replace(step, runs=(run,)))
        answers = await a.store.advance(steps)
        assert answers[4] is None
        granted = [one for answer in answers for one in answer or ()]
        assert [one.seq for one in granted if isinstance(one, Granted)] == list(range(1, 9))
        lines = (await a.store.job_log(LogQuery())).entries
        assert [line.due_at for line in lines] == [8, 7, 6, 5, 3, 2, 1, 0]


@on_a_loop
async def test_two_decisions_about_one_job_in_one_call_are_kept_one_after_the_other() -> None:
    async with nodes("a") as (a,):
        (job,) = await add_many(a, 1)
        now = a.clock.now()
        steps = [a_firing(a, job, version, now + version) for version in (1, 1, 2)]
        answers = await a.store.advance(steps)
        assert [answer is not None for answer in answers] == [True, False, True]


@on_a_loop
async def test_n15_a_decision_that_cannot_be_stored_fails_alone() -> None:
    async with nodes("a") as (a,):
        jobs = await add_many(a, 9)
        now = a.clock.now()
        steps = [a_firing(a, job, 1, now) for job in jobs]
        (run,) = steps[4].runs
        bad = msgspec.structs.replace(run, session=SessionKey("nul\0"))
        steps[4] = msgspec.structs.replace(steps[4], runs=(bad,))
        answers = await a.store.advance(steps)
        assert [answer is None for answer in answers] == [number == 4 for number in range(9)]


@on_a_loop
async def test_a_job_whose_names_cannot_be_stored_is_refused_and_not_found() -> None:
    async with nodes("a") as (a,):
        for job in (a_job(1, name="nul\0"), a_job(1, agent=AgentName("half \ud800"))):
            with pytest.raises(InvalidInput):
                await a.store.add_job(job, Ticking())
            assert await a.store.find_job_named(job.agent, job.name) is None
        assert await a.store.find_job(JobId("nul\0")) is None
        assert (await a.store.list_jobs(JobQuery(agent="nul\0"))).jobs == ()
        assert (await a.store.job_log(LogQuery(job=JobId("nul\0")))).entries == ()


# Hints (C-12).


@on_a_loop
async def test_c12_a_change_is_told_by_the_transaction_that_makes_it() -> None:
    """So it is not lost if the process dies right after; of many changes only the first is told so."""
    url = fresh_url()
    async with nodes("a", "b", url=url) as (a, _), sql(url) as (connection, schema):
        heard: list[str] = []
        first = asyncio.Event()

        def hear(*told: object) -> None:
            if str(told[-1]).endswith("jobs"):
                heard.append(str(told[-1]))
                first.set()

        await connection.add_listener(f"headway_{schema}_all", hear)
        a.store._hints._send()
        assert await a.store.add_job(a_job(MANY), Ticking())
        assert not a.store._hints._pending
        async with asyncio.timeout(60):
            await first.wait()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await add_many(a, 300)
        assert len(heard) <= MOST_AT_ONCE + (loop.time() - began) / EVERY_S


@on_a_loop
async def test_c12_nothing_is_told_of_a_change_that_was_not_kept() -> None:
    async with nodes("a", "b") as (a, b):
        await a.listens()
        await b.listens()
        await b.store.add_job(a_job(1), Ticking())
        await a.ear.until(Hint.JOBS)
        await b.ear.until(Hint.JOBS)
        assert not await b.store.add_job(a_job(1), Ticking())
        assert not await b.store.change_job(a_job(1), Ticking(7))
        assert not await b.store.remove_job(JobId("nobody"))
        assert await b.store.advance([a_firing(b, JobId("job-00001"), 7, 0)]) == [None]
        await b.store.add_job(a_job(2), Ticking())
        await a.ear.until(Hint.JOBS)
        # One for the job that was added; another one would have come before it, and one of them would be left.
        await b.ear.until(Hint.JOBS)
        assert b.ear.hints == []


# Other versions, and troubles.


@on_a_loop
async def test_n20_a_job_of_a_newer_version_is_left_to_its_nodes() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,), sql(url) as (connection, schema):
        await add_many(a, 3)
        await connection.execute(
            f"""update {schema}.jobs set body = replace(body, '"every"', '"lunar"')"""
            " where id = 'job-00001'"
        )
        due = await a.store.due_jobs(a.clock.now(), 2, ABILITIES)
        assert [record.job.id for record in due.jobs] == ["job-00000"]
        assert due.more
        page = await a.store.list_jobs(JobQuery(limit=2))
        assert [record.job.id for record in page.jobs] == ["job-00000"]
        page = await a.store.list_jobs(JobQuery(limit=2, cursor=page.cursor))
        assert [record.job.id for record in page.jobs] == ["job-00002"]


@on_a_loop
async def test_d9_a_job_that_somebody_has_locked_hangs_nothing() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,), sql(url) as (connection, schema):
        jobs = await add_many(a, 3)
        steps = [a_firing(a, job, 1, 0) for job in jobs]
        async with connection.transaction():
            await connection.execute(f"select from {schema}.jobs where id = $1 for update", jobs[1])
            loop = asyncio.get_running_loop()
            began = loop.time()
            with pytest.raises(StoreUnavailable):
                await a.store.advance(steps)
            assert loop.time() - began < 12
            assert len((await a.store.due_jobs(a.clock.now(), 9, ABILITIES)).jobs) == 3
        assert None not in await a.store.advance(steps)


# A pooler in transaction mode.


@pytest.fixture(scope="module")
def pooler() -> Iterator[Pooler]:
    pooler = Pooler(own_server())
    yield pooler
    pooler.stop()


def test_n16_behind_a_pooler_jobs_work_too(pooler: Pooler) -> None:
    async def main() -> None:
        schema = fresh_url().rpartition("=")[2]
        async with nodes("a", "b", url=with_option(pooler.url, "schema", schema)) as (a, b):
            jobs = await add_many(a, 50)
            made = await asyncio.gather(advance_due(a), advance_due(b))
            assert sum(holds for _, kept in made for holds in kept) == len(jobs)
            record = await b.store.find_job(jobs[7])
            assert record is not None
            assert [past.state for past in record.recent] == [State.QUEUED]
            assert await a.store.change_job(a_job(7, name="other"), record.ticking)
            assert await a.store.remove_job(jobs[8])
            assert len((await b.store.list_jobs(JobQuery())).jobs) == 49
            assert len((await b.store.job_log(LogQuery(job=jobs[8]))).entries) == 1
            await a.store.keep_text("list", "- mail")
            assert await b.store.text("list") == "- mail"
            await a.store.note_routes({AGENT: Route("web")}, 1)
            assert await b.store.last_route(AGENT) == Route("web")

    asyncio.run(main())


# Indexes (N-17).


async def _column(connection: asyncpg.Connection, statement: str) -> set[object]:
    return {row[0] for row in await connection.fetch(statement)}


async def _read(connection: asyncpg.Connection, schema: str) -> dict[str, tuple[int, int]]:
    """For each table how often the whole of it was read, and how many rows came by an index."""
    rows = await connection.fetch(
        "select relname, seq_scan, coalesce(idx_tup_fetch, 0) as fetched"
        " from pg_stat_xact_user_tables where schemaname = $1",
        schema,
    )
    return {row["relname"]: (row["seq_scan"], row["fetched"]) for row in rows}


@on_a_loop
async def test_n17_what_is_due_is_found_by_its_index_however_many_jobs_there_are() -> None:
    url = fresh_url()
    async with nodes("a", url=url), sql(url) as (connection, schema):
        await connection.execute(
            f"insert into {schema}.jobs (id, agent, name, needs, heartbeat, enabled, version, since,"
            " next_at, due_at, body) select 'j' || n, 'a', n, '', false, true, 1, 0, n, n, '{}'"
            " from generate_series(1, 50000) n"
        )
        # One of them has a long log, in which few lines have made a run.
        await connection.execute(
            f"insert into {schema}.firings (job, due_at, at, count, run, kind)"
            " select 'j1', n, n, 1, case when n % 100 = 0 then 'r' || n end, 'skipped'"
            " from generate_series(1, 20000) n"
        )
        await connection.execute(
            f"insert into {schema}.endings"
            " (run, state, outcome, attempt, finished_at, unhandled, task)"
            " select 'r' || n, 'done', '{}', 1, 0, false, false from generate_series(1, 20000) n"
        )
        statement = f"select * from {schema}.due_jobs_v1($1, 100, '{{}}', 20)"
        for now, expected in ((10, 10), (0, 0)):
            # A connection of its own counts from nothing.
            async with sql(url) as (fresh, _), fresh.transaction():
                rows = await fresh.fetch(statement, now)
                read = await _read(fresh, schema)
                by_index = await fresh.fetchval(
                    f"select pg_stat_get_xact_numscans('{schema}.jobs_due'::regclass)"
                )
            assert (len(rows), rows[-1]["due_at"]) == (expected + 1, now + 1)
            assert by_index == 2
            assert read["jobs"] == (0, expected + 1)
            for table in ("firings", "endings"):
                scans, fetched = read[table]
                assert scans == 0
                assert fetched <= (20 if expected else 0)


@on_a_loop
async def test_n17_settled_jobs_are_found_by_their_index() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,), sql(url) as (connection, schema):
        await connection.execute(
            f"insert into {schema}.jobs (id, agent, name, needs, heartbeat, enabled, version, since, due_at, body)"
            " select 'j' || n, 'a', n, '', false, n % 5000 > 0, 1, 0, case when n % 1000 > 0 then n end, '{}'"
            " from generate_series(1, 20000) n"
        )
        await connection.execute(f"analyze {schema}.jobs")
        async with sql(url) as (fresh, _), fresh.transaction():
            rows = await fresh.fetch(a.store._sql["settled_jobs"], 20, 100)
            assert len(rows) == 16
            assert (await _read(fresh, schema))["jobs"] == (0, 16)


# Long replies (C-11).


@on_a_loop
async def test_c11_long_replies_are_cut_in_the_log_as_short_ones_would_be() -> None:
    replies = [
        Reply("x" * 300_000),
        Reply("\N{GRINNING FACE}" * 100_000, data={"rows": [1, 2]}),
        Reply("short"),
        Reply("\x00 and more " * 50_000),
        Reply("half \ud800 " * 50_000),
        Reply("short", data=["y" * 300_000]),
        Reply(data=["y" * 300_000]),
    ]
    async with nodes("a") as (a,):
        (job,) = await add_many(a, 1)
        expected: list[Outcome] = []
        for number, reply in enumerate(replies):
            step = a_firing(a, job, number + 1, number)
            ((granted,),) = [answer or () for answer in await a.store.advance([step])]
            assert isinstance(granted, Granted)
            outcome = Outcome(State.DONE, reply=reply, tokens_in=7, tokens_out=9)
            await _carry_through(a, step.runs[0], granted, outcome)
            expected.insert(0, summary_of(outcome))
            record = await a.store.find_job(job)
            assert record is not None
            assert record.last is not None
            assert record.last.outcome == expected[0]
        lines = (await a.store.job_log(LogQuery())).entries
        assert [line.outcome for line in lines] == expected


async def _carry_through(node: Node, run: Run, granted: Granted, outcome: Outcome) -> None:
    now = node.clock.now()
    await node.store.record([Start(run, 1, 1, granted.epoch, now)])
    await node.store.record([Finish(run, outcome, 1, granted.epoch, now, now)])


# Forgetting.


@on_a_loop
async def test_d8_lines_are_forgotten_a_few_at_a_time_and_told_as_more_to_come() -> None:
    settings = Settings(retention=MINUTE)
    async with nodes("a", settings=settings) as (a,):
        (job,) = await add_many(a, 1)
        now = a.clock.now()
        lines = tuple(Entry(job, now + n, Fired.SKIPPED, now, reason="busy") for n in range(25))
        await a.store.advance([Advance(job, 1, Ticking(next_at=now), entries=lines)])
        a.clock.advance(MINUTE - 1)
        assert await a.store.prune(10) == 0
        a.clock.advance(1)
        assert [await a.store.prune(10) for _ in range(3)] == [10, 10, 0]
        assert (await a.store.job_log(LogQuery())).entries == ()


@on_a_loop
async def test_n15_a_notice_is_put_into_the_outbox_with_the_step_or_not_at_all() -> None:
    async with nodes("a") as (a,):
        jobs = await add_many(a, 2)
        now = a.clock.now()
        until = now + 10 * SECOND

        def step(job: JobId, version: int, name: str) -> Advance:
            said = Delivery(
                name, Route("web"), "paused", RunId("r"), SessionKey("s"), 0, first_at=now,
                once="k", once_until=until,
            )  # fmt: skip
            return Advance(job, version, Ticking(), enabled=False, notices=(said,))

        answers = await a.store.advance(
            [step(jobs[0], 7, "stale"), step(jobs[1], 1, "kept"), step(jobs[0], 1, "repeated")]
        )
        assert answers == [None, (), ()]
        letters = (await a.store.letters(LetterQuery(dead=False))).letters
        assert [letter.id for letter in letters] == ["kept"]
        await a.ear.until(Hint.ENDED)
