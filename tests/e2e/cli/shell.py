"""The real `headway` command, in a process of its own, against a real server."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.gateway.servers import CAST, Server
from tests.e2e.processes import ROOT, Process, ended_at_last

_WITHIN_S = 120


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


class Shell:
    """A shell whose commands ask this server."""

    def __init__(self, server: Server, token: str = "") -> None:
        self._server = server
        self._token = token

    def __call__(self, *arguments: str, stdin: str | None = None) -> Ran:
        """Run a command, however it ends."""
        ran = subprocess.run(
            [sys.executable, "-m", "headway", *arguments],
            cwd=ROOT,
            env=self.environment,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=_WITHIN_S,
        )
        assert "Traceback" not in ran.stderr, ran.stderr
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def ok(self, *arguments: str, stdin: str | None = None) -> str:
        """Run a command that must go well; answers what it printed."""
        ran = self(*arguments, stdin=stdin)
        assert ran.code == 0, ran
        return ran.out

    def json(self, *arguments: str, stdin: str | None = None) -> dict[str, object]:
        told: dict[str, object] = json.loads(self.ok(*arguments, "--json", stdin=stdin))
        return told

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HEADWAY_SERVER": self._server.url,
            "HEADWAY_TOKEN": self._token,
            "PYTHONIOENCODING": "utf-8",
            "COLUMNS": "200",
        }


@contextmanager
def serving_again(folder: Path, gone: Server) -> Iterator[Server]:
    """Another server on the store and at the port of one that is gone, ready."""
    command = ["headway", "serve", "--agents", CAST, "--port", str(gone.port), "--name", "again"]
    command += ["--store", f"sqlite:///{folder}/server.db"]
    process = Process("again", command, folder)
    server = Server(process, gone.port)
    with ended_at_last([process]), server.http:
        server.wait_until_ready()
        yield server
