"""Tasks: what programs ask agents for (T-1, T-5)."""

import asyncio

import msgspec

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.errors import BatchRefused, TaskNotFound, tell
from headway.gateway.operations import operation
from headway.gateway.operations.cancelling import cancelled
from headway.gateway.operations.sessions import need_place
from headway.model.errors import HeadwayError, NotFound, RunCancelled, RunFailed
from headway.model.run import RunId
from headway.model.task import Task
from headway.model.views import RunView
from headway.model.words import FINAL_STATES, Scope, Source, State
from headway.runtime.handle import Handle
from headway.wire.base import moment
from headway.wire.moments import read_when
from headway.wire.tasks import (
    BatchAnswer,
    BatchItem,
    BatchRequest,
    TaskAccepted,
    TaskAnswer,
    TaskItem,
    TaskPage,
    TaskPath,
    TaskRequest,
    TasksQuery,
    task_answer,
)


@operation(Scope.SUBMIT)
async def submit(desk: Desk, caller: Caller, asked: TaskRequest) -> TaskAccepted:
    """Ask an agent for a task. It is kept before this answers; `position` is its place in line."""
    caller.need_agent(asked.agent_id)
    await need_place(desk, caller, asked.session)
    options = _options(asked, caller, "deadline", asked.callback_url)
    try:
        handle = await desk.hw.submit(asked.agent_id, **options)  # type: ignore[arg-type]
    except (RunFailed, RunCancelled) as ended:
        # It was taken and has ended at once: its deadline had passed.
        return await _accepted(desk, ended.run_id, ended.outcome.state)
    return await _accepted(desk, handle.id)


@operation(Scope.SUBMIT)
async def submit_batch(desk: Desk, caller: Caller, asked: BatchRequest) -> BatchAnswer:
    """Ask an agent for up to 50 tasks. Each is taken or refused by itself or, with `atomic`, all or none."""
    caller.need_agent(asked.agent_id)
    for session in dict.fromkeys(item.session for item in asked.tasks):
        await need_place(desk, caller, session)
    requests = [
        _options(item, caller, f"tasks[{number}].deadline", item.callback_url or asked.callback_url)
        for number, item in enumerate(asked.tasks)
    ]
    taken = await desk.hw.submit_all(asked.agent_id, requests, atomic=asked.atomic)
    items = tuple(await asyncio.gather(*(_batch_item(desk, each) for each in taken)))
    submitted = sum(item.error is None for item in items)
    if not submitted:
        first = next(each for each in taken if isinstance(each, HeadwayError))
        raise BatchRefused(first, [msgspec.to_builtins(item) for item in items])
    return BatchAnswer(submitted=submitted, items=items)


@operation(Scope.READ)
async def get(desk: Desk, caller: Caller, asked: TaskPath) -> TaskAnswer:
    """One task as it is now, with its true place in line."""
    return await _told(desk, await _find(desk, caller, asked.task_id))


@operation(Scope.READ)
async def list_tasks(desk: Desk, caller: Caller, asked: TasksQuery) -> TaskPage:
    """Tasks, the newest first, a page at a time. Refused ones are among them for a while (F-6)."""
    page = await desk.hw.runs(
        agent=caller.only(asked.agent_id),
        state=asked.state,
        source=Source.TASK,
        limit=asked.limit,
        cursor=asked.cursor,
    )
    # All at once: places are then found out once for all of them, and are those of one moment.
    tasks = await asyncio.gather(*(_told(desk, view) for view in page.runs))
    return TaskPage(tasks=tuple(tasks), cursor=page.cursor)


@operation(Scope.SUBMIT)
async def cancel(desk: Desk, caller: Caller, asked: TaskPath) -> TaskAnswer:
    """Cancel a task and all that it started. A running one says `cancelling` until its runner has returned."""
    view = await _find(desk, caller, asked.task_id)
    return await _told(desk, await cancelled(desk, view))


async def _find(desk: Desk, caller: Caller, task_id: str) -> RunView:
    """A task of this caller; whether there is another one of that id is nobody's business."""
    try:
        view = await desk.hw.run(task_id)
    except NotFound:
        raise TaskNotFound(task_id) from None
    if view.run.source is not Source.TASK or not caller.sees(view.run.agent):
        raise TaskNotFound(task_id)
    return view


async def _told(desk: Desk, view: RunView) -> TaskAnswer:
    final = view.state in FINAL_STATES
    return task_answer(view, None if final else await desk.hw.position(view.id))


async def _accepted(desk: Desk, run_id: str, ended: State | None = None) -> TaskAccepted:
    position = None if ended else await desk.hw.position(run_id)
    live = desk.hw.engine.kernel.stage.runs.get(RunId(run_id))
    if live is not None:
        state, submitted_at = live.state, live.run.submitted_at
    else:
        # It has ended by now, was asked for before, or another node decides about it.
        view = await desk.hw.run(run_id)
        state, submitted_at = ended or view.state, view.run.submitted_at
    return TaskAccepted(
        task_id=run_id, state=state, position=position, created_at=moment(submitted_at)
    )


async def _batch_item(desk: Desk, taken: Handle | HeadwayError) -> BatchItem:
    if isinstance(taken, RunFailed | RunCancelled):
        accepted = await _accepted(desk, taken.run_id, taken.outcome.state)
    elif isinstance(taken, HeadwayError):
        return BatchItem(error=tell(taken).body)
    else:
        accepted = await _accepted(desk, taken.id)
    return BatchItem(**msgspec.structs.asdict(accepted))


def _options(
    asked: TaskItem, caller: Caller, deadline_field: str, callback: str | None
) -> dict[str, object]:
    """What the façade is asked: only what was said, so that its defaults are the only ones."""
    task = Task(asked.action, asked.tab_id, asked.selector, asked.ref, asked.params)
    options: dict[str, object] = {"task": task}
    if asked.priority:
        options["priority"] = asked.priority
    if asked.deadline is not None:
        options["deadline"] = read_when(asked.deadline, deadline_field)
    if asked.lane is not None:
        options["lane"] = asked.lane
    if asked.session is not None:
        options["session"] = asked.session
    if asked.idempotency_key is not None:
        options["idempotency_key"] = asked.idempotency_key
        options["on_repeat"] = asked.on_repeat
    if callback is not None:
        options["callback"] = callback
    if caller.traceparent:
        options["traceparent"] = caller.traceparent
    return options
