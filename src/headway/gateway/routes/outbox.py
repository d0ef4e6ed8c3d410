"""Where one sees what is to be said on channels, and tries again what was given up."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import outbox

TAG = "Outbox"

handlers = [
    Endpoint(
        "GET",
        "/outbox",
        outbox.list_letters,
        TAG,
        answer_example={
            "letters": [
                {
                    "id": "1k3f9a2xq-42:reply",
                    "state": "dead",
                    "route": {"channel": "telegram", "to": "42"},
                    "text": "All done.",
                    "attachments": [],
                    "runId": "1k3f9a2xq-42",
                    "session": "agent:support:telegram:dm:42",
                    "tries": 9,
                    "firstAt": "2026-11-14T09:30:00.000Z",
                    "error": "Forbidden: the bot was blocked by the user",
                    "nextAt": None,
                }
            ],
            "cursor": None,
        },
    ),
    Endpoint(
        "POST",
        "/outbox/{id}/retry",
        outbox.retry_letter,
        TAG,
        refusals=(404,),
        answer_example={"id": "1k3f9a2xq-42:reply", "retried": True},
    ),
]
