"""Every error has one status and one form (T-2)."""

import pytest

from headway.gateway.errors import (
    AlreadyOver,
    BatchRefused,
    Crowded,
    Forbidden,
    NoSuchPath,
    NotThere,
    TooLarge,
    TooMany,
    Unauthorized,
    WrongMedia,
    WrongMethod,
    tell,
    wire_name,
)
from headway.model.errors import (
    Draining,
    IllegalTransition,
    InvalidInput,
    JobNotFound,
    LaneCleared,
    MessageStale,
    NotFound,
    NotRunning,
    QueueDropped,
    QueueFull,
    RunFailed,
    SessionBusy,
    StoreUnavailable,
    TurnOver,
    UnknownName,
    UnknownOption,
    WouldDeadlock,
)
from headway.model.outcome import Outcome
from headway.model.words import Reason, State

FULL = Outcome(State.REJECTED, Reason.QUEUE_FULL)


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (InvalidInput("lane", 1, "a text"), 400, None),
        (UnknownOption("acton", ["action"]), 400, None),
        (UnknownName("state", "x", ["y"]), 400, None),
        (UnknownName("agent", "x", ["y"]), 404, None),
        (Unauthorized("who?"), 401, None),
        (Forbidden("no"), 403, None),
        (NotFound("r-1"), 404, None),
        (JobNotFound("j"), 404, None),
        (NotThere("lane", "x"), 404, None),
        (NoSuchPath("/x"), 404, None),
        (WrongMethod("PUT", "GET"), 405, None),
        (AlreadyOver("run", "r-1", "done"), 409, None),
        (SessionBusy("r-1", Outcome(State.REJECTED, Reason.REJECTED_BUSY)), 409, None),
        (MessageStale("r-1", Outcome(State.CANCELLED, Reason.STALE)), 409, None),
        (QueueDropped("r-1", Outcome(State.CANCELLED, Reason.QUEUE_DROPPED)), 409, None),
        (LaneCleared("r-1", Outcome(State.CANCELLED, Reason.LANE_CLEARED)), 409, None),
        (RunFailed("r-1", Outcome(State.FAILED, Reason.ERROR, error="x")), 409, None),
        (TurnOver("r-1"), 409, None),
        (WouldDeadlock("r-1", "s"), 409, None),
        (TooLarge("body", 5), 413, None),
        (WrongMedia("text/plain"), 415, None),
        (QueueFull("r-1", FULL), 429, "1"),
        (TooMany(17), 429, "17"),
        (BatchRefused(QueueFull("r-1", FULL), []), 429, "1"),
        (BatchRefused(InvalidInput("tasks[0].deadline", 1, "a text"), []), 400, None),
        (Draining("r-1", Outcome(State.CANCELLED, Reason.DRAINING)), 503, "5"),
        (NotRunning(), 503, "1"),
        (StoreUnavailable("postgresql://u@h/d", "refused"), 503, "5"),
        (Crowded("streams", 5), 503, "1"),
        (IllegalTransition(State.DONE, State.QUEUED), 500, None),
        (ZeroDivisionError("secret"), 500, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_t2_each_error_has_its_status(
    error: Exception, status: int, retry_after: str | None
) -> None:
    told = tell(error)
    headers = {name.decode(): value.decode() for name, value in told.headers}
    assert told.status == status
    assert headers.get("retry-after") == retry_after
    assert told.body.retryable is (status in {429, 503})
    assert told.body.error
    assert told.body.code
    assert "secret" not in told.encoded().decode()


def test_the_address_of_the_store_is_nobodys_business() -> None:
    told = tell(StoreUnavailable("postgresql://u@host/d", "refused", "start it"))
    assert "host" not in told.encoded().decode()
    assert told.body.details == {"reason": "refused"}


def test_t2_fields_are_named_as_the_caller_wrote_them_and_close_names_are_suggested() -> None:
    told = tell(InvalidInput("idempotency_key", "", "a text")).body
    assert told.details["field"] == "idempotencyKey"
    assert told.error.startswith("idempotencyKey: ")
    unknown = tell(UnknownName("agent", "suport", ["support"])).body
    assert unknown.details["field"] == "agentId"
    assert unknown.details["suggestion"] == "support"


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("agent", "agentId"),
        ("max_concurrent", "maxConcurrent"),
        ("task.params", "params"),
        ("tasks[2].task.tab_id", "tasks[2].tabId"),
        ("tasks[2].deadline", "tasks[2].deadline"),
        ("agentId", "agentId"),
        ("schedule.every", "schedule.every"),
    ],
)
def test_names_of_the_wire(field: str, name: str) -> None:
    assert wire_name(field) == name
