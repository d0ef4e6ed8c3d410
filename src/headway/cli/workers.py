"""`headway workers`: the processes and panes that execute attempts, and their signs of life."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.options import (
    AsJson,
    Cursor,
    Limit,
    ServerUrl,
    StoreInstead,
    TokenText,
    Watch,
)
from headway.model.words import WorkerState

if TYPE_CHECKING:
    from headway.model.time import Instant
    from headway.ports import Store
    from headway.wire.workers import WorkerAnswer, WorkerDetail, WorkerPage, WorkersQuery


def workers(
    worker: Annotated[
        str | None,
        typer.Argument(metavar="WORKER", help="One of them, by its id: also its latest beats."),
    ] = None,
    *,
    agent: Annotated[str | None, typer.Option(help="Only those of this agent.")] = None,
    host: Annotated[str | None, typer.Option(help="Only those on this machine.")] = None,
    state: Annotated[
        WorkerState | None, typer.Option(help="Only those in this state; else all that live.")
    ] = None,
    beats: Annotated[
        int, typer.Option(min=0, max=1000, help="So many beats of one worker at most.")
    ] = 10,
    limit: Limit = 100,
    cursor: Cursor = None,
    watch: Watch = False,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Show the workers of all nodes as they were last seen, the latest first.

    A worker is looked at each minute: busy if it wrote or computed something
    since, idle if not, dead if it ended or missed more beats than it may.
    """
    from headway.cli.answers import more
    from headway.cli.either import look_in_either
    from headway.cli.opening import wall_now
    from headway.wire.workers import WorkersQuery

    where = server, token, store
    if worker is not None:
        look_in_either(
            where,
            lambda client: client.workers.get(worker, beats),
            lambda kept: _stored_worker(kept, worker, beats),
            lambda found: worker_lines(found, wall_now()),
            json=as_json,
            watch=watch,
        )
        return
    query = WorkersQuery(agent_id=agent, host=host, state=state, limit=limit, cursor=cursor)
    page = look_in_either(
        where,
        lambda client: client.workers.list(query),
        lambda kept: _stored_workers(kept, query),
        lambda page: workers_table(page.workers, wall_now()),
        json=as_json,
        watch=watch,
    )
    if page is not None and not as_json:
        more(page.cursor)


async def _stored_workers(store: "Store", asked: "WorkersQuery") -> "WorkerPage":
    from headway.ports import WorkerQuery
    from headway.wire.workers import WorkerPage, worker_answer

    query = WorkerQuery(asked.agent_id, asked.host, asked.state, asked.limit, asked.cursor)
    page = await store.workers(query)
    return WorkerPage(workers=tuple(map(worker_answer, page.workers)), cursor=page.cursor)


async def _stored_worker(store: "Store", worker: str, beats: int) -> "WorkerDetail":
    from headway.model.errors import Refused
    from headway.wire.workers import worker_detail

    found = await store.find_worker(worker)
    if found is None:
        raise Refused(f"there is no worker {worker!r}")
    return worker_detail(found, await store.beats(worker, beats) if beats else ())


def workers_table(workers: "Sequence[WorkerAnswer]", now: "Instant") -> str:
    from headway.cli.answers import LONGEST_CELL, one_line
    from headway.cli.tables import table
    from headway.cli.times import ago

    if not workers:
        return "no workers"
    head = ("worker", "agent", "kind", "pid", "host", "state", "age", "seen", "last line")
    rows = [
        (
            worker.id,
            worker.agent_id,
            str(worker.kind),
            str(worker.pid),
            worker.host,
            state_text(worker),
            ago(worker.started_at, now),
            ago(worker.beat_at, now),
            one_line(_last(worker.lines), LONGEST_CELL),
        )
        for worker in workers
    ]
    return table(head, rows)


def worker_lines(worker: "WorkerDetail", now: "Instant") -> str:
    """All about one worker."""
    from headway.cli.answers import lines_of, one_line
    from headway.cli.times import ago

    rows = [
        ("worker", worker.id),
        ("state", state_text(worker)),
        ("run", f"{worker.run_id}, attempt {worker.attempt}"),
        ("agent", worker.agent_id),
        ("session", one_line(worker.session)),
        ("kind", str(worker.kind)),
        ("process", f"{worker.pid} on {worker.host}, looked after by node {worker.node}"),
        ("started", f"{worker.started_at} ({ago(worker.started_at, now)} ago)"),
        ("seen", f"{worker.beat_at} ({ago(worker.beat_at, now)} ago)"),
    ]
    if worker.pane:
        rows.append(("pane", worker.pane))
    if worker.adopted:
        rows.append(("adopted", "it outlived the process that had started it"))
    rows += [("wrote" if not at else "", one_line(line)) for at, line in enumerate(worker.lines)]
    for at, beat in enumerate(worker.beats):
        said = f"{beat.at}  {beat.state}  {one_line(_last(beat.lines), 60)}".rstrip()
        rows.append(("beats" if not at else "", said))
    return lines_of(rows)


def state_text(worker: "WorkerAnswer") -> str:
    """`busy`, `idle, 1 missed`, `dead, exit 3`, `dead, signal 9`."""
    if worker.exit_code is not None:
        code = worker.exit_code
        return f"{worker.state}, {f'exit {code}' if code >= 0 else f'signal {-code}'}"
    return f"{worker.state}, {worker.missed} missed" if worker.missed else str(worker.state)


def _last(lines: Sequence[str]) -> str:
    """The last line that says something."""
    return next((line for line in reversed(lines) if line.strip()), "")
