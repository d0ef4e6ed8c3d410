"""The judge of the chaos test can be trusted: each kind of broken promise, made up, is caught."""

from collections.abc import Callable
from typing import Literal

import pytest

from tests.e2e.checker import THAW_GRACE, Asked, Ending, Evidence, Freeze, Past, Stored, check
from tests.e2e.ledger import Line

SECOND = 1_000_000
LEASE = 3 * SECOND
ORPHANED = Past(1, 1, "orphaned")

Kind = Literal["begin", "beat", "end", "cut"]


def line(kind: Kind, at: float, number: int = 1, **other: object) -> Line:
    attempt = int(str(other.get("attempt", 1)))
    epoch = int(str(other.get("epoch", 1)))
    run = str(other.get("run", f"r{number}"))
    process = str(other.get("process", "a"))
    ticket = int(str(other.get("ticket", number)))
    fence = (epoch, ticket)
    return Line(kind, run, "s", number, attempt, fence, round(at * SECOND), process)


def done(number: int, attempt: int = 1, epoch: int = 1) -> Ending:
    return Ending("done", "", f"{number} {attempt} {epoch}.{number}")


def sound() -> Evidence:
    """Two runs one after the other; the second one's first process was killed, so it was tried again."""
    endings = {"r1": done(1), "r2": done(2, 2, 5)}
    return Evidence(
        asked={"r1": Asked("s", 1, 2), "r2": Asked("s", 2, 2)},
        told=dict(endings),
        stored={
            "r1": Stored("s", 1, endings["r1"], 1),
            "r2": Stored("s", 2, endings["r2"], 2, [ORPHANED]),
        },
        lines=[
            line("begin", 1.0, 1),
            line("end", 1.1, 1),
            line("begin", 1.2, 2),
            line("begin", 6.0, 2, attempt=2, epoch=5, process="b"),
            line("end", 6.1, 2, attempt=2, epoch=5, process="b"),
        ],
        deaths={"a": round(1.3 * SECOND)},
        lease=LEASE,
    )


def zombie(*lines: Line, thawed_at: float = 6.5) -> Evidence:
    """Process a froze in the middle of run 2 and was thawed after b had begun it again."""
    evidence = sound()
    evidence.deaths = {}
    evidence.freezes = [Freeze("a", round(1.3 * SECOND), round(thawed_at * SECOND))]
    evidence.lines = sorted([*evidence.lines, *lines], key=lambda line: line.at)
    return evidence


def promises(evidence: Evidence) -> set[str]:
    return {violation.promise for violation in check(evidence).violations}


def test_a_sound_history_has_no_violations() -> None:
    verdict = check(sound())
    assert (verdict.violations, verdict.repeated, verdict.fenced) == ([], 1, 0)


def lose_a_run(evidence: Evidence) -> None:
    evidence.stored = {"r2": evidence.stored["r2"]}


def leave_one_unfinished(evidence: Evidence) -> None:
    evidence.stored = {**evidence.stored, "r1": Stored("s", 1, Ending("queued"), 0)}


def tell_nobody(evidence: Evidence) -> None:
    evidence.told = {"r1": evidence.told["r1"]}


def tell_something_else(evidence: Evidence) -> None:
    evidence.told = {**evidence.told, "r1": Ending("failed", "orphaned")}


def take_it_twice(evidence: Evidence) -> None:
    evidence.stored = {**evidence.stored, "r9": evidence.stored["r1"]}


def keep_a_reply_of_an_old_attempt(evidence: Evidence) -> None:
    evidence.stored = {**evidence.stored, "r2": Stored("s", 2, done(2), 2, [ORPHANED])}


def keep_a_reply_that_no_agent_gave(evidence: Evidence) -> None:
    evidence.lines = evidence.lines[:-1]


def keep_a_reply_of_an_attempt_that_was_given_up(evidence: Evidence) -> None:
    history = [ORPHANED, Past(2, 5, "orphaned")]
    evidence.stored = {**evidence.stored, "r2": Stored("s", 2, done(2, 2, 5), 2, history)}


def cancel_it(evidence: Evidence) -> None:
    evidence.stored = {**evidence.stored, "r1": Stored("s", 1, Ending("cancelled", "stopped"), 1)}


def give_up_too_early(evidence: Evidence) -> None:
    evidence.stored = {**evidence.stored, "r1": Stored("s", 1, Ending("failed", "orphaned"), 1)}


def start_the_second_first(evidence: Evidence) -> None:
    evidence.lines = [line("begin", 0.5, 2), line("cut", 0.6, 2), *evidence.lines]


def overlap_with_the_next(evidence: Evidence) -> None:
    evidence.lines = sorted(
        [*evidence.lines[:1], line("end", 1.25, 1), *evidence.lines[2:]],
        key=lambda line: line.at,
    )


def begin_again_before_the_death(evidence: Evidence) -> None:
    evidence.deaths = {"a": round(6.05 * SECOND)}


def begin_twice_as_the_same_attempt(evidence: Evidence) -> None:
    evidence.lines = [
        *evidence.lines[:3],
        line("begin", 5.0, 2, epoch=4, process="b"),
        line("cut", 5.1, 2, epoch=4, process="b"),
        *evidence.lines[3:],
    ]


def forget_the_first_attempt(evidence: Evidence) -> None:
    evidence.stored = {**evidence.stored, "r2": Stored("s", 2, done(2, 2, 5), 2)}


def begin_more_than_is_known(evidence: Evidence) -> None:
    evidence.stored = {**evidence.stored, "r2": Stored("s", 2, done(2, 2, 5), 1)}


def go_back_in_fences(evidence: Evidence) -> None:
    evidence.lines = [*evidence.lines[:3], line("begin", 6.0, 2, attempt=2, epoch=0, process="b")]


@pytest.mark.parametrize(
    ("spoil", "promise"),
    [
        (lose_a_run, "none lost"),
        (leave_one_unfinished, "none without an outcome"),
        (tell_nobody, "every caller is told"),
        (tell_something_else, "every caller is told"),
        (take_it_twice, "taken once"),
        (keep_a_reply_of_an_old_attempt, "one outcome, of the latest attempt"),
        (keep_a_reply_of_an_attempt_that_was_given_up, "one outcome, of the latest attempt"),
        (keep_a_reply_that_no_agent_gave, "one outcome, of the latest attempt"),
        (cancel_it, "one outcome, of the latest attempt"),
        (give_up_too_early, "tried again if it may be"),
        (start_the_second_first, "order is kept"),
        (overlap_with_the_next, "never two live attempts"),
        (begin_again_before_the_death, "never two live attempts"),
        (begin_twice_as_the_same_attempt, "repeated attempts are recorded"),
        (forget_the_first_attempt, "repeated attempts are recorded"),
        (begin_more_than_is_known, "repeated attempts are recorded"),
        (go_back_in_fences, "fences grow"),
    ],
)
def test_a_broken_promise_is_caught(spoil: Callable[[Evidence], None], promise: str) -> None:
    evidence = sound()
    spoil(evidence)
    assert promise in promises(evidence)


def test_an_attempt_that_was_stored_and_never_begun_may_come_again_under_its_number() -> None:
    evidence = sound()
    history = [ORPHANED, Past(2, 5, "lost")]
    evidence.stored = {**evidence.stored, "r2": Stored("s", 2, done(2, 2, 5), 2, history)}
    assert check(evidence).violations == []


def test_what_a_zombie_writes_in_its_first_moment_is_fenced() -> None:
    verdict = check(zombie(line("end", 6.55, 2)))
    assert (verdict.violations, verdict.fenced) == ([], 1)


def test_a_zombie_that_goes_on_is_caught() -> None:
    assert "an old owner stops" in promises(zombie(line("beat", 6.6 + THAW_GRACE / SECOND, 2)))


def test_a_takeover_of_a_process_that_was_frozen_for_less_than_its_lease_is_caught() -> None:
    evidence = zombie(line("beat", 4.5, 2), line("end", 6.05, 2), thawed_at=4.2)
    assert "never two live attempts" in promises(evidence)


def test_a_takeover_before_the_freeze_is_caught() -> None:
    evidence = zombie()
    evidence.freezes = [Freeze("a", round(6.05 * SECOND), round(12 * SECOND))]
    evidence.lines = [*evidence.lines, line("cut", 12.1, 2)]
    assert "never two live attempts" in promises(evidence)
