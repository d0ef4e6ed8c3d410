"""Runs whose starts are stored ahead of their slots, when their node leaves, stands still or dies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headway.model.run import LaneName
from headway.model.settings import MAIN, LaneSettings
from headway.model.time import MILLISECOND, SECOND
from headway.testing.cluster import Cluster, Node
from headway.testing.cluster.agents import Habits
from headway.testing.cluster.cluster import SETTINGS
from tests.simulation.cluster.scenes import begun, up, with_lanes

AHEAD = ("one", "two", "three")


@contextmanager
def crowded(*others: str) -> Iterator[tuple[Cluster, Node]]:
    """A node whose only slot is taken for long, and three runs whose starts are stored ahead."""
    lanes: dict[LaneName, LaneSettings] = {**SETTINGS.lanes, MAIN: LaneSettings(1)}
    habits = Habits.plain(long=20 * SECOND, **dict.fromkeys(AHEAD, 10 * MILLISECOND))
    with Cluster(settings=with_lanes(lanes), habits=habits) as cluster:
        cluster.most_ahead = 3
        a, *_ = up(cluster, "a", *others)
        a.submit("alpha", "long", {"session": "long", "max_attempts": 3})
        cluster.run_until(begun(cluster, a))
        for text in AHEAD:
            a.submit("alpha", text, {"session": text, "max_attempts": 3})
        assert a.engine is not None
        lane = a.engine.kernel.stage.floor.lanes[MAIN]
        cluster.run_until(lambda: len(lane.next_up) == len(AHEAD))
        yield cluster, a


def attempts_of(cluster: Cluster) -> dict[str, list[int]]:
    """Which attempts of the runs that were started ahead really began."""
    found: dict[str, list[int]] = {}
    for attempts in cluster.witness.attempts.values():
        for attempt in attempts:
            found.setdefault(attempt.run.text, []).append(attempt.attempt)
    return {text: found[text] for text in AHEAD}


def closes(node: Node) -> None:
    node.close()


def closes_at_once(node: Node) -> None:
    node.close(0)


def restarts(node: Node) -> None:
    assert node.engine is not None
    node.ask("restart", node.engine.restart())


def restarts_at_once(node: Node) -> None:
    assert node.engine is not None
    node.ask("restart", node.engine.restart(0))


def does_not_reach_the_store(node: Node) -> None:
    node.store.away_until = node.conductor.now + 5 * SECOND


@pytest.mark.parametrize(
    "happens",
    [closes, closes_at_once, restarts, restarts_at_once, does_not_reach_the_store],
    ids=lambda happens: happens.__name__,
)
def test_l5_a_node_that_stops_leaves_them_waiting_and_no_attempt_counts(
    happens: Callable[[Node], None],
) -> None:
    with crowded() as (cluster, node):
        happens(node)
        cluster.run(10 * SECOND)
        cluster.settle()
        assert attempts_of(cluster) == {text: [1] for text in AHEAD}


def test_d7_after_a_crash_they_are_tried_again_though_they_had_not_begun() -> None:
    with crowded("b") as (cluster, node):
        node.crash()
        cluster.settle()
        assert attempts_of(cluster) == {text: [2] for text in AHEAD}


def test_d4_of_a_node_that_stood_still_for_too_long_none_begins() -> None:
    with crowded("b") as (cluster, node):
        node.freeze()
        cluster.run(12 * SECOND)
        node.thaw()
        cluster.settle()
        assert attempts_of(cluster) == {text: [2] for text in AHEAD}
