"""The quick ways of the PostgreSQL store write what the general ones would."""

from random import Random

import msgspec
import pytest

from headway.core.actions import Action, Finish, Release, Start
from headway.model.outcome import Outcome, Reply
from headway.model.run import AgentName, LaneName, Run, RunId, SessionKey
from headway.model.settings import Settings
from headway.model.words import Reason, Source, State
from headway.store.postgres.records import batches_of, in_order, plain_batch

SETTINGS = Settings()


def run(number: int, session: int, **more: object) -> Run:
    plain = Run(
        RunId(f"r{number}"),
        AgentName("a"),
        SessionKey(f"s{session}"),
        Source.MESSAGE,
        LaneName("main"),
        0,
        1_000,
        "hello",
    )
    return msgspec.structs.replace(plain, **more)


def finish(number: int, session: int, epoch: int = 0, **more: object) -> Finish:
    outcome = Outcome(State.DONE, None, Reply(f"{number} done"))
    plain = Finish(
        run(number, session), outcome, 1, epoch or session, 2_000 + number, 1_000 + number
    )
    return msgspec.structs.replace(plain, **more)


def start(number: int, session: int, epoch: int = 0, **more: object) -> Start:
    plain = Start(run(number, session), number, 1, epoch or session, 3_000 + number)
    return msgspec.structs.replace(plain, **more)


def written(actions: list[Action]) -> list[list[object]]:
    return [batch.columns(7, 9, careful=False) for batch in in_order(actions, SETTINGS)]


def test_the_usual_batch_is_written_as_any_other_would_be() -> None:
    actions: list[Action] = []
    for session in range(1, 30):
        actions += [finish(session, session), start(100 + session, session)]
    quick = plain_batch(actions)
    assert quick is not None
    assert [quick.columns(7, 9, careful=False)] == written(actions)
    assert (quick.rare, quick.for_all, quick.outliving) == (False, False, [])
    assert len(quick.actions) == len(actions)


LATE = Outcome(State.FAILED, Reason.ERROR, error="no")

UNUSUAL: dict[str, list[Action]] = {
    "nothing": [],
    "a second attempt ends": [finish(1, 1, attempt=2)],
    "a second attempt starts": [start(1, 1, attempt=2)],
    "another slot": [start(1, 1, slot=1)],
    "a worker that outlives its node": [start(1, 1, outlives=True)],
    "an end that is not well": [finish(1, 1, outcome=LATE)],
    "a merged run": [finish(1, 1, run=run(1, 1, merged_from=(RunId("r8"), RunId("r9"))))],
    "lines of dropped messages end": [finish(1, 1, run=run(1, 1, overflow=("lost",)))],
    "lines of dropped messages start": [start(1, 1, run=run(1, 1, overflow=("lost",)))],
    "a run that starts and ends": [start(1, 1), finish(1, 1)],
    "two epochs of a session": [finish(1, 1, epoch=4), start(2, 1, epoch=5)],
    "a session is given back": [finish(1, 1), Release(SessionKey("s1"), 1, 1)],
    "an outcome that cannot be written": [
        finish(1, 1, outcome=Outcome(State.DONE, None, Reply("x", data=object())))  # type: ignore[arg-type]
    ],
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_what_is_not_usual_goes_the_general_way(what: str) -> None:
    actions = UNUSUAL[what]
    assert plain_batch(actions) is None
    general = [batch.columns(7, 9, careful=False) for batch in batches_of(actions, SETTINGS)]
    assert general == written(actions)


def test_both_ways_agree_whatever_comes() -> None:
    dice = Random(42)
    quick_ones = 0
    for _ in range(500):
        actions: list[Action] = []
        for number in range(dice.randint(1, 12)):
            session = dice.randint(1, 8)
            make = dice.choice((finish, start))
            odd = dice.random() < 0.05
            actions.append(make(number, session, **({"attempt": 2} if odd else {})))
        quick = plain_batch(actions)
        if quick is not None:
            quick_ones += 1
            assert [quick.columns(7, 9, careful=False)] == written(actions)
    assert quick_ones > 100
