"""Where one sees the processes and panes that execute attempts."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import workers

TAG = "Workers"
WORKER = {
    "id": "1k3f9a2xq-42.1",
    "runId": "1k3f9a2xq-42",
    "attempt": 1,
    "agentId": "coder",
    "session": "agent:coder:main",
    "kind": "command",
    "host": "web-1",
    "node": 3,
    "pid": 4711,
    "born": 1_763_198_999.52,
    "startedAt": "2026-11-15T09:30:00.000Z",
    "state": "busy",
    "beatAt": "2026-11-15T09:34:00.000Z",
    "missed": 0,
    "lines": ["running 214 tests", "test_orders.py .........."],
    "pane": "",
    "adopted": False,
    "exitCode": None,
}
_BEAT = {
    "at": "2026-11-15T09:34:00.000Z",
    "state": "busy",
    "lines": ["running 214 tests", "test_orders.py .........."],
}

handlers = [
    Endpoint(
        "GET",
        "/workers",
        workers.list_workers,
        TAG,
        answer_example={"workers": [WORKER], "cursor": None},
    ),
    Endpoint(
        "GET",
        "/workers/{id}",
        workers.get_worker,
        TAG,
        refusals=(404,),
        answer_example={**WORKER, "beats": [_BEAT]},
    ),
]
