"""`headway heartbeat status`: which agents are woken, when next, and how it went."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.jobs.options import ShownIn
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.heartbeats import HeartbeatAnswer, HeartbeatPage


def status(
    agent: Annotated[
        str | None,
        typer.Argument(metavar="AGENT", help="All about this one.", show_default=False),
    ] = None,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    zone: ShownIn = None,
    as_json: AsJson = False,
) -> None:
    """Show which agents are woken from time to time; with an agent, all about its heartbeat."""
    from headway.cli.answers import as_json as json_of
    from headway.cli.heartbeat import telling
    from headway.core.schedule import zone_name
    from headway.wiring import run

    with errors_told():
        zone = None if zone is None else zone_name(zone, "--tz")
        place = place_of(server, token, store)
        if agent is not None:
            found, checklist = run(_read_one(place, agent))
            tell(found, checklist, zone, as_json=as_json)
            return
        page = run(_read(place))
    if as_json:
        print_all(json_of(page))
        return
    from headway.cli.opening import wall_now
    from headway.cli.views import heartbeat_view

    views = [heartbeat_view(found) for found in page.heartbeats]
    print_all(telling.heartbeats_table(views, wall_now(), zone))


def tell(
    found: "HeartbeatAnswer", checklist: str | None, zone: str | None = None, *, as_json: bool
) -> None:
    """Print one heartbeat, as every command does that has just changed it."""
    from headway.cli.answers import as_json as json_of
    from headway.cli.heartbeat import telling
    from headway.cli.opening import wall_now
    from headway.cli.views import heartbeat_view

    if as_json:
        print_all(json_of(found))
    else:
        print_all(telling.heartbeat_lines(heartbeat_view(found), checklist, wall_now(), zone))


async def _read(place: "Place") -> "HeartbeatPage":
    from headway.cli.heartbeat.boards import every_heartbeat, heartbeats_shown
    from headway.wire.heartbeats import HeartbeatPage

    async with heartbeats_shown(place) as heartbeats:
        return HeartbeatPage(heartbeats=tuple(await every_heartbeat(heartbeats)))


async def _read_one(place: "Place", agent: str) -> "tuple[HeartbeatAnswer, str | None]":
    from headway.cli.heartbeat.boards import heartbeats_shown

    async with heartbeats_shown(place) as heartbeats:
        return await heartbeats.get(agent), await heartbeats.checklist(agent)
