"""Puts the gateway together: the table of routes becomes an ASGI app in front of a Headway."""

from collections.abc import Awaitable, Iterable
from types import TracebackType
from typing import Self

from litestar import Litestar, Request, Response
from litestar.config.cors import CORSConfig
from litestar.exceptions import HTTPException, MethodNotAllowedException
from litestar.handlers import ASGIRouteHandler
from litestar.types import ASGIApp, Receive, Scope, Send

from headway.facade import Headway
from headway.gateway.describing import describing
from headway.gateway.desk import Desk, ReloadPort
from headway.gateway.endpoint import Endpoint
from headway.gateway.errors import NoSuchPath, WrongMethod, tell
from headway.gateway.limits import Limits
from headway.gateway.refusing import refuse
from headway.gateway.router import Router
from headway.gateway.routes import ALL
from headway.gateway.serving import Resource, raw_path
from headway.model.errors import InvalidInput
from headway.model.server import ServerSettings
from headway.runtime.ids import RunIds


class Gateway:
    """The ASGI app and the desk behind it. Enter it while the Headway runs."""

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self.app = app
        self.desk = desk

    async def __aenter__(self) -> Self:
        self.desk.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.desk.close()


def build_app(
    hw: Headway, settings: ServerSettings | None = None, *, config: ReloadPort | None = None
) -> Gateway:
    """A gateway in front of a Headway. Before that runs, the app answers that it is not ready."""
    settings = settings or ServerSettings()
    desk = Desk(hw, settings, config)
    table = [route for route in ALL if isinstance(route, Endpoint)]
    others = [route for route in ALL if not isinstance(route, Endpoint)]
    router = _router(desk, [*table, *describing(table)])
    app = Litestar(
        [_handler(router), *others],
        openapi_config=None,
        logging_config=None,
        cors_config=_cors(settings),
        exception_handlers={Exception: _answer},
        state=None,
    )
    app.state.desk = desk
    ids = RunIds.for_node(0)
    # The middleware for CORS is Litestar's; where it is not needed, endpoints need not go through there.
    inner = app if settings.cors_origins else _short(router, app)
    return Gateway(Limits(inner, settings.max_connections, ids.next), desk)


def _router(desk: Desk, table: Iterable[Endpoint]) -> Router[Resource]:
    """A router of our own finds the path: Litestar's would decode it first."""
    by_path: dict[str, list[Endpoint]] = {}
    for endpoint in table:
        by_path.setdefault(endpoint.path, []).append(endpoint)
    return Router((path, Resource(desk, path, endpoints)) for path, endpoints in by_path.items())


def _short(router: Router[Resource], app: ASGIApp) -> ASGIApp:
    """Our endpoints, at once; what the router does not know goes to the app."""

    def serve(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        resource = router.find(raw_path(scope)) if str(scope["type"]) == "http" else None
        return (resource or app)(scope, receive, send)

    return serve


def _handler(router: Router[Resource]) -> ASGIRouteHandler:
    """One handler for the whole table, and for whatever is not in it."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        path = raw_path(scope)
        resource = router.find(path)
        if resource is None or str(scope["type"]) != "http":
            await refuse(scope, send, tell(NoSuchPath(path.decode("latin-1"))))
            return
        await resource(scope, receive, send)

    return ASGIRouteHandler("/", is_mount=True, copy_scope=False)(serve)


def _cors(settings: ServerSettings) -> CORSConfig | None:
    if not settings.cors_origins:
        return None
    return CORSConfig(
        allow_origins=list(settings.cors_origins),
        allow_headers=[
            "authorization",
            "content-type",
            "idempotency-key",
            "x-request-id",
            "last-event-id",
        ],
        expose_headers=["location", "retry-after", "x-request-id"],
        max_age=600,
    )


def _answer(request: Request[object, object, object], error: Exception) -> Response[bytes]:  # type: ignore[type-var]
    """What goes wrong before an endpoint is found, in the one form."""
    if isinstance(error, MethodNotAllowedException):
        error = WrongMethod(request.method, (error.headers or {}).get("allow", ""))
    elif isinstance(error, HTTPException) and error.status_code < 500:
        error = InvalidInput("request", error.detail, "a request that can be understood")
    told = tell(error)
    headers = {name.decode(): value.decode() for name, value in told.headers}
    return Response(
        told.encoded(), status_code=told.status, headers=headers, media_type="application/json"
    )
