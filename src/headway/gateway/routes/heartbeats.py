"""Where the periodic wake-ups of agents are kept (H-1)."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import heartbeats
from headway.gateway.routes.jobs import ENTRY, STATE

TAG = "Heartbeats"
_HEARTBEAT = {
    "agentId": "support",
    "id": "j-7d1w5x",
    "enabled": True,
    "every": "20m",
    "hours": {"hours": "08:00-22:00", "tz": "Europe/Paris"},
    "target": "last",
    "checklist": None,
    "prompt": None,
    "session": "main",
    "lane": None,
    "timeout": None,
    "ackMaxChars": 300,
    "createdAt": "2026-11-15T09:30:00.000Z",
    "state": STATE,
}
_CHECKLIST = {"agentId": "support", "checklist": "- look for open tickets\n"}

handlers = [
    Endpoint(
        "GET",
        "/heartbeats",
        heartbeats.list_heartbeats,
        TAG,
        answer_example={"heartbeats": [_HEARTBEAT], "cursor": None},
    ),
    Endpoint(
        "GET",
        "/heartbeats/{agentId}",
        heartbeats.get_heartbeat,
        TAG,
        refusals=(404,),
        answer_example=_HEARTBEAT,
    ),
    Endpoint(
        "PUT",
        "/heartbeats/{agentId}",
        heartbeats.set_heartbeat,
        TAG,
        asked_example={"every": "20m", "hours": {"hours": "08:00-22:00", "tz": "Europe/Paris"}},
        answer_example=_HEARTBEAT,
    ),
    Endpoint(
        "DELETE",
        "/heartbeats/{agentId}",
        heartbeats.remove_heartbeat,
        TAG,
        refusals=(404,),
        answer_example={"removed": "support"},
    ),
    Endpoint(
        "POST",
        "/heartbeats/{agentId}/pause",
        heartbeats.pause_heartbeat,
        TAG,
        refusals=(404,),
        answer_example={**_HEARTBEAT, "enabled": False, "state": {**STATE, "nextRunAt": None}},
    ),
    Endpoint(
        "POST",
        "/heartbeats/{agentId}/resume",
        heartbeats.resume_heartbeat,
        TAG,
        refusals=(404,),
        answer_example=_HEARTBEAT,
    ),
    Endpoint(
        "POST",
        "/heartbeats/{agentId}/wake",
        heartbeats.wake,
        TAG,
        refusals=(404, 409),
        asked_example={"manual": True},
        answer_example={"agentId": "support", "wakeAt": "2026-11-15T09:30:00.250Z"},
    ),
    Endpoint(
        "GET",
        "/heartbeats/{agentId}/log",
        heartbeats.heartbeat_log,
        TAG,
        refusals=(404,),
        answer_example={"entries": [{**ENTRY, "job": "j-7d1w5x"}], "cursor": None},
    ),
    Endpoint(
        "GET",
        "/heartbeats/{agentId}/checklist",
        heartbeats.get_checklist,
        TAG,
        refusals=(404, 409),
        answer_example=_CHECKLIST,
    ),
    Endpoint(
        "PUT",
        "/heartbeats/{agentId}/checklist",
        heartbeats.set_checklist,
        TAG,
        refusals=(409,),
        asked_example={"checklist": "- look for open tickets\n"},
        answer_example=_CHECKLIST,
    ),
]
