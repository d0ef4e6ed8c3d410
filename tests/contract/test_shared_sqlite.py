"""SQLite keeps the rules for many nodes: each with its writer's thread, and all in the calling coroutine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from headway.store.sqlite import SqliteStore
from tests.contract.adoption_contract import AdoptionContract
from tests.contract.shared_contract import SharedStoreContract
from tests.contract.shared_timetable_contract import SharedTimetableContract
from tests.contract.together_contract import SharedTogetherContract
from tests.contract.world import Maker, Suite


class _OnSqlite(Suite):
    inline = False

    @contextmanager
    def database(self) -> Iterator[Maker]:
        with TemporaryDirectory() as folder:
            path = str(Path(folder, "headway.db"))
            yield lambda settings, clock: SqliteStore(
                path, settings, clock, exclusive=False, inline=self.inline
            )


class TestSqliteNodes(_OnSqlite, SharedStoreContract):
    pass


class TestInlineSqliteNodes(TestSqliteNodes):
    inline = True


class TestSqliteAdoption(_OnSqlite, AdoptionContract):
    pass


class TestInlineSqliteAdoption(TestSqliteAdoption):
    inline = True


class TestSqliteTimekeepers(_OnSqlite, SharedTimetableContract):
    pass


class TestInlineSqliteTimekeepers(TestSqliteTimekeepers):
    inline = True


class TestSqliteNodesTogether(_OnSqlite, SharedTogetherContract):
    pass


class TestInlineSqliteNodesTogether(TestSqliteNodesTogether):
    inline = True
