"""Thousands of random histories against the kernel, every step checked against a second model.

`HEADWAY_SIM_SEEDS` says how many (2,000 unless set). A failing seed is in the message; replay it
with `python -m headway.testing.simulator --seed N`.
"""

import os

import pytest

from headway.core.actions import CancelAttempt
from headway.model.run import INTERACTIVE_BELOW
from headway.model.words import Cut
from headway.testing import simulate
from headway.testing.simulation.play import describe
from headway.testing.simulator import main

SEEDS = int(os.environ.get("HEADWAY_SIM_SEEDS", "2000"))
CHUNKS = 20


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_rule_holds_in_random_histories(chunk: int) -> None:
    """R-1 to R-5, L-1 to L-7, S-1 to S-9, F-1 to F-5, W-3, X-1 to X-8: see `Invariant` for each."""
    for seed in range(chunk, SEEDS, CHUNKS):
        simulate(seed)


@pytest.mark.parametrize("seed", [1, 7, 1234])
def test_a_seed_gives_the_same_history_each_time(seed: int) -> None:
    first = list(describe(simulate(seed)))
    assert first == list(describe(simulate(seed)))
    assert len(first) > 50


def test_seeds_give_different_histories() -> None:
    assert list(describe(simulate(1))) != list(describe(simulate(2)))


def test_histories_reach_what_they_are_to_prove() -> None:
    """A rule that no history meets is not tested: all kinds of decisions must occur, and often."""
    seen: dict[str, int] = {}
    for seed in range(60):
        for _, _, actions in simulate(seed).log:
            for action in actions:
                name = type(action).__name__
                seen[name] = seen.get(name, 0) + 1
                outcome, cut = getattr(action, "outcome", None), getattr(action, "cut", None)
                for word in (getattr(outcome, "reason", None), cut):
                    if word is not None:
                        seen[word] = seen.get(word, 0) + 1
    expected = (
        "Start Finish Enqueue Merge CancelAttempt Abandon Steer Unsteer AskEstimate Remember "
        "Release NoteWait NoteLate NoteHold NoteExhausted orphaned queue_full rejected_busy stopped superseded "
        "queue_dropped lane_cleared cleared stale merged draining error deadline_queued "
        "deadline_running timed_out refused preempted drained"
    )
    rare = {name: seen.get(name, 0) for name in expected.split() if seen.get(name, 0) < 3}
    assert rare == {}


def test_histories_store_starts_ahead_of_their_slots() -> None:
    """L-2: some get their slot, others are called back; neither is rare."""
    called_up = called_back = 0
    for seed in range(150):
        for _, what, actions in simulate(seed).log:
            if "calls up" in what:
                called_up += len(what) - what.index("calls up") - 1
            for action in actions:
                if isinstance(action, CancelAttempt) and action.cut is Cut.PREEMPTED:
                    called_back += action.run.priority < INTERACTIVE_BELOW
    assert called_up > 20
    assert called_back > 20


def test_the_command_plays_many_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "0..3", "--steps", "30"]) == 0
    assert capsys.readouterr().out == "0 failures\n"


def test_the_command_shows_one_seed_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5", "--steps", "20"]) == 0
    shown = capsys.readouterr().out
    assert "submit r1 " in shown
    assert shown.endswith("seed 5: every invariant held\n")


def test_the_command_refuses_a_range_that_is_none() -> None:
    with pytest.raises(SystemExit):
        main(["--seeds", "5"])
