"""Where one sees who shares the work."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import nodes

TAG = "Nodes"

handlers = [
    Endpoint(
        "GET",
        "/nodes",
        nodes.list_nodes,
        TAG,
        answer_example={
            "nodes": [
                {
                    "node": 3,
                    "name": "web-1:4711",
                    "state": "alive",
                    "since": "2026-11-15T09:30:00.000Z",
                    "lease": "30s",
                    "sessions": 12,
                    "running": 4,
                    "host": "worker-1",
                }
            ],
            "cursor": None,
        },
    ),
]
