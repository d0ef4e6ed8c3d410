"""Tasks in words: a place in line is that of one who stands in it."""

import pytest

from headway.cli.tasks.telling import accepted_line
from headway.model.words import State
from headway.wire.tasks import TaskAccepted


@pytest.mark.parametrize(
    ("state", "position", "said"),
    [
        (State.RUNNING, 0, "(running)"),
        (State.QUEUED, 0, "(queued, next)"),
        (State.QUEUED, 1, "(queued, 1 start before it)"),
        (State.QUEUED, 7, "(queued, 7 starts before it)"),
        (State.QUEUED, None, "(queued)"),
    ],
)
def test_t5_only_what_waits_has_a_place(state: State, position: int | None, said: str) -> None:
    taken = TaskAccepted(
        task_id="t1", state=state, position=position, created_at="2026-11-15T09:30:00.000Z"
    )
    assert accepted_line(taken).endswith(said)
