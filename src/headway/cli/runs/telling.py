"""Runs, as text for people."""

from collections.abc import Iterator, Sequence

import msgspec

from headway.cli.answers import LONGEST_CELL, NOTHING, lines_of, one_line
from headway.cli.tables import table
from headway.cli.times import ago, between
from headway.model.time import Instant
from headway.wire.places import RouteAnswer
from headway.wire.runs import OutcomeAnswer, RunAnswer, TreeAnswer

_LONGEST_KEY = 40


def runs_table(runs: Sequence[RunAnswer], now: Instant) -> str:
    if not runs:
        return "no runs"
    head = ("run", "agent", "source", "state", "lane", "age", "took", "session", "what")
    rows = [
        (
            run.run_id,
            run.agent_id,
            str(run.source),
            state_text(run),
            run.lane,
            ago(run.created_at, now),
            between(run.started_at, run.finished_at, now),
            one_line(run.session, _LONGEST_KEY),
            one_line(what_text(run), LONGEST_CELL),
        )
        for run in runs
    ]
    return table(head, rows)


def run_lines(run: RunAnswer, now: Instant) -> str:
    """All about one run."""
    rows = [
        ("run", run.run_id),
        ("state", state_text(run) if run.node is None else f"{state_text(run)} on node {run.node}"),
        ("agent", run.agent_id),
        ("session", one_line(run.session)),
        ("source", run.source if run.job is None else f"{run.source} of job {run.job}"),
        ("lane", f"{run.lane}, priority {run.priority}"),
        ("asked", f"{run.created_at} ({ago(run.created_at, now)} ago)"),
        *((name, text) for name, text in _options(run, now) if text),
    ]
    if run.outcome is not None:
        rows += [(name, text) for name, text in _ending(run.outcome) if text]
    return lines_of(rows)


def tree_lines(tree: TreeAnswer, now: Instant) -> str:
    """A line for each run, drawn below the one that asked for it."""
    lines: list[str] = []
    last: set[int] = set()
    for at, branch in enumerate(tree.branches):
        depth, run = branch.depth, branch.run
        following = tree.branches[at + 1 :]
        is_last = next((later.depth < depth for later in following if later.depth <= depth), True)
        last = {level for level in last if level < depth} | ({depth} if is_last else set())
        stem = "".join("   " if level in last else "│  " for level in range(1, depth))
        twig = "" if not depth else "└─ " if is_last else "├─ "
        took = between(run.started_at, run.finished_at, now)
        about = " · ".join(part for part in (state_text(run), took) if part)
        what = one_line(what_text(run), LONGEST_CELL)
        lines.append(f"{stem}{twig}{run.run_id}  {run.agent_id}  {about}  {what}".rstrip())
    if tree.more:
        lines.append("… and more")
    return "\n".join(lines)


def state_text(run: RunAnswer) -> str:
    """`running`, `cancelling`, `failed/error`."""
    if run.outcome is not None:
        return ending_words(run.outcome)
    return "cancelling" if run.cancelling else str(run.state)


def ending_words(outcome: OutcomeAnswer) -> str:
    return f"{outcome.state}/{outcome.reason}" if outcome.reason else str(outcome.state)


def what_text(run: RunAnswer) -> str:
    return run.text if run.action is None else f"{run.action} {run.text}".rstrip()


def route_text(route: RouteAnswer) -> str:
    return one_line(":".join(part for part in (route.channel, route.to, route.thread) if part))


def _options(run: RunAnswer, now: Instant) -> Iterator[tuple[str, str]]:
    yield "due", run.due_at or ""
    yield "deadline", run.deadline_at or ""
    took = between(run.started_at, run.finished_at, now)
    attempt = f", attempt {run.attempt}" if run.attempt > 1 else ""
    for_how_long = "for" if run.finished_at is None else "took"
    yield (
        "started",
        "" if run.started_at is None else (f"{run.started_at} ({for_how_long} {took}{attempt})"),
    )
    yield "ended", run.finished_at or ""
    yield "timeout", run.timeout or ""
    yield "route", "" if run.route is None else route_text(run.route)
    yield "sender", one_line(run.sender or "")
    yield "message", one_line(run.message_id or "")
    yield "key", one_line(run.idempotency_key or "")
    yield "parent", run.parent or ""
    yield "resumes", run.resumes or ""
    yield "asks", one_line(what_text(run)) or NOTHING


def ending_rows(outcome: OutcomeAnswer) -> Iterator[tuple[str, str]]:
    """What its agent answered, or what went wrong."""
    yield "reply", one_line(outcome.text)
    yield "data", "" if outcome.data is None else one_line(json_text(outcome.data))
    yield "error", one_line(outcome.error)
    yield "code", outcome.code
    yield "details", "" if outcome.details is None else one_line(json_text(outcome.details))


def json_text(data: object) -> str:
    return msgspec.json.encode(data).decode()


def _ending(outcome: OutcomeAnswer) -> Iterator[tuple[str, str]]:
    yield from ending_rows(outcome)
    yield "merged into", outcome.into or ""
    if outcome.tokens_in or outcome.tokens_out:
        yield "tokens", f"{outcome.tokens_in} in, {outcome.tokens_out} out"
