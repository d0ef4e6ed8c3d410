"""The PostgreSQL store behind a pooler in transaction mode: no state in sessions, hints by a direct connection."""

import asyncio
from collections.abc import Iterator

import pytest

from headway.core.actions import Finish, Start
from headway.ports import Elsewhere, Granted, Hint
from tests.postgres import Pooler, fresh_url, own_server, with_option
from tests.unit.store.test_postgres import DONE, nodes


@pytest.fixture(scope="module")
def pooler() -> Iterator[Pooler]:
    pooler = Pooler(own_server())
    yield pooler
    pooler.stop()


def _behind(pooler: Pooler) -> str:
    schema = fresh_url().rpartition("=")[2]
    return with_option(pooler.url, "schema", schema)


def test_n16_behind_a_pooler_everything_works_but_hints(pooler: Pooler) -> None:
    async def main() -> None:
        async with nodes("a", "b", url=_behind(pooler)) as (a, b):
            runs = [a.run(f"r{number}", f"s{number}") for number in range(200)]
            answers = await asyncio.gather(*(a.store.admit(run) for run in runs))
            granted = [answer for answer in answers if isinstance(answer, Granted)]
            assert len(granted) == 200
            now = a.clock.now()
            starts = [
                Start(run, 1, 1, grant.epoch, now) for run, grant in zip(runs, granted, strict=True)
            ]
            await asyncio.gather(*(a.store.record([start]) for start in starts))
            assert await b.store.admit(b.run("b-1", "s7")) == Elsewhere(2)
            await a.store.record([Finish(start.run, DONE, 1, start.epoch, now) for start in starts])
            assert len(await b.store.outcomes([run.id for run in runs])) == 200
            (holding,) = await a.store.news({run.session: 1 for run in runs})
            assert holding.session == "s7"
            assert not a.store._hints.working.is_set()
            assert (await b.store.renew()).peers[0].id == a.number

    asyncio.run(main())


def test_n16_with_a_direct_connection_beside_the_pooler_hints_arrive(pooler: Pooler) -> None:
    async def main() -> None:
        url = with_option(_behind(pooler), "listen", own_server().url)
        async with nodes("a", "b", url=url) as (a, b):
            await a.listens()
            await b.store.admit(b.run("r"), claim=False)
            await a.ear.until(Hint.WORK)

    asyncio.run(main())
