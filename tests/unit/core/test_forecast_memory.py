"""X-1: asking why a run waits forks the kernel; the fork must leave nothing behind."""

import gc
import tracemalloc

from headway.core.why import explain
from headway.model.run import RunId
from tests.unit.core.by_hand import ByHand


def test_x1_asking_often_costs_no_memory() -> None:
    hand = ByHand(lanes={"main": 1})
    for number in range(200):
        hand.submit(f"r{number}", session=f"s{number % 20}", deadline="1h", retries=1, cap=1000)

    def ask(times: int) -> int:
        for _ in range(times):
            explain(hand.kernel, RunId("r199"))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    before = ask(2)
    assert ask(10) - before < 100_000, "one fork alone is larger than that"
    tracemalloc.stop()
