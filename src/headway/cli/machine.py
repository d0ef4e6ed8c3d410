"""`headway machine`: how the machines are that nodes run on."""

import sys
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

if TYPE_CHECKING:
    from headway.model.time import Instant
    from headway.ports import Store
    from headway.wire.workers import MachineAnswer, SnapshotAnswer, SnapshotPage, SnapshotsQuery

_CELLS = 10
_PLAIN = str.maketrans("█░", "#.")


def machine(
    *,
    history: Annotated[
        bool, typer.Option("--history", help="How they were, minute by minute, the latest first.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(help="Only this machine's history; implies --history.")
    ] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    watch: Watch = False,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Show each machine that nodes run on: CPU, memory, load and workers, as last seen."""
    from headway.cli.answers import more
    from headway.cli.either import look_in_either
    from headway.cli.opening import wall_now
    from headway.wire.workers import SnapshotsQuery

    where = server, token, store
    if not history and host is None and cursor is None:
        look_in_either(
            where,
            lambda client: client.workers.machines(),
            _stored_machines,
            lambda found: machines_table(found.machines, wall_now()),
            json=as_json,
            watch=watch,
        )
        return
    query = SnapshotsQuery(host=host, limit=limit, cursor=cursor)
    page = look_in_either(
        where,
        lambda client: client.workers.snapshots(query),
        lambda kept: _stored_snapshots(kept, query),
        lambda page: history_table(page.snapshots),
        json=as_json,
        watch=watch,
    )
    if page is not None and not as_json:
        more(page.cursor)


async def _stored_machines(store: "Store") -> "MachineAnswer":
    from headway.wire.workers import machine_answer

    return machine_answer(await store.machines())


async def _stored_snapshots(store: "Store", asked: "SnapshotsQuery") -> "SnapshotPage":
    from headway.ports import SnapshotQuery
    from headway.wire.workers import SnapshotPage, snapshot_answer

    page = await store.snapshots(SnapshotQuery(asked.host, asked.limit, asked.cursor))
    return SnapshotPage(snapshots=tuple(map(snapshot_answer, page.snapshots)), cursor=page.cursor)


def machines_table(machines: "Sequence[SnapshotAnswer]", now: "Instant") -> str:
    from headway.cli.tables import table
    from headway.cli.times import ago

    if not machines:
        return "no machine was seen yet"
    head = ("machine", "node", "seen", "cores", "cpu", "memory", "load", "workers", "lanes")
    rows = [
        (
            seen.host,
            str(seen.node),
            ago(seen.at, now),
            str(seen.cores),
            *_figures(seen),
            _lanes(seen),
        )
        for seen in machines
    ]
    return table(head, rows)


def history_table(snapshots: "Sequence[SnapshotAnswer]") -> str:
    from headway.cli.tables import table

    if not snapshots:
        return "no machine was seen yet"
    head = ("at", "machine", "node", "cpu", "memory", "load", "workers", "lanes")
    rows = [
        (seen.at, seen.host, str(seen.node), *_figures(seen), _lanes(seen)) for seen in snapshots
    ]
    return table(head, rows)


def _figures(seen: "SnapshotAnswer") -> tuple[str, str, str, str]:
    from headway.cli.tables import bytes_text

    share = seen.memory_used / seen.memory_total if seen.memory_total else 0.0
    used, total = bytes_text(seen.memory_used), bytes_text(seen.memory_total)
    return (
        f"{bar(seen.cpu / 100)} {seen.cpu:3.0f} %",
        f"{bar(share)} {used} of {total}",
        f"{seen.load:.2f}",
        str(seen.workers),
    )


def _lanes(seen: "SnapshotAnswer") -> str:
    """The lanes in which something goes or waits."""
    busy = [lane for lane in seen.lanes if lane.running or lane.waiting]
    return ", ".join(
        f"{lane.name} {lane.running}/{lane.width}{f' +{lane.waiting}' if lane.waiting else ''}"
        for lane in busy
    )


def bar(share: float) -> str:
    """A small bar: as many cells as are in use, at least one if anything is."""
    full = min(_CELLS, max(round(share * _CELLS), int(share > 0)))
    drawn = "█" * full + "░" * (_CELLS - full)
    try:
        drawn.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return drawn.translate(_PLAIN)
    return drawn
