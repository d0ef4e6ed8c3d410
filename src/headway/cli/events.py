"""`headway events`: what happens on a server, as lines."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.options import ServerUrl, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.events import EventQuery


def events(
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    last: Annotated[
        int,
        typer.Option("--last", "-n", min=0, max=1000, help="Begin with so many of the latest."),
    ] = 20,
    event: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this kind, such as RunFinished; more than once."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only about this agent.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only about this session.")
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="ID", help="Only about this run.")] = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each as a line of JSON, as the server tells it.")
    ] = False,
) -> None:
    """Show the latest events of a server; with --follow also those that come.

    A connection that breaks is taken up where it was. What the server does
    not remember any more is told of by an EventsMissed.
    """
    from headway.wire.events import EventQuery
    from headway.wiring import run as run_loop

    with errors_told():
        query = EventQuery(
            agent_id=agent,
            session=session,
            run_id=run,
            last=last,
            event=tuple(event_name(name) for name in event or ()),
            follow=follow,
        )
        try:
            run_loop(_tell(place_of(server, token), query, as_json=as_json))
        except KeyboardInterrupt:
            return


def event_name(written: str) -> str:
    """A kind of event, in any case of letters."""
    from headway.events import CATALOGUE
    from headway.model.errors import UnknownName
    from headway.model.telling import kind_of

    names = {name.lower(): name for name in map(kind_of, CATALOGUE)}
    if written.lower() not in names:
        raise UnknownName("--event", written, names.values())
    return names[written.lower()]


async def _tell(place: "Place", query: "EventQuery", *, as_json: bool) -> None:
    import json

    from headway.cli.opening import calling

    async with calling(place) as client:
        async for heard in client.events(query):
            text = json.dumps(heard.data, ensure_ascii=False) if as_json else event_line(heard.data)
            print_all(text)


def event_line(data: dict[str, object]) -> str:
    """An event as people read it: when, what, and the rest by name."""
    rest = dict(data)
    at, event = str(rest.pop("at", "")), str(rest.pop("event", ""))
    said = "  ".join(
        f"{name}={shown(value)}"
        for name, value in rest.items()
        if value not in (None, "") and name != "trace"
    )
    return f"{at}  {event:<16}  {said}".rstrip()


def shown(value: object) -> str:
    import json

    plain = isinstance(value, str) and value and not any(letter in value for letter in ' \n\t"=')
    return str(value) if plain else json.dumps(value, ensure_ascii=False)
