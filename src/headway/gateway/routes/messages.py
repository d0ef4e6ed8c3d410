"""Where messages come in, from any channel."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import messages
from headway.wire.messages import MessageAnswer

TAG = "Messages"


def _status(answer: object) -> int:
    """202 while nobody knows how it will end."""
    assert isinstance(answer, MessageAnswer)
    return 200 if answer.command or answer.outcome is not None else 202


handlers = [
    Endpoint(
        "POST",
        "/messages",
        messages.send,
        TAG,
        status=202,
        query=("wait",),
        headers={"Idempotency-Key": "idempotencyKey"},
        location="/runs/{runId}",
        also={200: "It was a chat command, or it ended while it was waited for."},
        choose=_status,
        refusals=(404, 409, 429),
        asked_example={
            "agentId": "support",
            "channel": "telegram",
            "peer": "42",
            "sender": {"id": "ann"},
            "messageId": "1001",
            "sentAt": "2026-11-15T09:30:00Z",
            "text": "Where is my order?",
        },
        answer_example={
            "command": False,
            "reply": None,
            "runId": "1k3f9a2xq-42",
            "session": "agent:support:telegram:dm:42",
            "state": "queued",
            "outcome": None,
        },
    ),
]
