"""Kernels that are thrown away with runs in them leave nothing behind; `why` makes one each time (X-1)."""

import gc
import tracemalloc
from collections.abc import Callable

from headway.core.why import explain
from headway.model.run import RunId
from tests.unit.core.by_hand import ByHand


def crowded() -> ByHand:
    hand = ByHand(lanes={"main": 1})
    for number in range(200):
        hand.submit(
            f"r{number}",
            session=f"s{number % 20}",
            priority=number % 20,
            preemptible=number % 3 == 0,
            deadline="1h",
            retries=1,
            cap=1000,
        )
    hand.submit("parent", session="p")
    hand.submit("child", session="c", parent="parent")
    for number in range(0, 200, 7):
        hand.cancel(f"r{number}")
    return hand


def growth(action: Callable[[], object]) -> int:
    action()
    tracemalloc.start()
    for _ in range(2):
        action()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(10):
        action()
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


def test_x1_asking_often_costs_no_memory() -> None:
    hand = crowded()
    assert growth(lambda: explain(hand.kernel, RunId("r199"))) < 100_000


def test_a_kernel_that_is_dropped_with_runs_in_it_is_freed() -> None:
    assert growth(crowded) < 100_000, "one of them alone is larger than that"
