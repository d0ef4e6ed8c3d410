"""A real `headway serve`, and a caller that speaks HTTP with it."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.e2e.processes import Process, ended_at_last
from tests.ports import free_port

CAST = "tests.e2e.gateway.cast:hw"
_READY_WITHIN_S = 60.0
_ANSWER_WITHIN_S = 90.0
"""Longer than a server lets a caller wait for an outcome."""


class Server:
    """One server process, and a client of it."""

    def __init__(self, process: Process, port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.rpc_url = f"ws://127.0.0.1:{port}/rpc"
        self.http = httpx.Client(base_url=self.url, timeout=_ANSWER_WITHIN_S)

    def wait_until_ready(self) -> None:
        give_up_at = time.monotonic() + _READY_WITHIN_S
        while True:
            try:
                if self.http.get("/readyz").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            if not self.process.alive or time.monotonic() > give_up_at:
                raise AssertionError(f"{self.process.name} is not ready:\n{self.process.printed}")
            time.sleep(0.02)


@contextmanager
def serving(
    folder: Path,
    store: str | None = None,
    *options: str,
    name: str = "server",
    agents: str = CAST,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A server on a port of its own, ready; it is gone at the end."""
    port = free_port()
    command = ["headway", "serve", "--agents", agents, "--port", str(port), "--name", name]
    command += ["--store", store or f"sqlite:///{folder}/{name}.db", *options]
    process = Process(name, command, folder, environment)
    server = Server(process, port)
    with ended_at_last([process]), server.http:
        server.wait_until_ready()
        yield server
