"""What a callback tells: how a task ended (T-4)."""

import msgspec

from headway.core.actions import Finish
from headway.core.callback_url import CALLBACK
from headway.model.outcome import Attachment
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.task import Task
from headway.model.time import Instant
from headway.model.words import Reason, State
from headway.wire.base import Answer, Moment, maybe_moment, moment
from headway.wire.names import Number
from headway.wire.places import AttachmentAnswer, attachment_answers
from headway.wire.runs import RunIdText


class Notice(Answer, frozen=True):
    """The body of a callback. Fields may be added in later versions."""

    id: str
    """The same each time it is sent: whoever has seen it need not act again."""
    task_id: RunIdText
    agent_id: str
    action: str
    session: str
    idempotency_key: str | None
    state: State
    """done, failed or cancelled."""
    reason: Reason | None
    code: str
    """What went wrong, where the runner can say it: `tab_not_found`, `command_failed`."""
    error: str
    text: str
    """What the agent answered."""
    data: object
    attachments: tuple[AttachmentAnswer, ...]
    details: object
    """What the runner knows of it: exit code and the end of the output, or status and body."""
    attempt: Number
    """How many attempts there were; 0: it never ran."""
    tokens_in: Number
    tokens_out: Number
    created_at: Moment
    started_at: Moment | None
    """When its last attempt began; null: it never ran."""
    finished_at: Moment


def notice_of(finish: Finish) -> Notice:
    run, outcome, reply = finish.run, finish.outcome, finish.outcome.reply
    attachments: tuple[Attachment, ...] = () if reply is None else reply.attachments
    return Notice(
        id=notice_id(run.id),
        task_id=run.id,
        agent_id=run.agent,
        action=(run.task or Task("")).action,
        session=run.session,
        idempotency_key=run.idempotency_key,
        state=outcome.state,
        reason=outcome.reason,
        code=outcome.code,
        error=outcome.error,
        text=outcome.text,
        data=None if reply is None else reply.data,
        attachments=attachment_answers(attachments),
        details=outcome.details,
        attempt=finish.attempt,
        tokens_in=outcome.tokens_in,
        tokens_out=outcome.tokens_out,
        created_at=moment(run.submitted_at),
        started_at=maybe_moment(finish.started_at),
        finished_at=moment(finish.at),
    )


def notice_delivery(finish: Finish, now: Instant) -> Delivery:
    """The notice as the outbox keeps it: whole, because the task may be forgotten before it was delivered."""
    notice = notice_of(finish)
    return Delivery(
        notice.id,
        Route(CALLBACK, peer=finish.run.callback),
        msgspec.json.encode(notice).decode(),
        finish.run.id,
        finish.run.session,
        finish.epoch,
        first_at=now,
    )


def notice_id(run_id: str) -> str:
    return f"{run_id}.callback"
