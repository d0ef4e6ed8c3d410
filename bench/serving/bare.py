"""The peer: a Litestar handler that validates the body and answers. `python -m bench.serving.bare PORT`."""

import sys

import uvicorn
from litestar import Litestar, get, post

from headway.model.words import State
from headway.wire.tasks import TaskAccepted, TaskRequest
from headway.wiring import run

_ANSWER = TaskAccepted(
    task_id="1k3f9a2xqn0d8s1-1",
    state=State.QUEUED,
    position=0,
    created_at="2026-01-01T00:00:00.000Z",
)


@post("/tasks", status_code=202)
async def submit(data: TaskRequest) -> TaskAccepted:  # noqa: ARG001 - to read it is all the work
    return _ANSWER


@get("/readyz")
async def ready() -> None:
    return None


def main() -> None:
    app = Litestar([submit, ready], openapi_config=None, logging_config=None)
    config = uvicorn.Config(
        app,
        port=int(sys.argv[1]),
        http="httptools",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )
    run(uvicorn.Server(config).serve())


if __name__ == "__main__":
    main()
