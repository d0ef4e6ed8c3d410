"""Waits between retries: 2, 4, 8 s … at most 30 s, each by a quarter more or less (C-9)."""

import pytest

from headway.core.retry import delay
from headway.model.time import MILLISECOND, SECOND


def test_c9_waits_double_up_to_thirty_seconds() -> None:
    plain = [delay(retry, 0.5) // SECOND for retry in range(7)]
    assert plain == [2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize(
    ("retry", "least", "most"),
    [(0, 1_500, 2_500), (1, 3_000, 5_000), (2, 6_000, 10_000), (9, 22_500, 37_500)],
)
def test_c9_jitter_is_a_quarter_either_way(retry: int, least: int, most: int) -> None:
    assert delay(retry, 0.0) == least * MILLISECOND
    assert delay(retry, 1.0) == most * MILLISECOND


def test_c9_a_thousandth_retry_waits_no_longer() -> None:
    assert delay(1_000, 0.5) == 30 * SECOND
