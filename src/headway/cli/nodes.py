"""`headway nodes`: who shares the work of a store."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.options import AsJson, StoreUrl

if TYPE_CHECKING:
    from headway.model.views import NodeView


def nodes(
    store: StoreUrl,
    ended: Annotated[bool, typer.Option("--all", help="Also those that have ended.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the nodes that share a store: since when, what they hold and run.

    A node that was killed reads as alive until another one has seen its
    lease run out.
    """
    from headway.wiring import run

    with errors_told():
        found = [node for node in run(_read(store)) if ended or not node.ended]
    print(_as_json(found) if as_json else _as_text(found))


async def _read(url: str) -> "Sequence[NodeView]":
    from headway.cli.opening import reading

    async with reading(url) as store:
        return await store.nodes()


def _as_text(found: "Sequence[NodeView]") -> str:
    from headway.cli.tables import table
    from headway.model.time import instant_text

    if not found:
        return "no nodes"
    head = ("node", "name", "state", "since", "sessions", "running")
    rows = [
        (
            str(node.id),
            node.name,
            node.ended or "alive",
            instant_text(node.started_at),
            str(node.sessions),
            str(node.running),
        )
        for node in found
    ]
    return table(head, rows)


def _as_json(found: "Sequence[NodeView]") -> str:
    from headway.model.time import instant_text, span_text

    return json.dumps(
        [
            {
                "node": node.id,
                "name": node.name,
                "state": node.ended or "alive",
                "since": instant_text(node.started_at),
                "lease": span_text(node.lease),
                "sessions": node.sessions,
                "running": node.running,
            }
            for node in found
        ],
        indent=2,
    )
