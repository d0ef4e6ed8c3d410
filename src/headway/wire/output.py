"""The live output of a run, as it is streamed: each kind of news has its own event."""

from typing import Annotated

from msgspec import Meta

from headway.wire.base import Answer
from headway.wire.runs import OutcomeAnswer, RunIdText


class AttemptBegun(Answer, frozen=True, kw_only=True):
    """`attempt`: one has begun. What came before it belongs to an earlier one."""

    run_id: RunIdText
    attempt: int


class OutputPiece(Answer, frozen=True, kw_only=True):
    """`output`: a piece of what the attempt emits."""

    run_id: RunIdText
    text: str
    cut: Annotated[bool, Meta(description="Whether something before it is not remembered.")]


class AttemptOver(Answer, frozen=True, kw_only=True):
    """`again`: the attempt is over without an outcome, and another one follows."""

    run_id: RunIdText
    error: str


class RunOver(Answer, frozen=True, kw_only=True):
    """`outcome`: how it ended. The stream ends with it."""

    run_id: RunIdText
    into: Annotated[
        str | None, Meta(description="The run that took this one over, whose outcome this is.")
    ]
    outcome: OutcomeAnswer
