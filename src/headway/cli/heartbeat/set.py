"""`headway heartbeat set`: give an agent a heartbeat."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.heartbeat.status import tell
from headway.cli.jobs.options import route_of
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.heartbeats import HeartbeatAnswer


def set_heartbeat(
    agent: Agent,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    every: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How often it is woken, each 30s at most (30m)."),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            help="What it is told, with its checklist below; it answers HEARTBEAT_OK if all is well."
        ),
    ] = None,
    hours: Annotated[
        str | None,
        typer.Option(metavar="HH:MM-HH:MM", help="Only then: 08:00-22:00, or 22:00-06:00."),
    ] = None,
    tz: Annotated[
        str | None, typer.Option(metavar="ZONE", help="The time zone of --hours.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="last|none|CHANNEL:TO",
            help="Who is told: where its latest message came from (last), nobody, or an address.",
        ),
    ] = None,
    checklist: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Its HEARTBEAT.md, on the machine that runs it (else in the store).",
        ),
    ] = None,
    ack_max_chars: Annotated[
        int | None,
        typer.Option(min=0, help="What it says beside HEARTBEAT_OK is worth telling above (300)."),
    ] = None,
    lane: Annotated[str | None, typer.Option(metavar="NAME", help="Its lane (cron).")] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="main|isolated|KEY", help="The agent's own, a fresh one, or yours (main)."
        ),
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="The bound on one attempt (1h).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give an agent a heartbeat, or another one: what is not said is at its default.

    A heartbeat that a program declares in its code is renewed from there at
    the program's next start.

    \b
    headway heartbeat set support --every 20m --hours 08:00-22:00 --tz Europe/Paris
    """
    from headway.wiring import run

    with errors_told():
        options: dict[str, object] = {
            "every": every,
            "prompt": prompt,
            "hours": hours,
            "tz": tz,
            "target": target if target in {None, "last", "none"} else route_of(target, "--target"),
            "checklist": checklist,
            "ack_max_chars": ack_max_chars,
            "lane": lane,
            "session": session,
            "timeout": timeout,
        }
        said = {name: value for name, value in options.items() if value is not None}
        found, text = run(_set(place_of(server, token, store), agent, said))
    tell(found, text, as_json=as_json)


async def _set(
    place: "Place", agent: str, options: dict[str, object]
) -> "tuple[HeartbeatAnswer, str | None]":
    from headway.cli.heartbeat.boards import heartbeats_changed

    async with heartbeats_changed(place) as heartbeats:
        return await heartbeats.set(agent, options), await heartbeats.checklist(agent)
