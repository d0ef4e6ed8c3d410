"""A refusal before anything was served: an HTTP answer, also to who asked for a WebSocket where the server can."""

from litestar.types import Scope, Send

from headway.gateway.errors import Told

_DENIES = "websocket.http.response"
_CLOSED = 4000
"""Where a WebSocket can only be closed, its code is this and the status."""


async def refuse(scope: Scope, send: Send, told: Told, status: int | None = None) -> None:
    """Send a refusal; with `status`, another one than the error's own."""
    status = status or told.status
    body = told.encoded()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *told.headers,
    ]
    kind = "http.response"
    if str(scope["type"]) == "websocket":
        if _DENIES not in (scope.get("extensions") or {}):
            code = _CLOSED + status
            await send({"type": "websocket.close", "code": code, "reason": told.body.error})
            return
        kind = _DENIES
    start = {"type": f"{kind}.start", "status": status, "headers": headers}
    await send(start)  # type: ignore[arg-type]  # the kind is known only here
    end = {"type": f"{kind}.body", "body": body, "more_body": False}
    await send(end)  # type: ignore[arg-type]
