"""Where tasks are asked for and looked at (T-1)."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import tasks

TAG = "Tasks"
_KEY = {"Idempotency-Key": "idempotencyKey"}
_CLICK = {"agentId": "browser", "action": "click", "tabId": "tab1", "ref": "e12", "deadline": "30s"}
_ACCEPTED = {
    "taskId": "1k3f9a2xq-42",
    "state": "queued",
    "position": 3,
    "createdAt": "2026-11-15T09:30:00.000Z",
}
_TASK = {
    **_ACCEPTED,
    "agentId": "browser",
    "action": "click",
    "tabId": "tab1",
    "selector": "",
    "ref": "e12",
    "params": {},
    "priority": 0,
    "lane": "main",
    "session": "run:1k3f9a2xq-42",
    "attempt": 0,
    "cancelling": False,
    "deadlineAt": "2026-11-15T09:30:30.000Z",
    "startedAt": None,
    "finishedAt": None,
    "idempotencyKey": None,
    "outcome": None,
}

handlers = [
    Endpoint(
        "POST",
        "/tasks",
        tasks.submit,
        TAG,
        status=202,
        headers=_KEY,
        location="/tasks/{taskId}",
        refusals=(404, 409, 429),
        asked_example=_CLICK,
        answer_example=_ACCEPTED,
    ),
    Endpoint(
        "POST",
        "/tasks/batch",
        tasks.submit_batch,
        TAG,
        status=202,
        refusals=(404, 429),
        asked_example={
            "agentId": "browser",
            "tasks": [{"action": "click", "ref": "e1"}, {"action": "type", "ref": "e2"}],
        },
        answer_example={"submitted": 1, "items": [{**_ACCEPTED, "error": None}]},
    ),
    Endpoint(
        "GET",
        "/tasks",
        tasks.list_tasks,
        TAG,
        answer_example={"tasks": [_TASK], "cursor": None},
    ),
    Endpoint("GET", "/tasks/{taskId}", tasks.get, TAG, refusals=(404,), answer_example=_TASK),
    Endpoint(
        "POST",
        "/tasks/{taskId}/cancel",
        tasks.cancel,
        TAG,
        refusals=(404, 409),
        answer_example={**_TASK, "state": "running", "cancelling": True},
    ),
]
