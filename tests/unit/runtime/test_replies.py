"""Whatever an error says of itself, its run has an outcome and the node goes on (R-2, T-4)."""

from pathlib import Path

import pytest

from headway import Headway, Settings, State, Turn, WorkerLost, WorkFailed
from headway import run as run_program
from headway.core.actions import Failed
from headway.model.errors import HeadwayError
from headway.model.outcome import Outcome
from headway.model.settings import CallbackSettings
from headway.model.task import Task
from headway.runtime.replies import ending_of

ODD: dict[str, object] = {
    "half a character": {"said \ud800": ["\udfff"]},
    "no JSON": {"said": object()},
    "numbers as names": {1: 2},
    "too much": {"said": "x" * 5_000_000},
}


def _deep() -> object:
    value: object = "x"
    for _ in range(5_000):
        value = {"in": value}
    return value


@pytest.mark.parametrize("details", [*ODD.values(), _deep()], ids=[*ODD, "too deep"])
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_r2_details_that_nobody_can_keep_cost_the_details_only(
    details: object, store: str, tmp_path: Path
) -> None:
    url = "memory://" if store == "memory" else f"sqlite:///{tmp_path}/headway.db"

    async def main() -> tuple[Outcome, Outcome]:
        callbacks = CallbackSettings(secret="words", private=True)
        hw = Headway(url, settings=Settings(callbacks=callbacks))

        @hw.agent("a")
        async def fails(turn: Turn) -> str:
            if turn.task is not None and turn.task.action == "go":
                raise WorkFailed("it went wr\ud800ng", "odd\ud800", details)  # type: ignore[arg-type]
            return "fine"

        async with hw:
            first = await hw.submit("a", "", task=Task("go"), callback="http://127.0.0.1:9/x")
            failed = await first.wait()
            second = await hw.submit("a", "", task=Task("then"))
            return failed, await second.wait()

    failed, then = run_program(main())
    assert (failed.state, failed.error) == (State.FAILED, "it went wr\ufffdng")
    assert failed.code == "odd\ufffd"
    assert then.state is State.DONE


def test_r3_what_can_be_kept_of_details_is() -> None:
    ended = ending_of(WorkFailed("no", "c", {"\ud800": ["x\ud800", 1, None, 2.5]}), 1_000)
    assert isinstance(ended, Failed)
    assert ended.details == {"\ufffd": ["x\ufffd", 1, None, 2.5]}


@pytest.mark.parametrize("error", [WorkFailed("no", "c", "x" * 99), WorkerLost("no", "x" * 99)])
def test_r3_more_than_may_be_kept_says_so(error: HeadwayError) -> None:
    ended = ending_of(error, 50)
    assert getattr(ended, "details") == {  # noqa: B009 - of two kinds of ends
        "unkept": "they have 101 bytes, and at most 50 are kept"
    }
