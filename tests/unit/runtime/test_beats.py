"""What one look at a worker means (D-8)."""

import msgspec
import pytest

from headway import Outcome, Reply, State
from headway.model.outcome import Json
from headway.model.run import AgentName, Run, RunId, SessionKey
from headway.model.settings import MAIN
from headway.model.words import Source, WorkerKind, WorkerState
from headway.model.worker import MAX_LINE, MAX_LINES, Worker
from headway.runtime import beats
from headway.turn import Sight

RUN = Run(RunId("r"), AgentName("a"), SessionKey("s"), Source.TASK, MAIN, 0, 0)


def sight(
    *,
    answers: bool = True,
    over: bool = False,
    busy: bool | None = None,
    lines: tuple[str, ...] = (),
) -> Sight:
    return Sight(
        RUN.id,
        1,
        WorkerKind.TMUX,
        7,
        1.5,
        1_000,
        answers=answers,
        over=over,
        busy=busy,
        lines=lines,
    )


def look(
    seen: Sight, before: Worker | None = None, now: int = 2_000, was_busy: bool = False
) -> Worker:
    return beats.seen(
        seen, before, now, run=RUN, host="here", node=3, missed_beats=2, was_busy=was_busy
    )


@pytest.mark.parametrize(
    ("busy", "was_busy", "state"),
    [
        (None, False, WorkerState.ALIVE),
        (None, True, WorkerState.BUSY),
        (True, False, WorkerState.BUSY),
        (False, False, WorkerState.IDLE),
        (False, True, WorkerState.BUSY),
    ],
)
def test_d8_a_state_is_what_was_seen_since_the_last_beat(
    busy: bool | None, was_busy: bool, state: WorkerState
) -> None:
    assert look(sight(busy=busy), was_busy=was_busy).state is state


def test_d8_who_does_not_answer_keeps_its_state_until_it_has_missed_too_many() -> None:
    worker = look(sight(busy=True))
    states = []
    for now in (3_000, 4_000, 5_000):
        worker = look(sight(answers=False), worker, now)
        states.append((worker.missed, worker.state, worker.beat_at))
    assert states == [
        (1, WorkerState.BUSY, 2_000),
        (2, WorkerState.BUSY, 2_000),
        (3, WorkerState.DEAD, 2_000),
    ]
    back = look(sight(), worker, 6_000)
    assert (back.missed, back.beat_at) == (0, 6_000)


def test_who_was_never_heard_of_is_not_dead_at_the_first_look() -> None:
    worker = look(sight(answers=False))
    assert (worker.missed, worker.state, worker.beat_at) == (0, WorkerState.ALIVE, 1_000)


def test_who_is_over_has_not_missed_anything() -> None:
    worker = look(sight(answers=False, over=True), look(sight()))
    assert (worker.missed, worker.state) == (0, WorkerState.DEAD)


def test_w2_a_worker_is_one_process_for_ever() -> None:
    worker = look(sight())
    assert beats.is_same(worker, sight(busy=True))
    assert not beats.is_same(worker, msgspec.structs.replace(sight(), born=2.5))
    assert not beats.is_same(worker, msgspec.structs.replace(sight(), pid=8))


def test_d8_only_the_last_lines_are_kept_and_as_every_store_can_keep_them() -> None:
    lines = look(sight(lines=(*("x" * 500 for _ in range(20)), "\0 \ud800"))).lines
    assert len(lines) == MAX_LINES
    assert len(lines[0]) == MAX_LINE
    assert lines[-1] == "\ufffd \ufffd"


@pytest.mark.parametrize(
    ("data", "code"),
    [({"exit": 0}, 0), ({"exit": -9}, -9), ({"exit": True}, None), ({}, None), ("x", None)],
)
def test_how_a_worker_ended_is_read_from_the_outcome(data: Json, code: int | None) -> None:
    assert beats.exit_code(Outcome(State.DONE, reply=Reply(data=data))) == code
    assert beats.exit_code(Outcome(State.FAILED, details=data)) == code


@pytest.mark.parametrize(
    ("outcome", "lines"),
    [
        (Outcome(State.DONE, reply=Reply("a\nb\n", data={"exit": 0})), ["a", "b"]),
        (Outcome(State.DONE, reply=Reply("no program wrote it")), []),
        (Outcome(State.FAILED, details={"exit": 7, "output": "a\nb"}), ["a", "b"]),
        (Outcome(State.FAILED, details={"output": 7}), []),
        (Outcome(State.CANCELLED), []),
    ],
)
def test_what_a_worker_wrote_last_is_read_from_the_outcome(
    outcome: Outcome, lines: list[str]
) -> None:
    assert list(beats.last_lines(outcome)) == lines
