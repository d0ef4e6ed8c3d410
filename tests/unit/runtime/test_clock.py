"""The node's clock goes by the store's: what an answer says of it is only as good as the answer was quick."""

import pytest

from headway.model.time import HOUR, MILLISECOND, SECOND, Instant, Span
from headway.runtime import clock as module
from headway.runtime.clock import SystemClock

START: Instant = 10_000_000_000 * SECOND
"""Ahead of the machine's own clock: that is followed at once, by both kinds of time."""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that stands still, so that nothing here depends on how long the test takes."""
    monkeypatch.setattr(module, "_boot_ns", lambda: 5_000)
    monkeypatch.setattr(module, "_monotonic_ns", lambda: 7_000)


@pytest.fixture
def clock(machine: None) -> SystemClock:
    clock = SystemClock()
    clock.follow(START, 0)
    return clock


def test_c5_a_node_goes_by_the_clock_that_all_nodes_share(clock: SystemClock) -> None:
    assert clock.wall() == START
    clock.follow(START + HOUR, MILLISECOND)
    assert clock.wall() == START + HOUR + MILLISECOND


@pytest.mark.parametrize("off", [-300 * MILLISECOND, 300 * MILLISECOND])
def test_c5_an_answer_that_took_long_moves_nothing_that_agrees_with_it(
    clock: SystemClock, off: Span
) -> None:
    now = clock.now()
    clock.follow(START - 400 * MILLISECOND + off, 400 * MILLISECOND)
    assert (clock.wall(), clock.now()) == (START, now)


@pytest.mark.parametrize("off", [-300 * MILLISECOND, 300 * MILLISECOND])
def test_c5_a_quick_answer_counts(clock: SystemClock, off: Span) -> None:
    clock.follow(START + off, 2 * MILLISECOND)
    assert clock.wall() == START + off + 2 * MILLISECOND


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_c5_a_step_of_the_shared_clock_is_followed_however_long_the_answer_took(
    clock: SystemClock, step: Span
) -> None:
    clock.follow(START + step, SECOND)
    assert clock.wall() == START + step + SECOND


def test_time_goes_on_at_once_and_back_only_in_small_steps(clock: SystemClock) -> None:
    clock.follow(START + HOUR, 0)
    ahead = clock.now()
    assert ahead == START + HOUR
    clock.follow(START, 0)
    assert START < clock.now() < ahead
