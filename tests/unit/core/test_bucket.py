"""The token bucket of X-6 in whole numbers: exact to the microsecond, whatever the rate."""

import pytest

from headway.core.bucket import Bucket
from headway.model.time import MINUTE, SECOND

START = 1_000 * MINUTE


@pytest.mark.parametrize("per_minute", [1, 3, 7, 60, 1_000_000_007])
def test_x6_a_full_bucket_holds_one_minutes_worth(per_minute: int) -> None:
    bucket = Bucket(per_minute, START)
    bucket.take(per_minute - 1, START)
    assert bucket.has_one(START)
    bucket.take(1, START)
    assert not bucket.has_one(START)


@pytest.mark.parametrize(
    ("per_minute", "wait"),
    [(1, MINUTE), (60, SECOND), (7, 8_571_429), (3, 20 * SECOND), (120_000_000, 1)],
)
def test_x6_the_next_token_comes_at_an_exact_instant(per_minute: int, wait: int) -> None:
    bucket = Bucket(per_minute, START)
    bucket.take(per_minute, START)
    assert bucket.next_at(START) == START + wait
    assert not bucket.has_one(START + wait - 1)
    assert bucket.has_one(START + wait)


def test_x6_many_small_refills_lose_nothing() -> None:
    """Seven a minute asked after each microsecond for a while equals one look at the end."""
    often, once = Bucket(7, START), Bucket(7, START)
    for bucket in (often, once):
        bucket.take(7, START)
    for later in range(1, 2_000):
        often.has_one(START + later)
    assert often.next_at(START + 2_000) == once.next_at(START + 2_000) == START + 8_571_429


def test_x6_debt_is_paid_before_the_next_token() -> None:
    bucket = Bucket(60, START)
    bucket.take(60 + 30, START)
    assert bucket.next_at(START) == START + 31 * SECOND


def test_x6_an_idle_bucket_never_holds_more_than_a_minutes_worth() -> None:
    bucket = Bucket(2, START)
    later = START + 100 * MINUTE
    bucket.take(2, later)
    assert not bucket.has_one(later)
    assert bucket.next_at(later) == later + 30 * SECOND


def test_x6_time_that_stands_or_goes_back_adds_nothing() -> None:
    bucket = Bucket(1, START)
    bucket.take(1, START)
    assert not bucket.has_one(START)
    assert not bucket.has_one(START - MINUTE)
    assert bucket.next_at(START) == START + MINUTE


def test_x6_a_bucket_that_has_one_is_free_now() -> None:
    assert Bucket(5, START).next_at(START) == START
