"""The PostgreSQL store keeps the contract of all stores."""

from collections.abc import Iterator
from contextlib import contextmanager

from headway import Settings
from headway.ports import Clock
from headway.store.postgres import PostgresStore
from tests.contract.durable_contract import DurableContract
from tests.contract.durable_timetable_contract import DurableTimetableContract
from tests.contract.together_contract import DurableTogetherContract
from tests.contract.vault_contract import DurableVaultContract
from tests.contract.world import Maker, Suite
from tests.postgres import fresh_url


class _OnPostgres(Suite):
    @contextmanager
    def database(self) -> Iterator[Maker]:
        url = fresh_url()

        def made(settings: Settings, clock: Clock) -> PostgresStore:
            return PostgresStore(url, settings, clock)

        yield made


class TestPostgresStore(_OnPostgres, DurableContract):
    pass


class TestPostgresTimetable(_OnPostgres, DurableTimetableContract):
    pass


class TestPostgresTogether(_OnPostgres, DurableTogetherContract):
    pass


class TestPostgresVault(_OnPostgres, DurableVaultContract):
    pass
