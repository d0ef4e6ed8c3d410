"""Hundreds of random histories of a cluster: real engines on one real database, in virtual time.

`HEADWAY_CLUSTER_SEEDS` says how many (300 unless set). A failing seed is in the message; replay it with
`python -m headway.testing.cluster --seed N`, and one of a rush with `--rush` besides.
"""

import os
from collections import Counter

import pytest

from headway.core import ahead
from headway.core.live import LiveRun
from headway.core.stage import Stage
from headway.model.words import Cut, Reason
from headway.testing.cluster import Cluster, simulate_cluster
from headway.testing.cluster.__main__ import main
from headway.testing.cluster.history import History

SEEDS = int(os.environ.get("HEADWAY_CLUSTER_SEEDS", "300"))
RUSHES = SEEDS // 3
"""How many of them are played once more, with a rush."""
CHUNKS = 20


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_promise_is_kept_in_random_histories(chunk: int) -> None:
    """D-1, D-3, D-4, D-6, D-7, D-9, D-10, S-1, S-8, X-2, X-3, X-4, L-8, R-2, C-5, W-2: see `Broken` for each."""
    for seed in range(chunk, SEEDS, CHUNKS):
        simulate_cluster(seed)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_promise_is_kept_while_starts_are_stored_ahead(chunk: int) -> None:
    """L-2, S-1, D-2, D-7: short runs come in a rush, and nodes start ahead more than they would by themselves."""
    for seed in range(chunk, RUSHES, CHUNKS):
        simulate_cluster(seed, rush=True)


def test_a_rush_calls_runs_up_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    call_up, call_back = ahead.call_up, ahead.call_back

    def up(stage: Stage, live: LiveRun) -> None:
        seen["called up"] += 1
        call_up(stage, live)

    def back(stage: Stage, live: LiveRun) -> None:
        seen["called back"] += 1
        call_back(stage, live)

    monkeypatch.setattr(ahead, "call_up", up)
    monkeypatch.setattr(ahead, "call_back", back)
    for seed in range(5):
        simulate_cluster(seed, rush=True)
    assert min(seen["called up"], seen["called back"]) > 10


def test_a_rush_is_the_same_each_time() -> None:
    logs = [simulate_cluster(3, rush=True).log for _ in range(2)]
    assert logs[0] == logs[1]
    assert logs[0] != simulate_cluster(3).log


@pytest.mark.parametrize("seed", [1, 7, 123])
def test_a_seed_gives_the_same_history_each_time(seed: int) -> None:
    first = _log(seed)
    assert first == _log(seed)
    assert len(first) > 50


def test_seeds_give_different_histories() -> None:
    assert _log(1) != _log(2)


def test_histories_reach_what_they_are_to_prove() -> None:
    """A rule that no history meets is not tested: all that can happen must happen, and often."""
    seen: Counter[str] = Counter()
    for seed in range(100):
        cluster = simulate_cluster(seed)
        for line in cluster.log:
            seen.update(word for word in _WORDS if word in line)
        seen.update(outcome.reason or "done" for outcome in cluster.witness.outcomes.values())
        seen.update(_facts(cluster))
    expected = [
        *_WORDS,
        *("done", Reason.ORPHANED, Reason.STOPPED, Reason.SUPERSEDED, Reason.MERGED, Reason.ERROR),
        *(Reason.QUEUE_DROPPED, Reason.DEADLINE_QUEUED, Reason.DEADLINE_RUNNING),
        *("tried again elsewhere", "steered", "merged", "sub-run elsewhere", "told by another"),
        *("fired", "fired by several nodes", "adopted"),
    ]
    assert {word: seen[word] for word in expected if seen[word] < 3} == {}


_WORDS = (
    "buries",
    "crashes",
    "closes",
    "thaws",
    "sleeps for",
    "restarts in place",
    "LOST",
    "Duplicate(",
    "Elsewhere(",
    "the store is away for",
    "does not reach the store",
    "clock steps",
    "is added",
    "is paused",
    "is resumed",
    "is edited",
    "is run by hand",
    "Merge(",
    "Steer(",
    "Abandon(",
    "Respond(",
    "Remember(",
    f", {Cut.LOST}",
    f", {Cut.DRAINED}",
)


def _facts(cluster: Cluster) -> set[str]:
    """What a history had in it, as far as its log does not say so."""
    facts = set()
    witness = cluster.witness
    for run_id, attempts in witness.attempts.items():
        run = witness.stored[run_id]
        if len({attempt.node for attempt in attempts}) > 1:
            facts.add("tried again elsewhere")
        if any(attempt.took for attempt in attempts):
            facts.add("steered")
        if run.merged_from:
            facts.add("merged")
        above = witness.attempts.get(run.parent, []) if run.parent is not None else []
        if any(attempt.node is not other.node for attempt in attempts for other in above):
            facts.add("sub-run elsewhere")
    firings = {run_id for run_id, run in witness.stored.items() if run.firing is not None}
    if firings:
        facts.add("fired")
    if len({attempt.node for run_id in firings for attempt in witness.attempts[run_id]}) > 1:
        facts.add("fired by several nodes")
    if witness.machines.adopted:
        facts.add("adopted")
    for node in cluster.nodes:
        for run_id in node.told:
            if any(attempt.node is not node for attempt in witness.attempts.get(run_id, [])):
                facts.add("told by another")
    return facts


def test_the_command_plays_many_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "0..3"]) == 0
    assert capsys.readouterr().out == "0 failures\n"


def test_the_command_plays_a_rush(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rush", "--seeds", "0..2"]) == 0
    assert main(["--rush", "--seed", "1"]) == 0
    assert "chat1" in capsys.readouterr().out


def test_the_command_shows_all_of_one_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1"]) == 0
    shown = capsys.readouterr().out
    assert "is node 1" in shown
    assert shown.endswith("seed 1: every promise was kept\n")


def test_the_command_refuses_a_range_that_is_none() -> None:
    with pytest.raises(SystemExit):
        main(["--seeds", "5"])


def _log(seed: int) -> list[str]:
    history = History(seed)
    with history.cluster as cluster:
        history.play()
        cluster.settle()
    return cluster.log
