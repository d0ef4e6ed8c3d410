"""The SQLite store keeps the contract of all stores, and of the durable ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from headway import Settings
from headway.ports import Clock, Store
from headway.store.sqlite import SqliteStore
from tests.contract.adoption_contract import RestartContract
from tests.contract.durable_contract import DurableContract
from tests.contract.durable_timetable_contract import DurableTimetableContract
from tests.contract.reading_contract import ReadingContract
from tests.contract.together_contract import DurableTogetherContract
from tests.contract.vault_contract import DurableVaultContract
from tests.contract.workers_contract import DurableWorkersContract
from tests.contract.world import Maker, Suite


class _OnSqlite(Suite):
    @contextmanager
    def database(self) -> Iterator[Maker]:
        with TemporaryDirectory() as folder:
            path = str(Path(folder) / "headway.db")

            def make(settings: Settings, clock: Clock) -> Store:
                return SqliteStore(path, settings, clock)

            yield make


class _InlineSqlite(Suite):
    """As in the simulation: no threads, and no lock."""

    @contextmanager
    def database(self) -> Iterator[Maker]:
        with TemporaryDirectory() as folder:
            path = str(Path(folder) / "headway.db")

            def make(settings: Settings, clock: Clock) -> Store:
                return SqliteStore(path, settings, clock, exclusive=False, inline=True)

            yield make


class TestSqliteStore(_OnSqlite, DurableContract):
    pass


class TestSqliteRestart(_OnSqlite, RestartContract):
    pass


class TestSqliteTimetable(_OnSqlite, DurableTimetableContract):
    pass


class TestInlineSqliteStore(_InlineSqlite, DurableContract):
    pass


class TestInlineSqliteTimetable(_InlineSqlite, DurableTimetableContract):
    pass


class TestSqliteTogether(_OnSqlite, DurableTogetherContract):
    pass


class TestInlineSqliteTogether(_InlineSqlite, DurableTogetherContract):
    pass


class TestSqliteVault(_OnSqlite, DurableVaultContract):
    pass


class TestSqliteWorkers(_OnSqlite, DurableWorkersContract):
    pass


class TestInlineSqliteWorkers(_InlineSqlite, DurableWorkersContract):
    pass


class TestReadingSqlite(_OnSqlite, ReadingContract):
    async def footprint(self, store: Store) -> object:
        """The whole file, and the log in which what is written comes first."""
        assert isinstance(store, SqliteStore)
        path = Path(store._path)
        return path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()
