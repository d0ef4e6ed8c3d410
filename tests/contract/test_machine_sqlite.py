"""SQLite answers as the memory store does, whatever it is told."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from headway.store.sqlite import SqliteStore
from tests.contract.job_machine import JobMachine
from tests.contract.machine import StoreMachine
from tests.contract.world import Maker

_numbers = count()


@contextmanager
def _database() -> Iterator[Maker]:
    name = f"file:machine-{next(_numbers)}?mode=memory&cache=shared"
    yield lambda settings, clock: SqliteStore(name, settings, clock, exclusive=False, inline=True)


class SqliteMachine(StoreMachine):
    def database(self) -> AbstractContextManager[Maker]:
        return _database()


class SqliteJobMachine(JobMachine):
    def database(self) -> AbstractContextManager[Maker]:
        return _database()


TRIED = settings(
    max_examples=200,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.timeout(600)  # only a failure takes as long: to find a short history that shows it
def test_d2_sqlite_answers_as_memory_does() -> None:
    run_state_machine_as_test(SqliteMachine, settings=TRIED)


@pytest.mark.timeout(600)
def test_d2_sqlite_keeps_jobs_as_memory_does() -> None:
    run_state_machine_as_test(SqliteJobMachine, settings=TRIED)
