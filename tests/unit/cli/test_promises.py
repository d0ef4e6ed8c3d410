"""The demo's checker sees each promise broken: it could say no, so its yes means something."""

import pytest

from headway.cli.demo.promises import Promises
from headway.model.events import (
    Event,
    EventsMissed,
    LaneChanged,
    RunFinished,
    RunQueuedAgain,
    RunsMerged,
    RunStarted,
    RunSubmitted,
)
from headway.model.run import AgentName, LaneName, RunId, SessionKey
from headway.model.words import Cut, Reason, Source, State

A = AgentName("a")
MAIN = LaneName("main")


def asked(at: int, run: str, session: str, source: Source = Source.MESSAGE) -> Event:
    return RunSubmitted(at, RunId(run), A, SessionKey(session), MAIN, source)


def started(at: int, run: str, session: str) -> Event:
    return RunStarted(at, RunId(run), A, SessionKey(session), MAIN, 1, Source.MESSAGE)


def done(at: int, run: str, session: str) -> Event:
    return RunFinished(at, RunId(run), A, SessionKey(session), MAIN, 1, State.DONE, Source.MESSAGE)


def merged_away(at: int, run: str, session: str) -> Event:
    return RunFinished(
        at,
        RunId(run),
        A,
        SessionKey(session),
        MAIN,
        0,
        State.CANCELLED,
        Source.MESSAGE,
        Reason.MERGED,
    )


def set_aside(at: int, run: str, session: str) -> Event:
    return RunQueuedAgain(at, RunId(run), A, SessionKey(session), Cut.PREEMPTED)


def became(at: int, run: str, session: str, *parts: str) -> Event:
    return RunsMerged(at, RunId(run), A, SessionKey(session), tuple(RunId(part) for part in parts))


def resized(at: int, width: int) -> Event:
    return LaneChanged(at, MAIN, width, 0)


def broken_by(*events: Event, width: int = 2, tasks: int = 1) -> dict[str, tuple[str, ...]]:
    verdicts = Promises({"main": width}, {"a": tasks}).hear_all(events).verdicts()
    return {verdict.promise: verdict.broken for verdict in verdicts if not verdict.kept}


ONE = "One turn at a time in every session"
ORDER = "Every session in the order it was asked"
WIDTH = "No lane ever over its width"
QUOTA = "No agent over its tasks at once"
OUTCOME = "Every run ended exactly once"

TASK = Source.TASK


@pytest.mark.parametrize(
    "events",
    [
        pytest.param((), id="nothing"),
        pytest.param(
            (
                asked(1, "r1", "s"),
                asked(1, "r2", "s"),
                started(2, "r1", "s"),
                done(3, "r1", "s"),
                started(3, "r2", "s"),
                done(4, "r2", "s"),
            ),
            id="one after the other",
        ),
        pytest.param(
            (
                asked(1, "r1", "s"),
                asked(1, "r2", "s"),
                asked(1, "r3", "s"),
                became(2, "r1m", "s", "r1", "r2"),
                merged_away(2, "r1", "s"),
                merged_away(2, "r2", "s"),
                started(2, "r1m", "s"),
                done(3, "r1m", "s"),
                started(3, "r3", "s"),
                done(4, "r3", "s"),
            ),
            id="a merged run takes its first part's place",
        ),
        pytest.param(
            (
                asked(1, "r1", "s"),
                started(1, "r1", "s"),
                set_aside(2, "r1", "s"),
                started(3, "r1", "s"),
                done(4, "r1", "s"),
            ),
            id="preempted and run again",
        ),
        pytest.param(
            (
                *(asked(1, f"r{n}", f"s{n}") for n in range(3)),
                started(1, "r0", "s0"),
                started(1, "r1", "s1"),
                resized(3, 3),
                started(2, "r2", "s2"),
                resized(5, 1),
                *(done(6, f"r{n}", f"s{n}") for n in range(3)),
            ),
            id="a lane that grows at once and shrinks as runs end (L-2)",
        ),
    ],
)
def test_what_is_right_is_left_alone(events: tuple[Event, ...]) -> None:
    assert broken_by(*events) == {}


def test_s1_two_turns_of_a_session_at_once_are_seen() -> None:
    history = [
        asked(1, "r1", "s"),
        asked(1, "r2", "s"),
        started(1, "r1", "s"),
        started(2, "r2", "s"),
    ]
    history += [done(3, "r1", "s"), done(3, "r2", "s")]
    assert broken_by(*history) == {ONE: ("s ran 2 turns at once",)}


def test_s1_a_run_that_overtakes_is_seen() -> None:
    history = [asked(1, "r1", "s"), asked(1, "r2", "s"), started(1, "r2", "s"), done(2, "r2", "s")]
    history += [started(2, "r1", "s"), done(3, "r1", "s")]
    assert broken_by(*history) == {ORDER: ("s: run r2 overtook r1",)}


def test_l2_a_lane_over_its_width_is_seen() -> None:
    history = [asked(1, f"r{n}", f"s{n}") for n in range(3)]
    history += [started(1, f"r{n}", f"s{n}") for n in range(3)]
    history += [done(2, f"r{n}", f"s{n}") for n in range(3)]
    assert broken_by(*history) == {WIDTH: ("3 ran in lane main of 2",)}


def test_l2_a_start_after_the_lane_shrank_is_seen() -> None:
    history = [asked(1, "r1", "s1"), asked(1, "r2", "s2"), started(1, "r1", "s1"), resized(2, 1)]
    history += [started(3, "r2", "s2"), done(4, "r1", "s1"), done(4, "r2", "s2")]
    assert broken_by(*history) == {WIDTH: ("2 ran in lane main of 1",)}


def test_f1_an_agent_over_its_tasks_is_seen() -> None:
    history = [asked(1, "r1", "s1", TASK), asked(1, "r2", "s2", TASK), asked(1, "r3", "s3")]
    history += [started(1, "r1", "s1"), started(1, "r3", "s3"), done(2, "r3", "s3")]
    assert broken_by(*history, done(2, "r1", "s1"), done(2, "r2", "s2")) == {}
    history += [started(2, "r2", "s2"), done(3, "r1", "s1"), done(3, "r2", "s2")]
    assert broken_by(*history) == {QUOTA: ("a had 2 tasks in flight, allowed are 1",)}


@pytest.mark.parametrize(
    ("events", "breach"),
    [
        ((asked(1, "r1", "s"),), "run r1 has no outcome"),
        (
            (asked(1, "r1", "s"), done(2, "r1", "s"), done(3, "r1", "s")),
            "run r1 ended, and was over or never asked for",
        ),
        (
            (asked(1, "r1", "s"), done(2, "r1", "s"), started(3, "r1", "s")),
            "run r1 started, and was over or never asked for",
        ),
        ((EventsMissed(1, 12),), "12 events were missed: nobody can tell"),
    ],
)
def test_r2_a_run_without_exactly_one_outcome_is_seen(
    events: tuple[Event, ...], breach: str
) -> None:
    assert broken_by(*events) == {OUTCOME: (breach,)}
