"""How a run ended, and what it answered."""

from typing import TypeAlias

from headway.model.errors import (
    Draining,
    LaneCleared,
    MessageStale,
    QueueDropped,
    QueueFull,
    RunCancelled,
    RunEnded,
    RunFailed,
    SessionBusy,
)
from headway.model.value import Value
from headway.model.words import Reason, State

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Attachment(Value, frozen=True):
    """Something that travels with a text. The bytes themselves live where `url` says."""

    name: str
    media_type: str = "application/octet-stream"
    url: str = ""


class Reply(Value, frozen=True):
    """What an agent answers: a text, and where it needs them attachments and data."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    data: Json = None


class Outcome(Value, frozen=True):
    """The one end of a run: state, reason, and the reply or the error."""

    state: State
    reason: Reason | None = None
    reply: Reply | None = None
    error: str = ""
    into: str | None = None
    """The run that took this one over, if it was merged."""
    tokens_in: int = 0
    tokens_out: int = 0
    code: str = ""
    """What went wrong, for programs, where a runner can say it: `tab_not_found`, `command_failed`."""
    details: Json = None
    """What a runner knows of it: the exit code and the end of the output, the status and the body."""

    @property
    def ok(self) -> bool:
        return self.state is State.DONE

    @property
    def text(self) -> str:
        return self.reply.text if self.reply is not None else ""


_REFUSALS: dict[Reason, type[RunEnded]] = {
    Reason.QUEUE_FULL: QueueFull,
    Reason.REJECTED_BUSY: SessionBusy,
    Reason.QUEUE_DROPPED: QueueDropped,
    Reason.STALE: MessageStale,
    Reason.DRAINING: Draining,
    Reason.LANE_CLEARED: LaneCleared,
}


def error_of(run_id: str, outcome: Outcome) -> RunEnded:
    """The error that tells a caller about an outcome that is not `done`."""
    by_state = RunFailed if outcome.state is State.FAILED else RunCancelled
    family = _REFUSALS.get(outcome.reason, by_state) if outcome.reason else by_state
    return family(run_id, outcome)
