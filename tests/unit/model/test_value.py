"""Frozen values can be shared: copying one returns it."""

from copy import deepcopy

from headway.model.run import AgentName, LaneName, Run, RunId, SessionKey
from headway.model.words import Source


def test_a_copy_of_a_value_is_the_value() -> None:
    run = Run(
        RunId("r"), AgentName("a"), SessionKey("s"), Source.TASK, LaneName("main"), 0, 1, "text"
    )
    assert deepcopy([run])[0] is run


def test_values_are_equal_by_content_and_usable_as_keys() -> None:
    def run(text: str) -> Run:
        return Run(
            RunId("r"), AgentName("a"), SessionKey("s"), Source.TASK, LaneName("main"), 0, 1, text
        )

    assert run("x") == run("x") != run("y")
    assert len({run("x"), run("x"), run("y")}) == 2
