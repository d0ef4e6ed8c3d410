"""PostgreSQL keeps the rules for many nodes."""

from collections.abc import Iterator
from contextlib import contextmanager

from headway.store.postgres import PostgresStore
from tests.contract.shared_contract import SharedStoreContract
from tests.contract.world import Maker
from tests.postgres import fresh_url


class TestPostgresNodes(SharedStoreContract):
    @contextmanager
    def database(self) -> Iterator[Maker]:
        url = fresh_url()
        yield lambda settings, clock: PostgresStore(url, settings, clock)
