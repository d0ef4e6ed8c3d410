"""The suites are no test modules themselves: pytest must be told to explain their assertions."""

import pytest

pytest.register_assert_rewrite(
    "tests.contract.cluster",
    "tests.contract.durable_contract",
    "tests.contract.durable_timetable_contract",
    "tests.contract.job_machine",
    "tests.contract.machine",
    "tests.contract.outbox_contract",
    "tests.contract.shared_contract",
    "tests.contract.shared_timetable_contract",
    "tests.contract.store_contract",
    "tests.contract.timekeeper",
    "tests.contract.timetable_contract",
    "tests.contract.together_contract",
    "tests.contract.reading_contract",
    "tests.contract.vault_contract",
    "tests.contract.workers_contract",
    "tests.contract.world",
)
