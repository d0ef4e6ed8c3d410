"""What holds for all tests of simulated clusters."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _without_logs() -> Iterator[None]:
    """Thousands of expected deaths and losses are of no interest: findings have a log of their own."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
