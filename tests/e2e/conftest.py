"""What holds for tests with real processes."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
LONGEST_S = 300
"""Each wait in a test has a bound of its own and says what it waited for; this is for what forgot to have one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LONGEST_S))
