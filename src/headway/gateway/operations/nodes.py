"""What can be asked about nodes."""

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.operations import operation
from headway.model.words import Scope
from headway.wire.nodes import NodePage, NodesQuery, node_answer


@operation(Scope.READ)
async def list_nodes(desk: Desk, caller: Caller, asked: NodesQuery) -> NodePage:  # noqa: ARG001
    """List the nodes that share this server's store, the latest first."""
    nodes = await desk.hw.nodes()
    before = None if asked.cursor is None else int(asked.cursor)
    found = sorted(
        (
            node
            for node in nodes
            if (asked.all or not node.ended) and (before is None or node.id < before)
        ),
        key=lambda node: -node.id,
    )
    page = found[: asked.limit]
    cursor = str(page[-1].id) if len(found) > asked.limit else None
    return NodePage(nodes=tuple(map(node_answer, page)), cursor=cursor)
