"""Runs, as JSON: what was asked, where each stands, and how it ended."""

from typing import Annotated

from msgspec import Meta

from headway.model.outcome import Attachment, Outcome
from headway.model.run import Run
from headway.model.views import RunTree, RunView, Why
from headway.model.words import Reason, Rule, Source, State
from headway.wire.base import ALLOWED, Answer, Limit, Moment, Request, maybe_length
from headway.wire.base import maybe_moment as _maybe
from headway.wire.base import moment as _moment
from headway.wire.names import IS_CURSOR, AgentName, Number, SessionName, ShownLength
from headway.wire.places import AttachmentAnswer, RouteAnswer, attachment_answers, route_answer

RunIdText = Annotated[
    str,
    Meta(
        description="The id of a run.",
        pattern=r"^[0-9A-Za-z._:-]{1,128}$",
        extra={ALLOWED: "the id of a run, such as 1k3f9a2xq-42"},
        examples=["1k3f9a2xq-42"],
    ),
]
RunCursor = Annotated[
    str,
    Meta(
        description="Where the next page begins: the `cursor` of the page before.",
        pattern=r"^[0-9]{1,18}$",
        extra=IS_CURSOR,
    ),
]
Place = Annotated[
    int, Meta(ge=0, description="How many runs start before it if nothing else arrives.")
]


class RunPath(Request, frozen=True):
    """One run."""

    run_id: RunIdText


class RunsQuery(Request, frozen=True):
    """Which runs to list, the newest first."""

    agent_id: AgentName | None = None
    session: SessionName | None = None
    state: State | None = None
    source: Source | None = None
    limit: Limit = 100
    cursor: RunCursor | None = None


class OutcomeAnswer(Answer, frozen=True):
    """How a run ended, and what its agent answered."""

    state: State
    reason: Reason | None
    text: str
    attachments: tuple[AttachmentAnswer, ...]
    data: object
    error: str
    into: str | None
    """The run that took this one over, if it was merged."""
    tokens_in: Number
    tokens_out: Number
    code: str
    """What went wrong, where the runner can say it: `tab_not_found`, `command_failed`."""
    details: object
    """What the runner knows of it: exit code and the end of the output, or status and body."""


class RunAnswer(Answer, frozen=True):
    """A run as it is at one moment."""

    run_id: RunIdText
    agent_id: str
    session: str
    source: Source
    lane: str
    priority: int
    state: State
    attempt: Number
    cancelling: bool
    text: str
    attachments: tuple[AttachmentAnswer, ...]
    created_at: Moment
    due_at: Moment | None
    deadline_at: Moment | None
    started_at: Moment | None
    finished_at: Moment | None
    timeout: ShownLength | None
    route: RouteAnswer | None
    sender: str | None
    message_id: str | None
    idempotency_key: str | None
    parent: str | None
    resumes: str | None
    """The run whose agent session it goes on with, because somebody asked for that."""
    job: str | None
    """The job that made it, if one did."""
    action: str | None
    """Of a task: what is to be done; `GET /tasks/{taskId}` tells all of it."""
    outcome: OutcomeAnswer | None
    node: Annotated[int | None, Meta(description="The node that runs it, while one does.")]


class RunPage(Answer, frozen=True):
    """One page of runs, the newest first."""

    runs: tuple[RunAnswer, ...]
    cursor: RunCursor | None


class BranchAnswer(Answer, frozen=True):
    """A run in a tree."""

    depth: Number
    """0: the run that the tree was asked for."""
    run: RunAnswer


class TreeAnswer(Answer, frozen=True):
    """A run and all that it started, each behind the one that asked for it."""

    branches: tuple[BranchAnswer, ...]
    more: bool
    """Whether there are more than are shown."""


class WhyAnswer(Answer, frozen=True):
    """Which rule holds a run, its place in line, and when it may start (X-1)."""

    run_id: RunIdText
    state: State
    rule: Rule | None
    text: str
    """The same in words."""
    until: Moment | None
    by: str | None
    lane: str | None
    agent_id: str | None
    session: str | None
    place: Place | None
    exact: bool
    starts_in: ShownLength | None
    node: Annotated[
        int | None,
        Meta(
            description="The node that decides for its session, if it is another one: its place is known there."
        ),
    ]
    machine: Annotated[str | None, Meta(description="The machine that it waits for, if it is one.")]


def run_answer(view: RunView) -> RunAnswer:
    run = view.run
    return RunAnswer(
        run_id=run.id,
        agent_id=run.agent,
        session=run.session,
        source=run.source,
        lane=run.lane,
        priority=run.priority,
        state=view.state,
        attempt=view.attempt,
        cancelling=view.cancelling,
        text=run.text,
        attachments=attachment_answers(run.attachments),
        created_at=_moment(run.submitted_at),
        due_at=_maybe(run.due_at),
        deadline_at=_maybe(run.deadline_at),
        started_at=_maybe(view.started_at),
        finished_at=_maybe(view.finished_at),
        timeout=maybe_length(run.timeout),
        route=None if run.route is None else route_answer(run.route),
        sender=None if run.sender is None else run.sender.id,
        message_id=run.message_id,
        idempotency_key=run.idempotency_key,
        parent=run.parent,
        resumes=run.resumes,
        job=_job(run),
        action=None if run.task is None else run.task.action,
        outcome=None if view.outcome is None else outcome_answer(view.outcome),
        node=view.node or None,
    )


def tree_answer(tree: RunTree) -> TreeAnswer:
    branches = (BranchAnswer(depth=one.depth, run=run_answer(one.view)) for one in tree.branches)
    return TreeAnswer(branches=tuple(branches), more=tree.more)


def outcome_answer(outcome: Outcome) -> OutcomeAnswer:
    reply = outcome.reply
    attachments: tuple[Attachment, ...] = () if reply is None else reply.attachments
    return OutcomeAnswer(
        state=outcome.state,
        reason=outcome.reason,
        text=outcome.text,
        attachments=attachment_answers(attachments),
        data=None if reply is None else reply.data,
        error=outcome.error,
        into=outcome.into,
        tokens_in=outcome.tokens_in,
        tokens_out=outcome.tokens_out,
        code=outcome.code,
        details=outcome.details,
    )


def why_answer(why: Why) -> WhyAnswer:
    return WhyAnswer(
        run_id=why.run_id,
        state=why.state,
        rule=why.rule,
        text=str(why),
        until=_maybe(why.until),
        by=why.by,
        lane=why.lane,
        agent_id=why.agent,
        session=why.session,
        place=why.place,
        exact=why.exact,
        starts_in=maybe_length(why.starts_in),
        node=why.node,
        machine=why.machine,
    )


def _job(run: Run) -> str | None:
    return None if run.firing is None else run.firing.job
