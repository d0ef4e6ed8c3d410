"""Errors: one root, families by whose fault it is, fields instead of formatted strings."""

import inspect

import pytest

from headway.model import errors
from headway.model.errors import (
    CannotResume,
    Draining,
    HeadwayError,
    IllegalTransition,
    InvalidInput,
    InvariantBroken,
    JobNotFound,
    LaneCleared,
    MessageStale,
    NotFound,
    NotRunning,
    Permanent,
    QueueDropped,
    QueueFull,
    RateLimited,
    Refuse,
    Refused,
    RunCancelled,
    RunEnded,
    RunFailed,
    SessionBusy,
    StoreRefused,
    StoreUnavailable,
    TurnOver,
    Unavailable,
    UnknownName,
    UnknownOption,
    WorkerLost,
    WorkFailed,
    WouldDeadlock,
    WrongLoop,
)
from headway.model.outcome import Outcome, error_of
from headway.model.words import Reason, State

ALL: list[type[HeadwayError]] = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, HeadwayError)
]
FAMILIES: dict[type[HeadwayError], set[type[HeadwayError]]] = {
    Refused: {
        InvalidInput,
        UnknownName,
        UnknownOption,
        JobNotFound,
        NotFound,
        TurnOver,
        WouldDeadlock,
        CannotResume,
        WrongLoop,
        StoreRefused,
        QueueFull,
        SessionBusy,
        QueueDropped,
        MessageStale,
        LaneCleared,
    },
    Unavailable: {NotRunning, StoreUnavailable, Draining},
    InvariantBroken: {IllegalTransition},
}
SAID_BY_AGENTS = {Permanent, RateLimited, Refuse, WorkFailed, WorkerLost}


def test_there_is_one_root() -> None:
    raised = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, BaseException)
    ]
    assert raised == ALL


def test_each_error_belongs_to_the_family_of_whose_fault_it_is() -> None:
    for family, members in FAMILIES.items():
        found = {kind for kind in ALL if issubclass(kind, family) and kind is not family}
        assert found == members
    at_fault = {HeadwayError, *FAMILIES}.union(*FAMILIES.values())
    outside = set(ALL) - at_fault
    assert outside == {RunEnded, RunFailed, RunCancelled} | SAID_BY_AGENTS


def test_each_error_has_a_code_of_its_own_and_says_what_it_is() -> None:
    codes = [kind.code for kind in ALL]
    assert len(set(codes)) == len(codes)
    assert all(code == code.lower() and " " not in code for code in codes)
    assert [kind.__name__ for kind in ALL if not (kind.__doc__ or "").strip()] == []


def test_invalid_input_names_field_value_and_what_is_allowed() -> None:
    error = InvalidInput("cap", 0, "a whole number from 1 to 9")
    assert (error.field, error.value, error.allowed) == ("cap", 0, "a whole number from 1 to 9")
    assert str(error) == "cap: 0 is not allowed; it must be a whole number from 1 to 9"


def test_a_huge_value_does_not_flood_the_text() -> None:
    assert len(str(InvalidInput("text", "x" * 1_000_000, "short"))) < 120


def test_an_unknown_name_suggests_the_close_one() -> None:
    error = UnknownName("agent", "suport", ["support", "sales"])
    assert error.close == ["support"]
    assert str(error).endswith("one of: sales, support (did you mean 'support'?)")


def test_an_unknown_name_far_from_all_suggests_nothing() -> None:
    error = UnknownName("agent", "zzz", [])
    assert error.close == []
    assert str(error).endswith("one of: none yet")


def test_an_unknown_option_is_its_own_field() -> None:
    error = UnknownOption("mod", ["mode", "cap"])
    assert (error.field, error.close) == ("mod", ["mode"])
    assert "did you mean 'mode'?" in str(error)


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        (NotFound("r1"), {"run_id": "r1"}),
        (JobNotFound("j1"), {"job": "j1"}),
        (TurnOver("r1"), {"run_id": "r1"}),
        (WouldDeadlock("r1", "s"), {"run_id": "r1", "session": "s"}),
        (RateLimited("30s"), {"retry_after": "30s"}),
        (
            IllegalTransition(State.DONE, State.QUEUED),
            {"current": State.DONE, "target": State.QUEUED},
        ),
    ],
)
def test_errors_carry_fields_and_their_text_is_made_of_them(
    error: HeadwayError, fields: dict[str, object]
) -> None:
    assert vars(error) == fields
    assert all(str(value) in str(error) for value in fields.values())


@pytest.mark.parametrize(
    ("state", "reason", "kind"),
    [
        (State.REJECTED, Reason.QUEUE_FULL, QueueFull),
        (State.REJECTED, Reason.REJECTED_BUSY, SessionBusy),
        (State.CANCELLED, Reason.STOPPED, RunCancelled),
        (State.CANCELLED, Reason.SUPERSEDED, RunCancelled),
        (State.CANCELLED, Reason.QUEUE_DROPPED, QueueDropped),
        (State.CANCELLED, Reason.LANE_CLEARED, LaneCleared),
        (State.CANCELLED, Reason.CLEARED, RunCancelled),
        (State.CANCELLED, Reason.STALE, MessageStale),
        (State.CANCELLED, Reason.MERGED, RunCancelled),
        (State.CANCELLED, Reason.DRAINING, Draining),
        (State.FAILED, Reason.ERROR, RunFailed),
        (State.FAILED, Reason.DEADLINE_QUEUED, RunFailed),
        (State.FAILED, Reason.DEADLINE_RUNNING, RunFailed),
        (State.FAILED, Reason.TIMED_OUT, RunFailed),
        (State.FAILED, Reason.ORPHANED, RunFailed),
        (State.FAILED, Reason.RATE_LIMITED, RunFailed),
        (State.FAILED, Reason.REFUSED, RunFailed),
    ],
)
def test_r3_each_reason_has_its_error(state: State, reason: Reason, kind: type[RunEnded]) -> None:
    outcome = Outcome(state, reason, error="because")
    error = error_of("r1", outcome)
    assert type(error) is kind
    assert (error.run_id, error.outcome) == ("r1", outcome)
    assert str(error).endswith(f"run r1 ended {state}/{reason}: because")
    assert ("is about to stop" in str(error)) == (kind is Draining)


def test_r3_a_timeout_or_deadline_never_reads_as_a_cancellation() -> None:
    for reason in (Reason.TIMED_OUT, Reason.DEADLINE_QUEUED, Reason.DEADLINE_RUNNING):
        assert not isinstance(error_of("r1", Outcome(State.FAILED, reason)), RunCancelled)
