"""The ground under the simulated cluster: one loop for each node, one time for all."""

import asyncio
import contextlib
from random import Random

import pytest

from headway.model.time import SECOND
from headway.testing.cluster.clocks import NodeClock, WallClock
from headway.testing.cluster.loops import Conductor, NodeLoop
from headway.testing.cluster.violation import Broken, Violation


class Ticking:
    """Loops on which something happens at given times."""

    def __init__(self, *names: str) -> None:
        self.conductor = Conductor(Random(1))
        self.loops = {name: NodeLoop(self.conductor, name) for name in names}
        self.seen: list[tuple[str, float]] = []
        for loop in self.loops.values():
            self.conductor.add(loop)

    def tick(self, name: str, *pauses_s: float) -> "asyncio.Task[None]":
        async def tick() -> None:
            for pause_s in pauses_s:
                await asyncio.sleep(pause_s)
                self.seen.append((name, self.conductor.now / SECOND))

        return self.loops[name].create_task(tick())

    def close(self) -> None:
        for loop in self.loops.values():
            for task in asyncio.all_tasks(loop):
                task.cancel()
            with contextlib.suppress(Violation):
                loop.step()
            loop.close()


def test_loops_are_stepped_in_the_order_of_what_happens_next() -> None:
    ticking = Ticking("a", "b")
    ticking.tick("a", 1, 2)
    ticking.tick("b", 0.5, 1, 5)
    ticking.conductor.run_until(4 * SECOND)
    assert ticking.seen == [("b", 0.5), ("a", 1), ("b", 1.5), ("a", 3)]
    assert ticking.conductor.now == 4 * SECOND
    ticking.close()


def test_a_frozen_loop_finds_that_time_has_passed() -> None:
    ticking = Ticking("a", "b")
    ticking.tick("a", 1, 1)
    ticking.tick("b", 3)
    ticking.conductor.run_until(0)
    ticking.loops["a"].frozen = True
    ticking.conductor.run_until(5 * SECOND)
    assert ticking.seen == [("b", 3)]
    ticking.loops["a"].frozen = False
    ticking.conductor.run_until(10 * SECOND)
    assert ticking.seen[1:] == [("a", 5), ("a", 6)]
    ticking.close()


def test_the_clock_of_a_machine_that_slept_has_stood_and_its_elapsed_time_has_not() -> None:
    """N-2: the lease is counted by a clock that also runs through a suspend."""
    ticking = Ticking("a")
    loop = ticking.loops["a"]
    clock = NodeClock(ticking.conductor, loop, 0)
    ticking.tick("a", 1)
    ticking.conductor.run_until(0)
    before = clock.now()
    loop.frozen = True
    ticking.conductor.run_until(5 * SECOND)
    loop.suspended(5 * SECOND)
    loop.frozen = False
    assert (clock.now(), clock.elapsed(), loop.time()) == (before, 5 * SECOND, 0)
    loop.call_soon(lambda: None)
    ticking.conductor.run_until(10 * SECOND)
    assert ticking.seen == [("a", 6)]
    ticking.close()


def test_a_node_follows_the_clock_of_the_database_forward_at_once_and_back_in_small_steps() -> None:
    ticking = Ticking("a")
    wall = WallClock(ticking.conductor)
    clock = NodeClock(ticking.conductor, ticking.loops["a"], 0)
    wall.off_by = 3600 * SECOND
    clock.follow(wall.now(), 0)
    assert clock.now() == wall.now()
    wall.off_by = 0
    clock.follow(wall.now(), 0)
    assert clock.now() == wall.now() + 3600 * SECOND - SECOND // 20
    ticking.close()


def test_a_loop_that_never_rests_is_found_out() -> None:
    ticking = Ticking("a")

    def spin() -> None:
        ticking.loops["a"].call_soon(spin)

    ticking.loops["a"].call_soon(spin)
    with pytest.raises(Violation) as found:
        ticking.conductor.run_until(SECOND)
    assert found.value.promise is Broken.NEVER_RESTS
    ticking.close()


def test_what_is_planned_from_outside_happens_at_its_time() -> None:
    ticking = Ticking("a")
    ticking.conductor.plan(2 * SECOND, lambda: ticking.tick("a", 0.25))
    ticking.conductor.run_until(5 * SECOND)
    assert ticking.seen == [("a", 2.25)]
    ticking.close()


def test_a_check_that_objects_in_the_middle_of_a_step_is_raised_after_it() -> None:
    ticking = Ticking("a")
    conductor = ticking.conductor
    ticking.loops["a"].call_soon(lambda: conductor.object_to(Broken.LOST, "this"))
    ticking.loops["a"].call_soon(lambda: conductor.object_to(Broken.ORDER, "that"))
    with pytest.raises(Violation, match="lost: this"):
        conductor.run_until(SECOND)
    ticking.close()
