"""Tasks, as JSON (T-1): what programs ask agents for."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from headway.core.callback_url import MAX_URL
from headway.model.task import Task
from headway.model.views import RunView
from headway.model.words import State
from headway.wire.base import ALLOWED, Answer, Limit, Moment, Request, maybe_moment, moment
from headway.wire.errors import ErrorAnswer
from headway.wire.moments import When
from headway.wire.names import AgentName, LaneName, Line, Name, Number, SessionName
from headway.wire.runs import OutcomeAnswer, Place, RunCursor, RunIdText, outcome_answer

MOST_IN_A_BATCH = 50

Action = Annotated[
    Name, Meta(description="What is to be done; the agent knows it.", examples=["click"])
]
Priority = Annotated[
    int, Meta(ge=-100, le=100, description="Lower goes first; those below 10 are interactive.")
]
CallbackAddress = Annotated[
    str,
    Meta(
        description=(
            "An address of the public internet, http or https, that is told how it ended; "
            "see the guide to delivery."
        ),
        min_length=1,
        max_length=MAX_URL,
        pattern=r"^https?://[\u0021-\u007e]+$",
        extra={ALLOWED: "an address such as https://example.com/hook: http or https, and ASCII"},
        examples=["https://example.com/hook"],
    ),
]
Params = Annotated[
    dict[str, object],
    Meta(description="Whatever else the action needs.", examples=[{"button": "left"}]),
]


class TaskItem(Request, frozen=True):
    """What is to be done, and when."""

    action: Action
    tab_id: Line = ""
    selector: Line = ""
    ref: Line = ""
    params: Params = msgspec.field(default_factory=dict)
    priority: Priority = 0
    deadline: When | None = None
    lane: LaneName | None = None
    session: SessionName | None = None
    idempotency_key: Name | None = None
    on_repeat: Literal["replay", "retry"] = "replay"
    """What a known idempotency key does whose run failed or was cancelled: tell that again, or try again (D-6)."""
    callback_url: CallbackAddress | None = None


class TaskRequest(TaskItem, frozen=True, kw_only=True):
    """A task for an agent."""

    agent_id: AgentName


class BatchRequest(Request, frozen=True):
    """Several tasks for one agent."""

    agent_id: AgentName
    tasks: Annotated[tuple[TaskItem, ...], Meta(min_length=1, max_length=MOST_IN_A_BATCH)]
    atomic: bool = False
    """Take all of them or none."""
    callback_url: CallbackAddress | None = None
    """For each task that names none itself."""


class TaskPath(Request, frozen=True):
    """One task."""

    task_id: RunIdText


class TasksQuery(Request, frozen=True):
    """Which tasks to list, the newest first."""

    agent_id: AgentName | None = None
    state: State | None = None
    limit: Limit = 100
    cursor: RunCursor | None = None


class TaskAccepted(Answer, frozen=True):
    """A task that was taken."""

    task_id: RunIdText
    state: State
    position: Place | None
    """null: it runs on another node, or has ended already."""
    created_at: Moment


class BatchItem(Answer, frozen=True):
    """What became of one task of a batch: it was taken, or there is an error."""

    task_id: RunIdText | None = None
    state: State | None = None
    position: Place | None = None
    created_at: Moment | None = None
    error: ErrorAnswer | None = None


class BatchAnswer(Answer, frozen=True):
    """What became of each task, in the order in which they were sent."""

    submitted: Number
    """How many were taken."""
    items: tuple[BatchItem, ...]


class TaskAnswer(Answer, frozen=True):
    """A task as it is at one moment."""

    task_id: RunIdText
    agent_id: str
    action: str
    tab_id: str
    selector: str
    ref: str
    params: dict[str, object]
    priority: int
    lane: str
    session: str
    state: State
    position: Place | None
    """null: it has ended, or another node decides about it."""
    attempt: Number
    cancelling: bool
    """It runs, and was asked to stop (T-5)."""
    created_at: Moment
    deadline_at: Moment | None
    started_at: Moment | None
    finished_at: Moment | None
    idempotency_key: str | None
    outcome: OutcomeAnswer | None


class TaskPage(Answer, frozen=True):
    """One page of tasks, the newest first."""

    tasks: tuple[TaskAnswer, ...]
    cursor: RunCursor | None


def task_answer(view: RunView, position: int | None) -> TaskAnswer:
    run = view.run
    task = run.task or Task("")
    return TaskAnswer(
        task_id=run.id,
        agent_id=run.agent,
        action=task.action,
        tab_id=task.tab_id,
        selector=task.selector,
        ref=task.ref,
        params=task.params,
        priority=run.priority,
        lane=run.lane,
        session=run.session,
        state=view.state,
        position=position,
        attempt=view.attempt,
        cancelling=view.cancelling,
        created_at=moment(run.submitted_at),
        deadline_at=maybe_moment(run.deadline_at),
        started_at=maybe_moment(view.started_at),
        finished_at=maybe_moment(view.finished_at),
        idempotency_key=run.idempotency_key,
        outcome=None if view.outcome is None else outcome_answer(view.outcome),
    )
