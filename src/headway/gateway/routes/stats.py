"""Where one sees what this node is at."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import stats
from headway.gateway.routes.lanes import LANE

TAG = "Scheduler"

handlers = [
    Endpoint(
        "GET",
        "/scheduler/stats",
        stats.scheduler_stats,
        TAG,
        answer_example={
            "node": 3,
            "name": "web-1:4711",
            "startedAt": "2026-11-15T09:30:00.000Z",
            "draining": False,
            "limits": {
                "maxQueue": 1000,
                "maxQueuePerAgent": 100,
                "maxInflight": 20,
                "maxInflightPerAgent": 10,
            },
            "queued": 14,
            "inflight": 20,
            "agents": [
                {"agentId": "browser", "queued": 14, "inflight": 20, "waiting": 14, "running": 20}
            ],
            "lanes": [LANE],
            "sessions": 34,
            "unknownLanes": 0,
            "leaseLeft": "28.3s",
        },
    ),
]
