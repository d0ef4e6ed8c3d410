"""Where sessions are looked at and stopped."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import sessions

TAG = "Sessions"
_KEY = "agent:support:telegram:dm:42"
_SUMMARY = {
    "key": _KEY,
    "runningCount": 1,
    "waitingCount": 1,
    "debouncingCount": 0,
    "agents": ["support"],
}
_SESSION = {
    **_SUMMARY,
    "running": ["1k3f9a2xq-42"],
    "waiting": ["1k3f9a2xq-43"],
    "debouncing": [],
    "queue": {
        "mode": "collect",
        "cap": 25,
        "drop": None,
        "debounce": "2s",
        "steerFallback": None,
        "maxConcurrent": None,
    },
}
_STOPPED = {"key": _KEY, "running": 2, "waiting": 3, "text": "2 running and 3 waiting stopped"}

handlers = [
    Endpoint(
        "GET",
        "/sessions",
        sessions.list_sessions,
        TAG,
        answer_example={"sessions": [_SUMMARY], "cursor": None},
    ),
    Endpoint(
        "GET",
        "/sessions/{key}",
        sessions.get_session,
        TAG,
        refusals=(404,),
        answer_example=_SESSION,
    ),
    Endpoint(
        "PATCH",
        "/sessions/{key}/queue",
        sessions.set_queue,
        TAG,
        refusals=(404,),
        asked_example={"mode": "collect", "debounce": "2s", "cap": 25},
        answer_example=_SESSION,
    ),
    Endpoint(
        "DELETE",
        "/sessions/{key}/queue",
        sessions.reset_queue,
        TAG,
        refusals=(404,),
        answer_example=_SESSION,
    ),
    Endpoint(
        "POST",
        "/sessions/{key}/clear",
        sessions.clear_session,
        TAG,
        refusals=(404,),
        answer_example={"key": _KEY, "cleared": 3},
    ),
    Endpoint(
        "POST",
        "/sessions/{key}/stop",
        sessions.stop,
        TAG,
        refusals=(404,),
        answer_example={**_STOPPED, "running": 1, "waiting": 0, "text": "1 running stopped"},
    ),
    Endpoint(
        "POST",
        "/sessions/{key}/stopall",
        sessions.stop_all,
        TAG,
        refusals=(404,),
        answer_example=_STOPPED,
    ),
]
