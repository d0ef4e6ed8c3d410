"""`headway heartbeat status`: which agents are woken, when next, and how it went."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.jobs.options import ShownIn
from headway.cli.options import AsJson, StoreUrl
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.model.views import JobView


def status(
    agent: Annotated[
        str | None,
        typer.Argument(metavar="[AGENT]", help="All about this one.", show_default=False),
    ] = None,
    *,
    store: StoreUrl,
    zone: ShownIn = None,
    as_json: AsJson = False,
) -> None:
    """Show which agents are woken from time to time; with an agent, all about its heartbeat."""
    from headway.cli.heartbeat import telling
    from headway.cli.jobs.telling import as_json as json_of
    from headway.core.schedule import zone_name
    from headway.wiring import run

    with errors_told():
        zone = None if zone is None else zone_name(zone, "--tz")
        if agent is not None:
            view, checklist = run(_read_one(store, agent))
            tell(view, checklist, zone, as_json=as_json)
            return
        views = run(_read(store))
    if as_json:
        print_all(json_of([telling.heartbeat_json(view) for view in views]))
        return
    from headway.cli.opening import wall_now

    print_all(telling.heartbeats_table(views, wall_now(), zone))


def tell(view: "JobView", checklist: str | None, zone: str | None = None, *, as_json: bool) -> None:
    """Print one heartbeat, as every command does that has just changed it."""
    from headway.cli.heartbeat import telling
    from headway.cli.jobs.telling import as_json as json_of
    from headway.cli.opening import wall_now

    if as_json:
        print_all(json_of(telling.heartbeat_json(view)))
    else:
        print_all(telling.heartbeat_lines(view, checklist, wall_now(), zone))


async def _read(url: str) -> "Sequence[JobView]":
    from headway.cli.jobs.finding import StoredJobs, every_job
    from headway.cli.opening import reading
    from headway.core.firing import job_view

    async with reading(url) as store:
        records = await every_job(StoredJobs(store), heartbeats=True)
    return [job_view(record) for record in records]


async def _read_one(url: str, agent: str) -> "tuple[JobView, str | None]":
    from headway.cli.heartbeat.checklist import read_checklist
    from headway.cli.heartbeat.finding import find
    from headway.cli.opening import reading
    from headway.core.firing import job_view

    async with reading(url) as store:
        record = await find(store, agent)
        return job_view(record), await read_checklist(store, record)
