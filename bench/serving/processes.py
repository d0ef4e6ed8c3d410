"""The servers, each in a process of its own, from its start until it answers to its end."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench._load import Broken
from bench.serving.load import HOST, ask, request

_ROOT = Path(__file__).resolve().parents[2]
_STARTS_WITHIN_S = 30.0
_ENDS_WITHIN_S = 45.0
_CONFIG = """\
[lanes]
main = 200

[limits]
max_queue = 100000
max_queue_per_agent = 100000
max_inflight = 200
max_inflight_per_agent = 200
"""


@contextmanager
def bare_server() -> Iterator[int]:
    """The peer; answers its port."""
    port = _free_port()
    with _running([sys.executable, "-m", "bench.serving.bare", str(port)], port):
        yield port


@contextmanager
def headway_server(folder: Path) -> Iterator[int]:
    """The real one, on a new SQLite file. All as by default, but for its limits: the agents keep up."""
    port = _free_port()
    folder.mkdir()
    config = folder / "headway.toml"
    config.write_text(_CONFIG, encoding="utf-8")
    command = [sys.executable, "-m", "headway", "serve", "--agents", "bench.serving.agents:hw"]
    command += ["--store", f"sqlite:///{folder}/headway.db", "--port", str(port)]
    command += ["--config", str(config)]
    with _running(command, port):
        yield port


@contextmanager
def _running(command: Sequence[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(
        command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        asyncio.run(_until_ready(process, port))
        yield
    finally:
        process.terminate()
        try:
            process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _until_ready(process: "subprocess.Popen[bytes]", port: int) -> None:
    asked = request("GET", "/readyz")
    async with asyncio.timeout(_STARTS_WITHIN_S):
        while True:
            if process.poll() is not None:
                raise Broken(f"the server ended with {process.returncode}: {process.args!r}")
            try:
                status, _ = await ask(port, asked)
            except OSError:
                status = 0
            if status == 200:
                return
            await asyncio.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
