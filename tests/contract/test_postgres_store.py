"""The PostgreSQL store keeps the contract of all stores."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
import pytest

from headway import Settings
from headway.ports import Clock, Store
from headway.store.postgres import PostgresStore
from tests.contract.adoption_contract import RestartContract
from tests.contract.durable_contract import DurableContract
from tests.contract.durable_timetable_contract import DurableTimetableContract
from tests.contract.reading_contract import ReadingContract
from tests.contract.together_contract import DurableTogetherContract
from tests.contract.vault_contract import DurableVaultContract
from tests.contract.workers_contract import DurableWorkersContract
from tests.contract.world import Maker, Suite
from tests.postgres import ELSEWHERE, fresh_url


class _OnPostgres(Suite):
    @contextmanager
    def database(self) -> Iterator[Maker]:
        url = fresh_url()

        def made(settings: Settings, clock: Clock) -> PostgresStore:
            return PostgresStore(url, settings, clock)

        yield made


class TestPostgresStore(_OnPostgres, DurableContract):
    pass


class TestPostgresRestart(_OnPostgres, RestartContract):
    pass


class TestPostgresTimetable(_OnPostgres, DurableTimetableContract):
    pass


class TestPostgresTogether(_OnPostgres, DurableTogetherContract):
    pass


class TestPostgresVault(_OnPostgres, DurableVaultContract):
    pass


class TestPostgresWorkers(_OnPostgres, DurableWorkersContract):
    pass


@pytest.mark.skipif(ELSEWHERE in os.environ, reason="others write on that server meanwhile")
class TestReadingPostgres(_OnPostgres, ReadingContract):
    async def footprint(self, store: Store) -> object:
        """The number that the next transaction gets which writes: one that only reads gets none."""
        assert isinstance(store, PostgresStore)
        while store._tasks:
            # A hint about what was written before is a transaction too, and comes a moment later.
            await asyncio.wait(store._tasks)
        connection = await asyncpg.connect(store._address.url)
        number = await connection.fetchval("select pg_snapshot_xmax(pg_current_snapshot())::text")
        await connection.close()
        return number
