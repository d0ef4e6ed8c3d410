"""The PostgreSQL store: opening, migrations, many nodes at once, lost connections, indexes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest

from headway import Outcome, Reply, Settings, State
from headway.core.actions import Action, Finish, Release, Start
from headway.model.errors import InvalidInput, StoreRefused, StoreUnavailable
from headway.model.run import AgentName, LaneName, Run, RunId, SessionKey
from headway.model.settings import Limits
from headway.model.time import SECOND
from headway.model.words import Reason, Source
from headway.ports import KEPT, Claims, Elsewhere, Granted, Hint, Peer, TurnedAway
from headway.store.postgres import PostgresStore
from headway.store.postgres.address import address_of
from headway.testing import VirtualClock
from tests.postgres import (
    GUARDED_USER,
    PostgresServer,
    fresh_url,
    own_server,
    server_url,
    with_option,
)

MAIN = LaneName("main")
AGENT = AgentName("a")
DONE = Outcome(State.DONE, reply=Reply("hello"))
LEASE = 30 * SECOND


SOON_S = 12.0
"""It is a matter of two seconds, and of some more on a busy machine; what hangs takes longer."""


class Ear:
    """Hears hints, and lets a test wait for one."""

    def __init__(self) -> None:
        self.hints: list[Hint] = []
        self._heard = asyncio.Event()

    def __call__(self, hint: Hint) -> None:
        self.hints.append(hint)
        self._heard.set()

    async def until(self, hint: Hint) -> None:
        async with asyncio.timeout(60):
            while hint not in self.hints:
                self._heard.clear()
                await self._heard.wait()
        self.hints.clear()


class Node:
    """A store that acts for a node, and short ways to ask it."""

    def __init__(self, url: str, settings: Settings, clock: VirtualClock) -> None:
        self.store = PostgresStore(url, settings, clock)
        self.clock = clock
        self.ear = Ear()
        self.number = 0

    async def open(self, name: str) -> None:
        await self.store.open(self.ear)
        self.number = await self.store.enlist(name, LEASE)

    async def listens(self) -> None:
        """Until hints of others arrive here."""
        async with asyncio.timeout(60):
            await self.store._hints.working.wait()

    def run(self, name: str, session: str = "s", **fields: object) -> Run:
        said: dict[str, object] = {
            "id": RunId(name),
            "agent": AGENT,
            "session": SessionKey(session),
            "source": Source.MESSAGE,
            "lane": MAIN,
            "priority": 0,
            "submitted_at": self.clock.now(),
            **fields,
        }
        return Run(**said)  # type: ignore[arg-type]

    async def claim(self, room: int = 10) -> Claims:
        return await self.store.claim({MAIN: room}, [AGENT], self.clock.now())


@asynccontextmanager
async def nodes(
    *names: str, settings: Settings | None = None, url: str | None = None
) -> AsyncIterator[list[Node]]:
    url = url or fresh_url()
    clock = VirtualClock()
    made = [Node(url, settings or Settings(), clock) for _ in names]
    try:
        for node, name in zip(made, names, strict=True):
            await node.open(name)
        for node in made:
            await node.store.renew()
        yield made
    finally:
        for node in made:
            await node.store.close()


def on_a_loop(test: Callable[..., Coroutine[object, object, None]]) -> Callable[[], None]:
    def run() -> None:
        server_url()
        asyncio.run(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@asynccontextmanager
async def sql(url: str) -> AsyncIterator[tuple[asyncpg.Connection, str]]:
    """A connection beside the store, and the name of its schema."""
    address = address_of(url)
    connection = await asyncpg.connect(address.url)
    try:
        yield connection, address.schema
    finally:
        await connection.close()


@contextmanager
def refused(error: type[StoreRefused | StoreUnavailable], *words: str) -> Iterator[None]:
    with pytest.raises(error) as caught:
        yield
    for word in words:
        assert word in str(caught.value)


async def opens(url: str) -> None:
    store = PostgresStore(url, Settings(), VirtualClock())
    try:
        await store.open()
    finally:
        await store.close()


# Opening.


@on_a_loop
async def test_a_wrong_password_is_refused_and_never_shown() -> None:
    server = own_server()
    url = f"postgresql://{GUARDED_USER}:not-this@{server.host}:{server.port}/postgres"
    with pytest.raises(StoreRefused) as caught:
        await opens(url)
    text = str(caught.value)
    assert GUARDED_USER in text
    assert server.host in text
    assert "password" in text
    assert "not-this" not in text


@on_a_loop
async def test_a_missing_database_is_refused_by_its_name() -> None:
    server = own_server()
    with refused(StoreRefused, "nowhere", "no such database"):
        await opens(f"postgresql://postgres@{server.host}:{server.port}/nowhere")


@on_a_loop
async def test_a_server_that_is_not_there_is_unavailable_at_once() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with refused(StoreUnavailable, "127.0.0.1:1", "cannot be reached"):
        await opens("postgresql://postgres@127.0.0.1:1/postgres")
    assert loop.time() - began < SOON_S


@on_a_loop
async def test_a_user_who_may_not_create_the_schema_is_told_what_to_grant() -> None:
    schema = address_of(fresh_url()).schema
    server = own_server()
    connection = await asyncpg.connect(
        f"postgresql://postgres@{server.host}:{server.port}/postgres"
    )
    await connection.execute("drop role if exists humble")
    await connection.execute("create role humble login")
    await connection.close()
    humble = f"postgresql://humble@{server.host}:{server.port}/postgres?schema={schema}"
    with refused(StoreRefused, "humble", "grant"):
        await opens(humble)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://host/database",
        "postgresql://host/database?schema=a;drop",
        "postgresql://host:port/database",
        "postgresql://host/database?schema=Grand",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(StoreRefused):
        address_of(url)


def test_an_address_is_shown_without_its_secrets() -> None:
    address = address_of("postgresql://u:secret@h:5/d?password=secret&schema=x&ssl=off")
    assert "secret" not in address.shown
    assert address.schema == "x"
    assert "schema" not in address.url
    assert "ssl=off" in address.url


# Migrations (D-10).


@on_a_loop
async def test_d10_nodes_that_start_at_once_on_an_empty_database_migrate_once() -> None:
    url = fresh_url()
    stores = [PostgresStore(url, Settings(), VirtualClock()) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    numbers = await asyncio.gather(*(store.enlist("n", LEASE) for store in stores))
    assert len(set(numbers)) == 6
    assert await stores[0].migrate() == []
    for store in stores:
        await store.close()


@on_a_loop
async def test_d10_a_program_that_is_too_old_for_the_database_is_refused() -> None:
    url = fresh_url()
    await opens(url)
    async with sql(url) as (connection, schema):
        await connection.execute(f"update {schema}.meta set value = '999' where name = 'minimum'")
    with refused(StoreRefused, "newer Headway", "999"):
        await opens(url)


@on_a_loop
async def test_d10_a_newer_schema_that_allows_this_program_is_used_as_it_is() -> None:
    url = fresh_url()
    await opens(url)
    async with sql(url) as (connection, schema):
        await connection.execute(f"update {schema}.meta set value = '999' where name = 'version'")
        await opens(url)
        assert await connection.fetchval(
            f"select value from {schema}.meta where name = 'version'"
        ) == "999"  # fmt: skip


@on_a_loop
async def test_status_of_an_empty_database_changes_nothing() -> None:
    url = fresh_url()
    found = await PostgresStore(url, Settings(), VirtualClock()).status()
    assert (found.version, len(found.pending)) == (0, found.newest)
    async with sql(url) as (connection, schema):
        assert not await connection.fetchval(
            "select exists (select from pg_namespace where nspname = $1)", schema
        )


# Many nodes at once.


@on_a_loop
async def test_n8_many_claims_at_once_take_each_session_once() -> None:
    async with nodes("a", "b", "c") as members:
        first = members[0]
        for number in range(60):
            await first.store.admit(first.run(f"r{number}", f"s{number}"), claim=False)
        taken: list[SessionKey] = []
        while len(taken) < 60:
            claims = await asyncio.gather(*(node.claim(5) for node in members for _ in range(2)))
            found = [holding.session for claim in claims for holding in claim.holdings]
            assert found
            taken += found
        assert len(set(taken)) == 60


@on_a_loop
async def test_n4_of_a_takeover_and_a_renewal_one_wins() -> None:
    async with nodes("a", "b") as (a, b):
        for turn in range(10):
            number = await a.store.enlist(f"a{turn}", LEASE)
            run = a.run(f"r{turn}", f"s{turn}")
            assert isinstance(await a.store.admit(run), Granted)
            seen = next(p for p in (await b.store.renew()).peers if p.id == number)
            renewal, buried = await asyncio.gather(a.store.renew(), b.store.bury(seen))
            assert renewal.alive != buried


@on_a_loop
async def test_n7_a_release_and_an_insert_of_another_node_lose_nothing() -> None:
    async with nodes("a", "b") as (a, b):
        for turn in range(20):
            session = f"s{turn}"
            run = a.run(f"a{turn}", session)
            granted = await a.store.admit(run)
            assert isinstance(granted, Granted)
            now = a.clock.now()
            await a.store.record([Finish(run, DONE, 1, granted.epoch, now)])
            release = Release(run.session, granted.epoch, granted.seq)
            recorded, answer = await asyncio.gather(
                a.store.record([release]), b.store.admit(b.run(f"b{turn}", session))
            )
            if recorded.kept:
                assert answer == Elsewhere(2)
                (holding,) = await a.store.news({run.session: 1})
                assert [place.run.id for place in holding.places] == [f"b{turn}"]
            else:
                assert isinstance(answer, Granted)
                assert answer.epoch > granted.epoch


@on_a_loop
async def test_n6_the_numbers_of_a_session_have_no_gaps_and_no_doubles() -> None:
    async with nodes("a", "b", "c") as members:
        answers = await asyncio.gather(
            *(
                node.store.admit(node.run(f"{node.number}-{number}"))
                for number in range(100)
                for node in members
            )
        )
        seqs = sorted(answer.seq for answer in answers if isinstance(answer, Granted | Elsewhere))
        assert seqs == list(range(1, 301))


@on_a_loop
async def test_n11_two_live_attempts_in_one_slot_cannot_be_stored() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,):
        run = a.run("r")
        granted = await a.store.admit(run)
        assert isinstance(granted, Granted)
        await a.store.record([Start(run, 1, 1, granted.epoch, a.clock.now())])
        async with sql(url) as (connection, schema):
            with pytest.raises(asyncpg.UniqueViolationError):
                await connection.execute(
                    f"insert into {schema}.attempts"
                    f" select epoch, node, started_at, attempt, slot, task, session, 'other', agent"
                    f" from {schema}.attempts"
                )


@on_a_loop
async def test_f1_small_limits_are_exact_over_nodes_that_ask_at_once() -> None:
    settings = Settings(limits=Limits(max_queue=7, max_queue_per_agent=5))
    async with nodes("a", "b", settings=settings) as members:
        answers = await asyncio.gather(
            *(
                node.store.admit(
                    node.run(
                        f"{node.number}-{number}",
                        f"{node.number}-{number}",
                        source=Source.TASK,
                        agent=AgentName("xy"[number % 2]),
                    )
                )
                for number in range(20)
                for node in members
            )
        )
        assert sum(not isinstance(answer, TurnedAway) for answer in answers) == 7


@on_a_loop
async def test_f1_large_limits_are_held_within_a_part_of_them() -> None:
    settings = Settings(limits=Limits(max_queue=20_000, max_queue_per_agent=20_000))
    async with nodes("a", settings=settings) as (a,):
        for _ in range(3):
            answers = await asyncio.gather(
                *(
                    a.store.admit(a.run(f"{_}-{number}", f"{_}-{number}", source=Source.TASK))
                    for number in range(500)
                )
            )
            assert all(isinstance(answer, Granted) for answer in answers)
        a.store.set_limits(Limits(max_queue=11_000, max_queue_per_agent=1_400))
        answer = await a.store.admit(a.run("more", "more", source=Source.TASK))
        assert answer == TurnedAway(Outcome(State.REJECTED, Reason.QUEUE_FULL))


@on_a_loop
async def test_n15_a_run_that_cannot_be_stored_fails_alone() -> None:
    async with nodes("a") as (a,):
        names = ["fine-1", "nul\0", "fine-2", "half \ud800", "fine-3"]
        answers = await asyncio.gather(
            *(a.store.admit(a.run(name, name)) for name in names), return_exceptions=True
        )
        assert [isinstance(answer, Granted) for answer in answers] == [True, False] * 2 + [True]
        assert all(isinstance(answers[place], InvalidInput) for place in (1, 3))


# Hints (N-16).


@on_a_loop
async def test_n16_work_and_news_and_ends_are_told() -> None:
    async with nodes("a", "b") as (a, b):
        await a.listens()
        await b.listens()
        run = a.run("r")
        granted = await a.store.admit(run)
        assert isinstance(granted, Granted)
        assert await b.store.admit(b.run("b-1")) == Elsewhere(2)
        await a.ear.until(Hint.NEWS)
        (holding,) = await a.store.news({run.session: 1})
        foreign = holding.places[0].run
        await a.store.record([Finish(foreign, DONE, 1, granted.epoch, a.clock.now())])
        await b.ear.until(Hint.ENDED)
        await b.store.admit(b.run("b-2", "t"), claim=False)
        await a.ear.until(Hint.WORK)


@on_a_loop
async def test_n16_a_burst_of_work_is_one_hint() -> None:
    async with nodes("a", "b") as (a, b):
        await a.listens()
        await asyncio.gather(
            *(
                b.store.admit(b.run(f"r{number}", f"s{number}"), claim=False)
                for number in range(400)
            )
        )
        await a.ear.until(Hint.WORK)
        await b.store.admit(b.run("last"))
        assert a.ear.hints.count(Hint.WORK) <= 2


@on_a_loop
async def test_n16_a_listener_that_was_cut_off_comes_back_and_looks_at_everything() -> None:
    url = fresh_url()
    async with nodes("a", "b", url=url) as (a, b):
        await a.listens()
        await a.ear.until(Hint.ALL)
        # That was the look at the start; what counts is the one after the cut.
        async with sql(url) as (connection, schema):
            assert await _terminated(connection, schema)
        await a.ear.until(Hint.ALL)
        await a.listens()
        await b.store.admit(b.run("r"), claim=False)
        await a.ear.until(Hint.WORK)


# Lost connections (D-9).


async def _terminated(connection: asyncpg.Connection, schema: str) -> int:
    """Cut all connections of the stores of a schema."""
    return int(
        await connection.fetchval(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = $1",
            f"headway {schema}",
        )
    )


@on_a_loop
async def test_d9_a_cut_connection_fails_one_call_at_most() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,):
        run = a.run("r")
        granted = await a.store.admit(run)
        assert isinstance(granted, Granted)
        async with sql(url) as (connection, schema):
            assert await _terminated(connection, schema)
        failures = 0
        for _ in range(3):
            try:
                await a.store.record([Start(run, 1, 1, granted.epoch, a.clock.now())])
            except StoreUnavailable:
                failures += 1
        assert failures <= 1
        view = await a.store.find(run.id)
        assert view is not None
        assert view.state is State.RUNNING


def test_d9_a_restart_of_the_server_is_survived() -> None:
    server_url()
    server = PostgresServer()
    server.start()
    try:
        asyncio.run(_over_a_restart(server))
    finally:
        server.remove()


async def _over_a_restart(server: PostgresServer) -> None:
    loop = asyncio.get_running_loop()
    async with nodes("a", url=with_option(server.url, "schema", "one")) as (a,):
        run = a.run("r")
        granted = await a.store.admit(run)
        assert isinstance(granted, Granted)
        await a.listens()
        await asyncio.to_thread(server.stop)
        began = loop.time()
        calls = [a.store.renew(), a.store.record([Start(run, 1, 1, granted.epoch, 0)])]
        for call in (*calls, a.store.admit(a.run("while-down"))):
            with pytest.raises(StoreUnavailable):
                await call
        assert loop.time() - began < SOON_S
        await asyncio.to_thread(server.start)
        async with asyncio.timeout(60):
            while True:
                try:
                    await a.store.record([Start(run, 1, 1, granted.epoch, 0)])
                    break
                except StoreUnavailable:
                    await asyncio.sleep(0.05)
        assert (await a.store.renew()).alive
        await a.ear.until(Hint.ALL)


@on_a_loop
async def test_d9_a_lock_that_is_never_given_up_does_not_hang_the_store() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,):
        run = a.run("r")
        assert isinstance(await a.store.admit(run), Granted)
        async with sql(url) as (connection, schema), connection.transaction():
            await connection.execute(f"select from {schema}.sessions for update")
            loop = asyncio.get_running_loop()
            began = loop.time()
            with pytest.raises(StoreUnavailable):
                await a.store.admit(a.run("r2"))
            assert loop.time() - began < SOON_S
        assert isinstance(await a.store.admit(a.run("r2")), Granted)


# Indexes (N-17).


@on_a_loop
async def test_n17_a_claim_reads_few_rows_however_many_wait() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,), sql(url) as (connection, schema):
        await connection.execute(
            f"insert into {schema}.sessions (key, epoch, last_seq, lane, agent, rank, ready_at)"
            " select 'k' || n, 1, 1, 'main', case when n = 50000 then 'few' else 'crowd' end, n, 0"
            " from generate_series(1, 50000) n"
        )
        agents = [AgentName("crowd"), AgentName("few"), AgentName("nobody")]
        async with connection.transaction():
            rows = await connection.fetch(
                f"select * from {schema}.claim_v2($1, $2, $2, $3, $4, $5, 100, 1000, '{{}}', 'h')",
                *(a.number, a.clock.now(), [MAIN], [10], agents),
            )
            read = await connection.fetchrow(
                "select seq_scan, idx_tup_fetch,"
                f" pg_stat_get_xact_numscans('{schema}.sessions_ready'::regclass) as by_index"
                " from pg_stat_xact_user_tables where schemaname = $1 and relname = 'sessions'",
                schema,
            )
        assert read is not None
        assert "k50000" in {row["session"] for row in rows}
        assert len([row for row in rows if row["kind"] == "session"]) == 10
        assert read["seq_scan"] == 0
        assert read["idx_tup_fetch"] < 200
        assert read["by_index"] > 0


@on_a_loop
async def test_w2_what_is_left_to_its_machine_costs_a_claim_little() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,), sql(url) as (connection, schema):
        await connection.execute(
            f"insert into {schema}.sessions"
            " (key, epoch, last_seq, lane, agent, rank, ready_at, reserved_for, reserved_until)"
            " select 'k' || n, 1, 1, 'main', 'crowd', n, 0,"
            " case when n <= 100 then 'elsewhere' end, case when n <= 100 then $1::bigint end"
            " from generate_series(1, 50000) n",
            a.clock.now() + 1,
        )
        async with connection.transaction():
            rows = await connection.fetch(
                f"select * from {schema}.claim_v2($1, $2, $2, $3, $4, $5, 100, 1000, '{{}}', 'here')",
                *(a.number, a.clock.now(), [MAIN], [10], [AgentName("crowd")]),
            )
            read = await connection.fetchrow(
                "select seq_scan, idx_tup_fetch from pg_stat_xact_user_tables"
                " where schemaname = $1 and relname = 'sessions'",
                schema,
            )
        assert read is not None
        taken = {row["session"] for row in rows if row["kind"] == "session"}
        assert taken == {f"k{number}" for number in range(101, 111)}
        assert rows[-1]["number"] == a.clock.now() + 1, "when the first of them is free"
        assert read["seq_scan"] == 0
        assert read["idx_tup_fetch"] < 800


@on_a_loop
async def test_a_peer_that_moved_is_not_buried() -> None:
    async with nodes("a", "b") as (a, b):
        (peer,) = (await b.store.renew()).peers
        await a.store.renew()
        assert not await b.store.bury(peer)
        assert await b.store.bury(Peer(peer.id, peer.counter + 1, peer.lease))


def test_urls_of_tests_name_a_schema_of_their_own() -> None:
    assert urlsplit(fresh_url()).query != urlsplit(fresh_url()).query


@on_a_loop
async def test_n9_a_run_that_has_ended_is_not_started_again() -> None:
    """Old news may bring it back to its owner: the attempt is not kept, so it is not carried out."""
    async with nodes("a") as (a,):
        run = a.run("r")
        granted = await a.store.admit(run)
        assert isinstance(granted, Granted)
        now = a.clock.now()
        start = Start(run, 1, 1, granted.epoch, now)
        finish = Finish(run, DONE, 1, granted.epoch, now)
        assert (await a.store.record([start])).lost == ()
        recorded = await a.store.record([finish, start])
        assert recorded.lost == ((run.session, granted.epoch),)
        view = await a.store.find(run.id)
        assert view is not None
        assert view.state is State.DONE
        assert (await a.store.nodes())[0].running == 0


@on_a_loop
async def test_n15_a_start_and_its_end_in_one_batch_leave_no_attempt_behind() -> None:
    async with nodes("a") as (a,):
        run = a.run("r")
        granted = await a.store.admit(run)
        assert isinstance(granted, Granted)
        now = a.clock.now()
        batch: list[Action] = [
            Start(run, 1, 1, granted.epoch, now),
            Finish(run, DONE, 1, granted.epoch, now, now),
        ]
        for _ in range(2):
            assert await a.store.record(batch) == KEPT
        assert (await a.store.nodes())[0].running == 0


@on_a_loop
async def test_n15_an_outcome_that_no_database_takes_still_ends_its_run() -> None:
    async with nodes("a") as (a,):
        runs = [a.run(f"r{number}", f"s{number}") for number in range(3)]
        grants = await asyncio.gather(*(a.store.admit(run) for run in runs))
        odd = Outcome(State.DONE, reply=Reply("x", data={"when": object()}))  # type: ignore[dict-item]
        outcomes = [DONE, odd, DONE]
        now = a.clock.now()
        await a.store.record(
            [
                Finish(run, outcome, 1, grant.epoch, now)
                for run, outcome, grant in zip(runs, outcomes, grants, strict=True)
                if isinstance(grant, Granted)
            ]
        )
        ended = await a.store.outcomes([run.id for run in runs])
        assert [ended[run.id].state for run in runs] == [State.DONE, State.FAILED, State.DONE]
