"""`headway nodes`: who shares the work of a store."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.options import (
    AsJson,
    ServerUrl,
    StoreInstead,
    TokenText,
    Watch,
    place_of,
)

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.nodes import NodePage

_AT_ONCE = 1000


def nodes(
    *,
    ended: Annotated[bool, typer.Option("--all", help="Also those that have ended.")] = False,
    watch: Watch = False,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Show the nodes that share a store: since when, what they hold and run.

    A node that was killed reads as alive until another one has seen its
    lease run out.
    """
    from headway.cli.answers import more, show
    from headway.cli.asking import look
    from headway.wire.nodes import NodesQuery
    from headway.wiring import run

    with errors_told():
        place = place_of(server, token, store)
    if place.store is not None:
        with errors_told():
            found = run(_stored(place, ended=ended))
        show(found, nodes_table, json=as_json)
        return
    query = NodesQuery(all=ended, limit=_AT_ONCE)
    page = look(
        server,
        token,
        lambda client: client.server.nodes(query),
        nodes_table,
        json=as_json,
        watch=watch,
    )
    if page is not None and not as_json:
        more(page.cursor)


async def _stored(place: "Place", *, ended: bool) -> "NodePage":
    from headway.cli.opening import reading
    from headway.wire.nodes import NodePage, node_answer

    assert place.store is not None
    async with reading(place.store) as store:
        found = [node for node in await store.nodes() if ended or not node.ended]
    newest = sorted(found, key=lambda node: -node.id)
    return NodePage(nodes=tuple(map(node_answer, newest)))


def nodes_table(page: "NodePage") -> str:
    from headway.cli.tables import table

    if not page.nodes:
        return "no nodes"
    head = ("node", "name", "machine", "state", "since", "sessions", "running")
    rows = [
        (
            str(node.node),
            node.name,
            node.host,
            node.state,
            node.since,
            str(node.sessions),
            str(node.running),
        )
        for node in page.nodes
    ]
    return table(head, rows)
