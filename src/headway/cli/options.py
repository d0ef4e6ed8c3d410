"""Options that several commands share, and what they mean together: where to ask."""

import os
from typing import Annotated, NamedTuple

import typer

_WHERE = "Where to ask"

ServersStore = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="The server's store (HEADWAY_STORE, or that of a server which names none).",
        show_default=False,
    ),
]
ServerUrl = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        rich_help_panel=_WHERE,
        help="A running server (HEADWAY_SERVER, or http://127.0.0.1:8787).",
        show_default=False,
    ),
]
TokenText = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT",
        rich_help_panel=_WHERE,
        help="What shows that you may; better in HEADWAY_TOKEN, where nobody sees it.",
        show_default=False,
    ),
]
StoreInstead = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        rich_help_panel=_WHERE,
        help="A store instead of a server (HEADWAY_STORE): sqlite:///file.db, postgresql://host/db.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Watch = Annotated[
    bool, typer.Option("--watch", "-w", help="Show it again each second, until Ctrl-C.")
]
Limit = Annotated[int, typer.Option("-n", "--limit", min=1, max=1000, help="So many at most.")]
Cursor = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Go on where a page has ended that named it.")
]


class Place(NamedTuple):
    """Who is asked: a server, or a store where one is named."""

    store: str | None
    server: str
    token: str | None


def place_of(server: str | None, token: str | None, store: str | None = None) -> Place:
    """What flags and the environment say: flags win, and of the environment's two the server."""
    from headway.model.errors import InvalidInput
    from headway.model.server import ServerSettings

    if store and server:
        raise InvalidInput("--store", store, "left out where --server is given, or the other way")
    named = os.environ.get("HEADWAY_SERVER") or None
    kept = os.environ.get("HEADWAY_STORE") or None
    if not server and not store and not named:
        store = kept
    default = ServerSettings()
    address = server or named or f"http://{default.host}:{default.port}"
    return Place(store or None, address, token or os.environ.get("HEADWAY_TOKEN") or None)


NodeName = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="What this node is called in `headway nodes`."),
]
Grace = Annotated[
    str | None,
    typer.Option(
        "--grace",
        metavar="DURATION",
        help="How long running turns may take to finish when it stops (30s unless set).",
    ),
]
