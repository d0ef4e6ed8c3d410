"""What programs are told of their run, and what their end means (W-1, W-3, X-4)."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from headway import InvalidInput, Reply, Turn
from headway.model.errors import WorkerLost, WorkFailed
from headway.runners.work import Environment, command_of, folder_of, result_of
from tests.unit.runners.turns import turn_with

Result = TypeVar("Result")


def with_turn(make: Callable[[], Turn], look: Callable[[Turn], Result]) -> Result:
    async def main() -> Result:
        return look(make())

    return asyncio.run(main())


def test_w1_arguments_are_filled_in_and_never_read_by_a_shell() -> None:
    argv = with_turn(
        lambda: turn_with("rm -rf $HOME; {session}"),
        lambda turn: command_of(("tool", "-p", "{text}", "{{}}", "{session}"), (), turn),
    )
    assert argv == ("tool", "-p", "rm -rf $HOME; {session}", "{}", "chat:ann")


@pytest.mark.parametrize(
    ("attempt", "resumes", "argv"),
    [(1, None, "begin"), (2, None, "go on"), (1, "run-0", "go on")],
)
def test_w3_after_a_death_the_session_is_resumed(
    attempt: int, resumes: str | None, argv: str
) -> None:
    chosen = with_turn(
        lambda: turn_with(attempt=attempt, resumes=resumes),
        lambda turn: command_of(("begin",), ("go on",), turn),
    )
    assert chosen == (argv,)


def test_without_a_command_to_resume_it_begins_again() -> None:
    assert with_turn(
        lambda: turn_with(attempt=2), lambda turn: command_of(("begin",), (), turn)
    ) == ("begin",)


@pytest.mark.parametrize(
    ("argv", "reason"), [(("{job_id}",), "empty"), (("tool", "{text}"), "NUL")]
)
def test_a_command_that_can_never_run_fails_for_good(argv: tuple[str, ...], reason: str) -> None:
    with pytest.raises(WorkFailed, match=reason) as failure:
        with_turn(lambda: turn_with("a\0b"), lambda turn: command_of(argv, (), turn))
    assert failure.value.permanent


def test_x4_the_environment_tells_of_the_run() -> None:
    said = {"GREETING": "hello {session}", "KEY": "env:SECRET", "HEADWAY_RUN_ID": "a lie"}
    inherited = {"PATH": "/bin", "SECRET": "{text} is no template here", "GREETING": "other"}
    environment = Environment(said, inherited)
    assert with_turn(lambda: turn_with(attempt=2, epoch=3), environment.of) == {
        "PATH": "/bin",
        "SECRET": "{text} is no template here",
        "KEY": "{text} is no template here",
        "GREETING": "hello chat:ann",
        "HEADWAY_RUN_ID": "run-1",
        "HEADWAY_TRACE_ID": "trace-1",
        "HEADWAY_JOB_ID": "",
        "HEADWAY_SESSION": "chat:ann",
        "HEADWAY_ATTEMPT": "2",
        "HEADWAY_FENCE": "3.7",
        "HEADWAY_AGENT": "coder",
    }


def test_a_variable_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"environment\.KEY"):
        Environment({"KEY": "env:NOWHERE"}, {})


def test_w1_code_0_is_the_reply() -> None:
    assert result_of(0, "done") == Reply("done", data={"exit": 0})
    assert result_of(0, "end", 7) == Reply("end", data={"exit": 0, "dropped": 7})


def test_w1_another_code_is_a_failure_that_tells_all() -> None:
    with pytest.raises(WorkFailed, match=r"^exit code 3: no such page$") as failure:
        result_of(3, "no such page", 9)
    assert failure.value.code == "command_failed"
    assert failure.value.details == {"exit": 3, "output": "no such page", "dropped": 9}
    assert not failure.value.permanent


def test_w3_who_was_killed_can_be_resumed() -> None:
    with pytest.raises(WorkerLost, match=r"^ended by SIGKILL: so far$") as loss:
        result_of(-9, "so far", resumable=True)
    assert loss.value.details == {"exit": -9, "output": "so far"}
    with pytest.raises(WorkFailed, match=r"^ended by SIGKILL$"):
        result_of(-9, "")


def test_an_error_shows_the_end_of_a_long_output() -> None:
    with pytest.raises(WorkFailed) as failure:
        result_of(1, "x" * 9_000 + "the end")
    assert len(str(failure.value)) < 2_000
    assert str(failure.value).startswith("exit code 1: …x")
    assert str(failure.value).endswith("the end")


def test_w1_a_session_cannot_choose_another_folder() -> None:
    assert with_turn(turn_with, lambda turn: folder_of("/srv/{session}", "sh", turn)) == (
        "/srv/chat:ann"
    )
    with pytest.raises(WorkFailed, match="text cannot stand in the path of a folder") as failed:
        with_turn(lambda: turn_with("../../etc"), lambda turn: folder_of("/srv/{text}", "sh", turn))
    assert failed.value.permanent


def test_t4_what_signs_callbacks_is_not_inherited_unless_it_is_asked_for() -> None:
    inherited = {"HEADWAY_CALLBACKS_SECRET": "s", "PATH": "/bin"}
    plain = with_turn(turn_with, Environment({}, inherited).of)
    asked = with_turn(turn_with, Environment({"X": "env:HEADWAY_CALLBACKS_SECRET"}, inherited).of)
    assert plain["PATH"] == "/bin"
    assert "HEADWAY_CALLBACKS_SECRET" not in plain
    assert asked["X"] == "s"
