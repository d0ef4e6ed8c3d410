"""Runs that are kept all or none, on PostgreSQL: lost connections, many calls in one transaction, a pooler."""

import asyncio
from collections.abc import Sequence

import asyncpg
import pytest

from headway.model.errors import InvalidInput, StoreUnavailable
from headway.model.outcome import Json
from headway.model.run import Run
from headway.model.settings import Limits
from headway.model.task import Task
from headway.model.words import Source
from headway.ports import Admission, Duplicate, Granted, RunQuery, TurnedAway
from headway.store.postgres.admissions import Asked, without_clashes
from headway.store.postgres.together import _parts_of
from tests.postgres import Pooler, fresh_url, own_server, with_option
from tests.unit.store.test_postgres import Node, nodes, on_a_loop, sql


def _tasks(node: Node, *names: str, **fields: object) -> list[Run]:
    return [node.run(name, name, source=Source.TASK, **fields) for name in names]


async def _together(node: Node, runs: Sequence[Run]) -> Sequence[Admission] | TurnedAway:
    return await node.store.admit_together(runs, [True] * len(runs))


@on_a_loop
async def test_n15_a_commit_whose_answer_is_lost_is_found_by_repeating_it() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,):
        tasks = [*_tasks(a, "r1", "r2", idempotency_key="k"), *_tasks(a, "r3")]
        connections = a.store._connections
        call_all = connections.call_all

        async def lossy(
            statement: str, calls: Sequence[Sequence[object]], **rest: object
        ) -> list[list[asyncpg.Record]]:
            await call_all(statement, calls, **rest)  # type: ignore[arg-type]
            raise StoreUnavailable("postgres", "the connection was lost")

        connections.call_all = lossy  # type: ignore[method-assign, assignment]
        with pytest.raises(StoreUnavailable):
            await _together(a, tasks)
        connections.call_all = call_all  # type: ignore[method-assign]
        answers = await _together(a, tasks)
        assert not isinstance(answers, TurnedAway)
        assert [type(answer) for answer in answers] == [Granted, Duplicate, Granted]
        found = await a.store.news({}, complete=True)
        ids = [place.run.id for holding in found for place in holding.places]
        assert sorted(ids) == ["r1", "r3"]


@on_a_loop
async def test_t5_more_than_one_call_can_take_are_one_transaction() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,):
        a.store.set_limits(Limits(max_queue=1_200, max_queue_per_agent=1_200))
        names = [f"r{number:04}" for number in range(1_201)]
        assert isinstance(await _together(a, _tasks(a, *names)), TurnedAway)
        assert not (await a.store.list(RunQuery())).runs
        async with sql(url) as (connection, schema):
            for table in ("sessions", "queue", "runs", "endings", "keys"):
                assert not await connection.fetchval(f"select count(*) from {schema}.{table}")
        answers = await _together(a, _tasks(a, *names[:1_200]))
        assert not isinstance(answers, TurnedAway)
        assert all(isinstance(answer, Granted) and answer.fresh for answer in answers)


@on_a_loop
async def test_n15_large_tasks_are_not_all_written_with_one_call() -> None:
    async with nodes("a") as (a,):
        large = Task("upload", params={"data": "x" * 1_000_000, "half": "\ud83d"})
        tasks = _tasks(a, *(f"r{number}" for number in range(9)), task=large)
        assert [len(part) for part in _parts_of([_asked(task) for task in tasks])] == [4, 4, 1]
        batch, later = without_clashes([_asked(task) for task in tasks])
        assert (len(batch), len(later)) == (4, 5)
        answers = await _together(a, tasks)
        assert not isinstance(answers, TurnedAway)
        assert all(isinstance(answer, Granted) for answer in answers)


def _asked(run: Run) -> Asked:
    return Asked(run, False, True, asyncio.get_running_loop().create_future())


@on_a_loop
async def test_n15_a_task_too_deep_to_be_written_fails_alone() -> None:
    async with nodes("a") as (a,):
        nested: Json = None
        for _ in range(5_000):
            nested = [nested]
        deep = _tasks(a, "deep", task=Task("dig", params={"nested": nested}))
        plain = _tasks(a, "r1", "r2")
        said = await asyncio.gather(
            a.store.admit(plain[0]),
            a.store.admit(deep[0]),
            a.store.admit(plain[1]),
            _together(a, deep),
            return_exceptions=True,
        )
        assert [type(answer) for answer in said] == [Granted, InvalidInput, Granted, InvalidInput]


@on_a_loop
async def test_n15_an_id_that_comes_twice_is_a_mistake_of_the_caller() -> None:
    async with nodes("a") as (a,):
        with pytest.raises(InvalidInput):
            await _together(a, _tasks(a, "r1", "r2", "r1"))
        assert not (await a.store.list(RunQuery())).runs


@on_a_loop
async def test_t1_a_list_of_tasks_looks_at_tasks_only() -> None:
    url = fresh_url()
    async with nodes("a", url=url) as (a,):
        messages = [a.run(f"m{number}", "chat") for number in range(400)]
        await asyncio.gather(*(a.store.admit(run) for run in messages))
        await _together(a, _tasks(a, "r1", "r2"))
        async with sql(url) as (connection, schema):
            await connection.execute(f"analyze {schema}.runs")
            rows = await connection.fetch(
                f"explain select body from {schema}.runs r where r.number <= 1000000 and r.task"
                " order by r.number desc limit 10"
            )
        assert "runs_tasks" in "\n".join(row[0] for row in rows)
        page = await a.store.list(RunQuery(source=Source.TASK))
        assert [view.id for view in page.runs] == ["r2", "r1"]


def test_t5_behind_a_pooler_all_or_none_are_kept() -> None:
    pooler = Pooler(own_server())

    async def main() -> None:
        schema = fresh_url().rpartition("=")[2]
        async with nodes("a", url=with_option(pooler.url, "schema", schema)) as (a,):
            a.store.set_limits(Limits(max_queue=4, max_queue_per_agent=4))
            many = [_tasks(a, f"{n}-1", f"{n}-2", idempotency_key=str(n)) for n in range(20)]
            answers = await asyncio.gather(*(_together(a, tasks) for tasks in many))
            kept = [one for one in answers if not isinstance(one, TurnedAway)]
            assert len(kept) == 4
            assert all([type(one) for one in said] == [Granted, Duplicate] for said in kept)
            assert len((await a.store.list(RunQuery())).runs) == 4

    try:
        asyncio.run(main())
    finally:
        pooler.stop()
