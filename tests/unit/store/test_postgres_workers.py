"""Workers and trees in the PostgreSQL store, beyond the contract: indexes, round trips, locks, two versions."""

import asyncio
from contextlib import suppress

import asyncpg
import msgspec
import pytest

from headway import Settings
from headway.core.actions import Finish, Start
from headway.model.time import DAY
from headway.model.words import WorkerState
from headway.ports import Granted, SnapshotQuery, WorkerQuery
from headway.store.postgres import PostgresStore, schema
from headway.store.postgres.connections import Connections
from headway.store.postgres.statements import migrations
from headway.testing import VirtualClock
from tests.contract.workers_contract import SNAPSHOT, a_worker
from tests.contract.world import ask
from tests.postgres import fresh_url
from tests.unit.store.test_postgres import DONE, LEASE, Node, nodes, on_a_loop, sql

DEAD = WorkerState.DEAD
MANY = 20_000
FILL = f"""
insert into {{0}}.workers (id, agent, host, node, process, started_at, at, dead_at, state, body)
select 'r-' || n, 'a' || n % 50, 'h' || n % 50, 1, '', n, n, case when n % 100 > 0 then n end, 'dead', '{{{{}}}}'
from generate_series(1, {MANY}) n;
insert into {{0}}.beats (worker, at, body) select 'r-' || n % 500, n, '{{{{}}}}' from generate_series(1, {MANY}) n;
insert into {{0}}.snapshots (host, at, node, body)
select 'h' || n % 3, n, n % 3, '{{{{}}}}' from generate_series(1, {MANY}) n;
insert into {{0}}.kin (ancestor, run) select 'r-' || n % 500, 'r-' || n from generate_series(1, {MANY}) n;
insert into {{0}}.runs (id, session, seq, agent, task, body)
select 'r-' || n, 's', n, 'a', false, '{{{{}}}}' from generate_series(1, {MANY}) n;
analyze {{0}}.workers, {{0}}.beats, {{0}}.snapshots, {{0}}.kin, {{0}}.runs;
"""


class _Spy(Connections):
    """Knows what was asked."""

    def __init__(self, connections: Connections) -> None:
        self.__dict__ = connections.__dict__
        self.asked: list[tuple[str, tuple[object, ...]]] = []

    async def call(
        self, statement: str, *values: object, within: float = 1.8
    ) -> list[asyncpg.Record]:
        self.asked.append((statement, values))
        return await super().call(statement, *values, within=within)


def _spied(store: PostgresStore) -> _Spy:
    spy = _Spy(store._connections)
    store._connections = spy
    store._workers._connections = spy
    return spy


@on_a_loop
async def test_d8_no_table_is_read_whole_and_each_call_is_one_round_trip() -> None:
    url = fresh_url()
    async with nodes("one", url=url) as (node,), sql(url) as (connection, name):
        await connection.execute(FILL.format(name))
        spy, store = _spied(node.store), node.store
        for asking, index in (
            (store.workers(WorkerQuery(limit=5)), "workers_living"),
            (store.workers(WorkerQuery(limit=5, agent="a0")), "workers_living"),
            (store.workers(WorkerQuery(limit=5, cursor='[900,"r-900"]')), "workers_living"),
            (store.workers(WorkerQuery(limit=5, state=DEAD)), "workers_dead"),
            (store.workers(WorkerQuery(limit=5, state=DEAD, agent="a7")), "workers_dead_of_agent"),
            (store.workers(WorkerQuery(limit=5, state=DEAD, host="h7")), "workers_dead_of_host"),
            (store.find_worker("r-7"), "workers_pkey"),
            (store.beats("r-7", 5), "beats_pkey"),
            (store.machines(), "snapshots_pkey"),
            (store.snapshots(SnapshotQuery(limit=5)), "snapshots_at"),
            (store.snapshots(SnapshotQuery(limit=5, host="h1")), "snapshots_pkey"),
            (store.descendants("r-7", 10), "kin_pkey"),  # type: ignore[arg-type]
        ):
            spy.asked.clear()
            with suppress(msgspec.ValidationError):
                # Not all that was filled in can be read as a value; what was asked is of interest here.
                await asking
            ((statement, values),) = spy.asked
            plan = await _plan(connection, statement, values)
            assert index in plan, plan
            assert "Seq Scan" not in plan, plan


async def _plan(connection: asyncpg.Connection, statement: str, values: tuple[object, ...]) -> str:
    rows = await connection.fetch(f"explain {statement}", *values)
    return "\n".join(row[0] for row in rows)


@on_a_loop
async def test_d8_what_is_forgotten_is_found_by_an_index() -> None:
    url = fresh_url()
    async with nodes("one", url=url) as (node,), sql(url) as (connection, name):
        await connection.execute(FILL.format(name))
        statement = node.store._workers._sql["prune_workers"]
        plan = await _plan(connection, statement, (50, 50, 10))
        for index in ("beats_at", "snapshots_at", "workers_ended", "workers_living"):
            assert index in plan, plan
        assert "Seq Scan" not in plan, plan


@on_a_loop
async def test_d8_pruning_waits_for_nobody_and_nobody_for_it() -> None:
    """What another transaction holds is left for the next time."""
    url = fresh_url()
    async with nodes("one", url=url) as (node,), sql(url) as (connection, name):
        store = node.store
        now = node.clock.now()
        await store.beat([a_worker("r-1.1"), a_worker("r-2.1", DEAD), a_worker("r-3.1", DEAD)], now)
        await store.keep_snapshot(SNAPSHOT)
        node.clock.advance(31 * DAY)
        held = connection.transaction()
        await held.start()
        await connection.execute(
            f"select from {name}.workers where id in ('r-1.1', 'r-2.1') for update;"
            f"select from {name}.beats where worker = 'r-1.1' for update"
        )
        await store.prune(10)
        await held.rollback()
        left = await connection.fetch(f"select id from {name}.workers order by id")
        assert [row["id"] for row in left] == ["r-1.1", "r-2.1"]
        assert await connection.fetchval(f"select count(*) from {name}.beats") == 1
        await store.prune(10)
        assert await connection.fetchval(f"select count(*) from {name}.workers") == 0
        assert await connection.fetchval(f"select count(*) from {name}.beats") == 0


@on_a_loop
async def test_d8_a_beat_touches_no_index_of_its_worker() -> None:
    """Rows that are changed each minute for days must not make every index grow."""
    url = fresh_url()
    async with nodes("one", url=url) as (node,), sql(url) as (connection, name):
        workers = [a_worker(f"r-{number}.1") for number in range(5)]
        await node.store.beat(workers, 1)
        before = await connection.fetchval(f"select pg_relation_size('{name}.workers_living')")
        seen = await connection.fetch(f"select (ctid::text::point)[0] as page from {name}.workers")
        for at in range(2, 40):
            await node.store.beat(workers, at)
        after = await connection.fetchval(f"select pg_relation_size('{name}.workers_living')")
        assert after == before
        moved = await connection.fetch(f"select (ctid::text::point)[0] as page from {name}.workers")
        assert {row["page"] for row in moved} == {row["page"] for row in seen}
        async with asyncio.timeout(60):
            # The server counts what a connection did a moment after it, or when that ends.
            await node.store.close()
            while not await connection.fetchval(
                "select n_tup_hot_upd from pg_stat_user_tables"
                f" where relid = '{name}.workers'::regclass and n_tup_upd > 100"
            ):
                await connection.execute("select pg_stat_clear_snapshot()")
                await asyncio.sleep(0.01)
        share = await connection.fetchval(
            "select n_tup_hot_upd::float / n_tup_upd from pg_stat_user_tables"
            f" where relid = '{name}.workers'::regclass"
        )
        assert share > 0.9


@on_a_loop
async def test_d10_an_older_node_goes_on_and_its_sub_runs_are_in_the_tree() -> None:
    """What it had unfinished before the newer one came, and what it begins after."""
    url = fresh_url()
    clock = VirtualClock()
    older, newer = (Node(url, Settings(), clock) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "migrations", lambda name: migrations(name)[:-1])
        await older.store.open()
        assert await older.store.enlist("older", LEASE)
    top = older.run("top")
    granted = await ask(older.store, top)
    assert isinstance(granted, Granted)
    await older.store.record([Start(top, 1, 1, granted.epoch, 0)])
    below = {"parent": top.id, "ancestors": (top.id,), "root": top.session}
    before = older.run("before", "s-1", **below)
    await ask(older.store, before)
    await newer.open("newer")
    after = older.run("after", "s-2", **below)
    taken = await ask(older.store, after)
    assert isinstance(taken, Granted)
    ids = [view.id for view in await newer.store.descendants(top.id, 9)]
    assert ids == ["top", "before", "after"]
    await older.store.record([Start(after, 2, 1, taken.epoch, 0)])
    await older.store.record([Finish(after, DONE, 1, taken.epoch, 0)])
    assert [view.id for view in await newer.store.descendants(top.id, 9)] == ids
    async with sql(url) as (connection, name):
        # An older node forgets runs by this call alone.
        gone = await connection.fetchval(f"select {name}.prune_v1(5, 5, 5, 10)")
        assert gone == 1
        assert [view.id for view in await newer.store.descendants(top.id, 9)] == ids[:2]
        left = await connection.fetch(f"select ancestor, run from {name}.kin")
        assert [tuple(row) for row in left] == [("top", "before")], "and leaves nothing behind"
    await older.store.close()
    await newer.store.close()


@on_a_loop
async def test_d10_workers_of_a_newer_version_are_left_out() -> None:
    """A page without them goes on where it would have."""
    url = fresh_url()
    async with nodes("one", url=url) as (node,), sql(url) as (connection, name):
        store = node.store
        await store.beat([a_worker(f"r-{number}.1", started_at=number) for number in range(4)], 9)
        await connection.execute(
            f"update {name}.workers set body = replace(body, '\"command\"', '\"dream\"')"
            " where id in ('r-2.1', 'r-3.1');"
            f"update {name}.beats set body = '{{\"state\":\"dreaming\"}}' where worker = 'r-1.1'"
        )
        first = await store.workers(WorkerQuery(limit=2))
        assert first.workers == ()
        second = await store.workers(WorkerQuery(limit=2, cursor=first.cursor))
        assert [worker.id for worker in second.workers] == ["r-1.1", "r-0.1"]
        assert await store.find_worker("r-2.1") is None
        assert list(await store.beats("r-1.1", 5)) == []


@on_a_loop
async def test_d8_nodes_that_tell_of_the_same_workers_do_not_deadlock() -> None:
    async with nodes("one", "two") as (one, two):
        workers = [a_worker(f"r-{number}.1") for number in range(50)]
        for at in range(10):
            await asyncio.gather(
                one.store.beat(workers, 2 * at), two.store.beat(workers[::-1], 2 * at + 1)
            )
        page = await one.store.workers(WorkerQuery())
        assert len(page.workers) == 50
