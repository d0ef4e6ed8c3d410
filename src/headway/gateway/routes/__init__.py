"""The table of routes: which path leads to which operation.

Each file has the paths of one subject as `handlers`: only tables are here, and nothing is decided. The order is
that of the documents.
"""

from litestar.handlers import BaseRouteHandler

from headway.gateway.endpoint import Endpoint
from headway.gateway.routes import (
    config,
    events,
    health,
    heartbeats,
    jobs,
    lanes,
    machine,
    messages,
    metrics,
    nodes,
    outbox,
    rpc,
    runs,
    sessions,
    stats,
    tasks,
    workers,
)

ALL: list[Endpoint | BaseRouteHandler] = [
    *tasks.handlers,
    *messages.handlers,
    *runs.handlers,
    *sessions.handlers,
    *lanes.handlers,
    *jobs.handlers,
    *heartbeats.handlers,
    *outbox.handlers,
    *nodes.handlers,
    *workers.handlers,
    *machine.handlers,
    *stats.handlers,
    *config.handlers,
    *events.handlers,
    *rpc.handlers,
    *health.handlers,
    *metrics.handlers,
]
