"""A run and all that it started, arranged as a tree (X-3)."""

import random

from headway.core.tree import arranged
from headway.model.run import AgentName, LaneName, Run, RunId, SessionKey
from headway.model.views import RunView
from headway.model.words import Source, State


def view(name: str, *above: str) -> RunView:
    ancestors = tuple(RunId(one) for one in above)
    run = Run(
        RunId(name),
        AgentName("a"),
        SessionKey(name),
        Source.DELEGATION if above else Source.MESSAGE,
        LaneName("main"),
        0,
        0,
        parent=ancestors[-1] if ancestors else None,
        ancestors=ancestors,
    )
    return RunView(run, State.DONE)


def drawn(views: list[RunView], root: str) -> list[tuple[int, str]]:
    return [(one.depth, one.view.id) for one in arranged(views, RunId(root))]


def test_x3_each_run_stands_behind_the_one_that_asked_for_it() -> None:
    views = [view("a"), view("b", "a"), view("c", "a"), view("d", "a", "b"), view("e", "a", "c")]
    assert drawn(views, "a") == [(0, "a"), (1, "b"), (2, "d"), (1, "c"), (2, "e")]


def test_x3_a_part_of_a_tree_is_a_tree() -> None:
    views = [view("b", "a"), view("d", "a", "b"), view("f", "a", "b", "d")]
    assert drawn(views, "b") == [(0, "b"), (1, "d"), (2, "f")]


def test_a_run_whose_parent_was_forgotten_stands_below_the_nearest_that_is_known() -> None:
    views = [view("a"), view("f", "a", "b", "d")]
    assert drawn(views, "a") == [(0, "a"), (1, "f")]


def test_nothing_of_an_unknown_run() -> None:
    assert drawn([], "a") == []


def test_a_tree_may_be_deeper_than_python_can_recurse() -> None:
    names = [f"r{number}" for number in range(5_000)]
    views = [view(name, *names[:number][-1:]) for number, name in enumerate(names)]
    random.Random(1).shuffle(views)
    found = drawn(views, "r0")
    assert found == [(depth, name) for depth, name in enumerate(names)]
