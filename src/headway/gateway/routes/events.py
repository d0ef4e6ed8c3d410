"""Where events are streamed."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import events
from headway.gateway.stream.response import MEDIA_TYPE

TAG = "Events"

_EXAMPLE = (
    "retry: 2000\nid: 1k3f9a2x-41\n\n"
    'id: 1k3f9a2x-42\nevent: RunStarted\ndata: {"event":"RunStarted","at":"2026-11-15T09:30:00.000Z",'
    '"runId":"1k3f9a2xq-7","agent":"support","session":"agent:support:telegram:dm:42","lane":"main",…}\n\n'
)

handlers = [
    Endpoint(
        "GET",
        "/events",
        events.stream,
        TAG,
        headers={"Last-Event-ID": "lastEventId"},
        media=MEDIA_TYPE,
        answer_example=_EXAMPLE,
    ),
]
