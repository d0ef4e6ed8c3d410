"""Where RPC is spoken: a WebSocket."""

from typing import cast

from litestar.enums import ScopeType
from litestar.handlers import BaseRouteHandler, asgi
from litestar.types import Receive, Scope, Send

from headway.gateway.desk import Desk
from headway.gateway.errors import WrongMethod, tell
from headway.gateway.rpc.methods import METHODS
from headway.gateway.rpc.socket import serve_socket
from headway.gateway.serving import send_json


@asgi("/rpc", copy_scope=False)
async def rpc(scope: Scope, receive: Receive, send: Send) -> None:
    """Methods and events over one connection; `rpc.discover` shows what there is."""
    if scope["type"] == ScopeType.WEBSOCKET:
        desk = cast(Desk, scope["litestar_app"].state.desk)
        await serve_socket(desk, METHODS, scope, receive, send)
        return
    told = tell(WrongMethod(scope["method"], "a WebSocket"))
    body = told.encoded()
    await send_json(send, 426, [*told.headers, (b"upgrade", b"websocket")], body, len(body))


handlers: list[BaseRouteHandler] = [rpc]
