"""For whoever watches the process: does it live, may it be asked? Without a token."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import health
from headway.wire.health import Readiness

TAG = "Health"


def _status(answer: object) -> int:
    return 200 if isinstance(answer, Readiness) and answer.ready else 503


handlers = [
    Endpoint("GET", "/healthz", health.health, TAG, answer_example={"status": "ok"}),
    Endpoint(
        "GET",
        "/readyz",
        health.readiness,
        TAG,
        also={503: "Not now: `reasons` say why."},
        choose=_status,
        answer_example={"ready": True, "reasons": []},
    ),
]
