"""PostgreSQL answers as the memory store does, whatever it is told."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from headway.store.postgres import PostgresStore
from tests.contract.job_machine import JobMachine
from tests.contract.machine import StoreMachine
from tests.contract.world import Maker
from tests.postgres import fresh_url


@contextmanager
def _database() -> Iterator[Maker]:
    url = fresh_url()
    yield lambda settings, clock: PostgresStore(url, settings, clock)


class PostgresMachine(StoreMachine):
    def database(self) -> AbstractContextManager[Maker]:
        return _database()


class PostgresJobMachine(JobMachine):
    def database(self) -> AbstractContextManager[Maker]:
        return _database()


TRIED = settings(
    max_examples=60,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.timeout(600)  # only a failure takes as long: to find a short history that shows it
def test_d2_postgres_answers_as_memory_does() -> None:
    run_state_machine_as_test(PostgresMachine, settings=TRIED)


@pytest.mark.timeout(600)
def test_d2_postgres_keeps_jobs_as_memory_does() -> None:
    run_state_machine_as_test(PostgresJobMachine, settings=TRIED)
