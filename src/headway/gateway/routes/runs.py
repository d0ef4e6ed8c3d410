"""Where runs of every kind are looked at and cancelled."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import events, runs
from headway.gateway.stream.response import MEDIA_TYPE

TAG = "Runs"
_RUN = {
    "runId": "1k3f9a2xq-42",
    "agentId": "support",
    "session": "agent:support:telegram:dm:42",
    "source": "message",
    "lane": "main",
    "priority": 0,
    "state": "running",
    "attempt": 1,
    "cancelling": False,
    "text": "Where is my order?",
    "attachments": [],
    "createdAt": "2026-11-15T09:30:00.000Z",
    "dueAt": None,
    "deadlineAt": None,
    "startedAt": "2026-11-15T09:30:00.800Z",
    "finishedAt": None,
    "timeout": "1h",
    "route": {"channel": "telegram", "to": "42"},
    "sender": "ann",
    "messageId": "1001",
    "idempotencyKey": None,
    "parent": None,
    "resumes": None,
    "job": None,
    "action": None,
    "outcome": None,
    "node": 3,
}
_WHY = {
    "runId": "1k3f9a2xq-43",
    "state": "queued",
    "rule": "session_busy",
    "text": "session agent:support:telegram:dm:42 is busy with run 1k3f9a2xq-42; 0 starts before it",
    "until": None,
    "by": "1k3f9a2xq-42",
    "lane": "main",
    "agentId": "support",
    "session": "agent:support:telegram:dm:42",
    "place": 0,
    "exact": True,
    "startsIn": "12s",
    "node": None,
    "machine": None,
}

handlers = [
    Endpoint("GET", "/runs", runs.list_runs, TAG, answer_example={"runs": [_RUN], "cursor": None}),
    Endpoint("GET", "/runs/{runId}", runs.get, TAG, refusals=(404,), answer_example=_RUN),
    Endpoint(
        "POST",
        "/runs/{runId}/cancel",
        runs.cancel,
        TAG,
        refusals=(404, 409),
        answer_example={**_RUN, "cancelling": True},
    ),
    Endpoint(
        "GET",
        "/runs/{runId}/tree",
        runs.tree,
        TAG,
        refusals=(404,),
        answer_example={
            "branches": [
                {"depth": 0, "run": _RUN},
                {"depth": 1, "run": {**_RUN, "runId": "1k3f9a2xq-43", "parent": "1k3f9a2xq-42"}},
            ],
            "more": False,
        },
    ),
    Endpoint(
        "POST",
        "/runs/{runId}/resume",
        runs.resume,
        TAG,
        status=202,
        refusals=(404, 409),
        answer_example={**_RUN, "state": "queued", "resumes": "1k3f9a2xq-41"},
    ),
    Endpoint("GET", "/runs/{runId}/why", runs.why, TAG, refusals=(404,), answer_example=_WHY),
    Endpoint(
        "GET",
        "/runs/{runId}/output",
        events.output,
        TAG,
        refusals=(404,),
        media=MEDIA_TYPE,
        answer_example='event: output\ndata: {"runId":"1k3f9a2xq-42","text":"Looking …","cut":false}\n\n',
    ),
]
