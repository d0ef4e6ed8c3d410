"""Nodes, as JSON."""

from typing import Annotated, Literal, cast

from msgspec import Meta

from headway.model.time import instant_text, span_text
from headway.model.views import NodeView
from headway.wire.base import Answer, Limit, Moment, Request
from headway.wire.names import Number, NumberCursor, ShownLength


class NodesQuery(Request, frozen=True, kw_only=True):
    """Which nodes to list."""

    all: Annotated[bool, Meta(description="Also those that have ended.")] = False
    limit: Limit = 100
    cursor: NumberCursor | None = None


class NodeAnswer(Answer, frozen=True, kw_only=True):
    """One process that shares the work of a store."""

    node: Annotated[int, Meta(ge=0, description="Its number: each start has another.")]
    name: str
    state: Annotated[
        Literal["alive", "retired", "dead"],
        Meta(
            description="A node that was killed reads as alive until another has seen its lease run out."
        ),
    ]
    since: Moment
    lease: ShownLength
    sessions: Annotated[Number, Meta(description="How many sessions it decides for.")]
    running: Annotated[Number, Meta(description="How many runs it has begun and not finished.")]
    host: Annotated[str, Meta(description="The machine that it runs on.")]


class NodePage(Answer, frozen=True, kw_only=True):
    """Nodes, the latest first."""

    nodes: tuple[NodeAnswer, ...]
    cursor: NumberCursor | None = None


def node_answer(node: NodeView) -> NodeAnswer:
    return NodeAnswer(
        node=node.id,
        name=node.name,
        state=cast("Literal['alive', 'retired', 'dead']", node.ended or "alive"),
        since=instant_text(node.started_at),
        lease=span_text(node.lease),
        sessions=node.sessions,
        running=node.running,
        host=node.host,
    )
