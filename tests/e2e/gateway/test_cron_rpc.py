"""The cron flow by WebSocket RPC against a real server: create, see it fire, change, run, delete (C-13)."""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from websockets.sync.client import ClientConnection, connect

from tests.e2e.gateway.servers import Server, serving


class Rpc:
    """A connection that sends calls and keeps the events that come between the answers."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.events: list[dict[str, object]] = []

    def ask(self, method: str, **params: object) -> dict[str, object]:
        """The whole answer to one call: {id, result} or {id, error}."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            frame = self._next()
            if frame.get("id") == number and "event" not in frame:
                return frame

    def call(self, method: str, **params: object) -> dict[str, object]:
        """The result; an error is a failure of the test."""
        frame = self.ask(method, **params)
        assert "error" not in frame, frame
        result = frame["result"]
        assert isinstance(result, dict)
        return result

    def until(self, kind: str) -> dict[str, object]:
        """The first event of this kind that has come or comes."""
        while True:
            for event in self.events:
                if event["event"] == kind:
                    self.events.remove(event)
                    return event
            self._next()

    def _next(self) -> dict[str, object]:
        frame: dict[str, object] = json.loads(self._socket.recv(timeout=60))
        if "event" in frame:
            self.events.append(frame)
        return frame


@contextmanager
def rpc(server: Server) -> Iterator[Rpc]:
    with connect(server.rpc_url) as socket:
        yield Rpc(socket)


def test_c13_a_job_by_rpc_from_its_creation_to_its_end(tmp_path: Path) -> None:
    with serving(tmp_path) as server, rpc(server) as line:
        line.call("events.subscribe", events=["RunFinished", "cache:cron"])
        job = line.call(
            "cron.create",
            name="stand-up",
            agentId="echo",
            schedule={"kind": "every", "everyMs": 3_600_000},
            payload={"kind": "message", "text": "what is new?"},
        )
        line.until("cache:cron")
        job_id = job["id"]
        assert line.call("cron.get", job=job_id)["name"] == "stand-up"
        line.call("cron.run", job=job_id)
        line.until("RunFinished")
        runs = line.call("cron.runs", job=job_id)
        assert "echo: what is new?" in json.dumps(runs)
        line.call("cron.update", job=job_id, patch={"text": "and now?"})
        wrong = line.ask("cron.update", job=job_id, patch={"txt": "and now?"})
        assert "txt" in json.dumps(wrong["error"])
        line.call("cron.toggle", job=job_id, enabled=False)
        assert line.call("cron.get", job=job_id)["enabled"] is False
        listed = line.call("cron.list")
        assert [each["id"] for each in listed["jobs"]] == [job_id]  # type: ignore[attr-defined]
        assert "jobs" in json.dumps(line.call("cron.status"))
        line.call("cron.delete", job=job_id)
        assert line.ask("cron.get", job=job_id)["error"]["code"] == "job_not_found"  # type: ignore[index]


def test_c3_a_bad_schedule_is_refused_by_name(tmp_path: Path) -> None:
    with serving(tmp_path) as server, rpc(server) as line:
        refused = line.ask(
            "cron.create", name="never", agentId="echo", cron="*/0 * * * *", text="x"
        )
        error = refused["error"]
        assert isinstance(error, dict)
        assert (error["code"], error["retryable"]) == ("invalid_input", False)
        assert "cron" in json.dumps(error["details"])
        assert line.ask("cron.lst")["error"]["details"]  # type: ignore[index]
