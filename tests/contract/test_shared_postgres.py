"""PostgreSQL keeps the rules for many nodes."""

from collections.abc import Iterator
from contextlib import contextmanager

from headway.store.postgres import PostgresStore
from tests.contract.adoption_contract import AdoptionContract
from tests.contract.shared_contract import SharedStoreContract
from tests.contract.shared_timetable_contract import SharedTimetableContract
from tests.contract.together_contract import SharedTogetherContract
from tests.contract.world import Maker, Suite
from tests.postgres import fresh_url


class _OnPostgres(Suite):
    @contextmanager
    def database(self) -> Iterator[Maker]:
        url = fresh_url()
        yield lambda settings, clock: PostgresStore(url, settings, clock)


class TestPostgresNodes(_OnPostgres, SharedStoreContract):
    pass


class TestPostgresAdoption(_OnPostgres, AdoptionContract):
    pass


class TestPostgresTimekeepers(_OnPostgres, SharedTimetableContract):
    pass


class TestPostgresNodesTogether(_OnPostgres, SharedTogetherContract):
    pass
