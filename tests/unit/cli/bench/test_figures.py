"""`headway bench`: the numbers say what was measured."""

import pytest

from headway.cli.bench.figures import Measured, figure_lines, figures, quantile


@pytest.mark.parametrize(
    ("values", "part", "expected"),
    [((), 0.5, 0), ((5,), 0.99, 5), ((3, 1, 2), 0.5, 2), (tuple(range(1, 101)), 0.99, 99)],
)
def test_a_quantile_is_a_value_that_was_measured(
    values: tuple[int, ...], part: float, expected: int
) -> None:
    assert quantile(values, part) == expected


def test_rates_and_latencies() -> None:
    measured = Measured(4, 2, 2_000_000, (1_000, 2_000, 3_000, 40_000), 1, 3, 4_000_000)
    found = figures(measured)
    assert (found.taken, found.per_second, found.done, found.done_per_second) == (4, 2.0, 3, 0.8)
    assert (found.p50_ms, found.p99_ms, found.max_ms) == (2.0, 40.0, 40.0)
    text = figure_lines(found, "echo")
    assert "4 tasks for echo in 2.00 s, 2 at once" in text
    assert "1 times: the queue was full" in text


def test_what_was_not_waited_for_is_not_told() -> None:
    found = figures(Measured(1, 1, 1_000_000, (1_000,), 0, 0, None))
    assert found.done_seconds is None
    assert "done" not in figure_lines(found, "echo")
