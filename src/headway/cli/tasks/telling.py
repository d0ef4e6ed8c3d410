"""Tasks, as text for people."""

from collections.abc import Iterator, Sequence

from headway.cli.answers import LONGEST_CELL, NOTHING, as_json, lines_of, one_line
from headway.cli.runs.telling import ending_rows, ending_words
from headway.cli.tables import table
from headway.cli.times import ago, between
from headway.model.time import Instant
from headway.model.words import WAITING_STATES, State
from headway.wire.stats import StatsAnswer
from headway.wire.tasks import BatchAnswer, BatchItem, TaskAccepted, TaskAnswer


def accepted_line(task: TaskAccepted) -> str:
    return f"taken: task {task.task_id} ({task.state}{_place(task.state, task.position)})"


def batch_lines(batch: BatchAnswer) -> str:
    items = [f"  {number}  {_item(item)}" for number, item in enumerate(batch.items)]
    return "\n".join((f"{batch.submitted} of {len(batch.items)} taken", *items))


def tasks_table(tasks: Sequence[TaskAnswer], now: Instant) -> str:
    if not tasks:
        return "no tasks"
    head = ("task", "agent", "state", "place", "lane", "age", "took", "what")
    rows = [
        (
            task.task_id,
            task.agent_id,
            state_text(task),
            NOTHING if task.position is None else str(task.position),
            task.lane,
            ago(task.created_at, now),
            between(task.started_at, task.finished_at, now),
            one_line(what_text(task), LONGEST_CELL),
        )
        for task in tasks
    ]
    return table(head, rows)


def task_lines(task: TaskAnswer, now: Instant) -> str:
    """All about one task."""
    rows = [
        ("task", task.task_id),
        ("state", f"{state_text(task)}{_place(task.state, task.position)}"),
        ("agent", task.agent_id),
        ("action", one_line(task.action)),
        *((name, text) for name, text in _details(task, now) if text),
    ]
    return lines_of(rows)


def state_text(task: TaskAnswer) -> str:
    if task.outcome is not None:
        return ending_words(task.outcome)
    return "cancelling" if task.cancelling else str(task.state)


def what_text(task: TaskAnswer) -> str:
    return " ".join(part for part in (task.action, task.tab_id, task.selector, task.ref) if part)


def stats_lines(stats: StatsAnswer) -> str:
    limits = stats.limits
    rows = [
        ("node", f"{stats.node} ({stats.name}){', draining' if stats.draining else ''}"),
        ("queued", f"{stats.queued} tasks; at most {limits.max_queue}"),
        ("inflight", f"{stats.inflight} tasks; at most {limits.max_inflight}"),
        (
            "per agent",
            f"{limits.max_queue_per_agent} queued, {limits.max_inflight_per_agent} inflight",
        ),
        ("sessions", f"{stats.sessions} with work"),
    ]
    if stats.unknown_lanes:
        rows.append(("unknown lanes", f"{stats.unknown_lanes} runs went to main"))
    agents = [
        (load.agent_id, str(load.queued), str(load.inflight), str(load.waiting), str(load.running))
        for load in stats.agents
    ]
    text = lines_of(rows)
    if agents:
        head = ("agent", "queued", "inflight", "waiting", "running")
        text += f"\n\n{table(head, agents)}"
    return text


def _place(state: State | None, position: int | None) -> str:
    if position is None or state not in WAITING_STATES:
        return ""
    return f", {position} start{'' if position == 1 else 's'} before it" if position else ", next"


def _item(item: BatchItem) -> str:
    if item.error is not None:
        return f"refused: {item.error.error}"
    return f"task {item.task_id} ({item.state}{_place(item.state, item.position)})"


def _details(task: TaskAnswer, now: Instant) -> Iterator[tuple[str, str]]:
    yield "tab", one_line(task.tab_id)
    yield "selector", one_line(task.selector)
    yield "ref", one_line(task.ref)
    yield "params", one_line(as_json(task.params)) if task.params else ""
    yield "lane", f"{task.lane}, priority {task.priority}"
    yield "session", one_line(task.session)
    yield "asked", f"{task.created_at} ({ago(task.created_at, now)} ago)"
    yield "deadline", task.deadline_at or ""
    yield "started", task.started_at or ""
    yield "ended", task.finished_at or ""
    yield "key", one_line(task.idempotency_key or "")
    if task.outcome is not None:
        yield from ending_rows(task.outcome)
