"""How often a token may ask."""

from headway.gateway.access.rate import MOST_BUCKETS, Rates
from headway.model.time import MINUTE, SECOND


def test_without_a_limit_as_many_as_come() -> None:
    rates = Rates(None)
    assert all(rates.take("t", 0) == 0 for _ in range(1_000))


def test_a_full_bucket_then_as_it_fills() -> None:
    rates = Rates(60)
    assert [rates.take("t", 0) for _ in range(60)] == [0] * 60
    assert rates.take("t", 0) == 1
    assert rates.take("t", SECOND - 1) == 1
    assert rates.take("t", SECOND) == 0
    assert rates.take("t", SECOND) == 1
    assert rates.take("other", SECOND) == 0


def test_it_says_after_how_many_seconds() -> None:
    rates = Rates(2)
    assert [rates.take("t", 0), rates.take("t", 0)] == [0, 0]
    assert rates.take("t", 0) == 30
    assert rates.take("t", 29 * SECOND) == 1
    assert rates.take("t", 30 * SECOND) == 0


def test_a_long_pause_fills_no_more_than_the_bucket() -> None:
    rates = Rates(3)
    rates.take("t", 0)
    assert [rates.take("t", 90 * MINUTE) == 0 for _ in range(4)] == [True, True, True, False]


def test_many_tokens_cost_bounded_memory() -> None:
    rates = Rates(1)
    for number in range(MOST_BUCKETS + 10):
        rates.take(str(number), 0)
    assert len(rates._buckets) == MOST_BUCKETS
