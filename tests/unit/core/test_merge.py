"""What may become one turn, and what is kept when it does (S-7, mode collect)."""

import msgspec
import pytest

from headway.core.debounce import buffer_key
from headway.core.merge import may_collect, merged
from headway.model.outcome import Attachment
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Route,
    Run,
    RunId,
    Sender,
    SessionKey,
)
from headway.model.words import Mode, Source

MESSAGE = Run(
    RunId("r1"),
    AgentName("bob"),
    SessionKey("chat"),
    Source.MESSAGE,
    LaneName("main"),
    0,
    1,
    "one",
    route=Route("telegram", "account", "42", "thread"),
    sender=Sender("ann", "owner"),
)


def but(**changes: object) -> Run:
    return msgspec.structs.replace(MESSAGE, **changes)


KEEPS_APART = [
    {"route": Route("web", "account", "42", "thread")},
    {"route": Route("telegram", "other", "42", "thread")},
    {"route": Route("telegram", "account", "43", "thread")},
    {"route": Route("telegram", "account", "42", "other")},
    {"route": None},
    {"sender": Sender("ann", "guest")},
    {"sender": None},
    {"agent": AgentName("eve")},
    {"lane": LaneName("cron")},
    {"priority": 1},
    {"deadline_at": 99},
    {"timeout": 99},
]


@pytest.mark.parametrize("change", KEEPS_APART, ids=lambda change: str(next(iter(change))))
def test_s7_collect_never_merges_over_a_border(change: dict[str, object]) -> None:
    other = but(**change)
    assert not may_collect(MESSAGE, other)
    assert not may_collect(other, MESSAGE)


def test_s7_collect_merges_two_senders_of_the_same_authority() -> None:
    assert may_collect(MESSAGE, but(id=RunId("r2"), text="x", sender=Sender("zoe", "owner")))


@pytest.mark.parametrize(
    "change",
    [*KEEPS_APART, {"sender": Sender("zoe", "owner")}, {"queue": QueueOptions(mode=Mode.STEER)}],
    ids=lambda change: str(next(iter(change))),
)
def test_s7_debounce_collapses_only_one_senders_alike_messages(change: dict[str, object]) -> None:
    assert buffer_key(but(**change)) != buffer_key(MESSAGE)


def test_s7_debounce_collapses_messages_that_differ_in_what_they_say() -> None:
    again = but(id=RunId("r2"), text="x", submitted_at=2, sent_at=2, message_id="8")
    assert buffer_key(again) == buffer_key(MESSAGE)


def test_s7_texts_are_joined_by_newlines_and_attachments_kept_in_order() -> None:
    a, b, c = Attachment("a"), Attachment("b"), Attachment("c")
    whole = merged(
        [
            but(attachments=(a, b), message_id="1", sent_at=10, idempotency_key="k"),
            but(id=RunId("r2"), text="two\nlines", message_id="2", sent_at=20),
            but(id=RunId("r3"), text="", attachments=(c,), message_id="3", sent_at=30),
        ]
    )
    assert whole.text == "one\ntwo\nlines"
    assert whole.attachments == (a, b, c)
    assert whole.merged_from == ("r1", "r2", "r3")
    assert (whole.message_id, whole.sent_at, whole.idempotency_key) == ("3", 30, None)
    assert (whole.session, whole.route, whole.sender) == (
        MESSAGE.session,
        MESSAGE.route,
        MESSAGE.sender,
    )


def test_s6_overflow_notes_of_merged_runs_are_kept() -> None:
    whole = merged([but(overflow=("x", "y")), but(id=RunId("r2"), overflow=("z",))])
    assert whole.overflow == ("x", "y", "z")


def test_s7_merging_again_after_a_crash_gives_the_same_run_and_never_a_part() -> None:
    parts = [but(), but(id=RunId("r2"))]
    assert merged(parts) == merged(parts)
    assert merged(parts).id not in {"r1", "r2"}
