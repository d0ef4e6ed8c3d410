"""The end of a server: what runs gets the grace, what waits runs after the next start, callers are told (L-5)."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.e2e.gateway.cast import gate
from tests.e2e.gateway.servers import Server, serving
from tests.e2e.serve.asking import status, submit, tasks, until

AGENTS = ("greedy", "modest")


def crowd(server: Server) -> tuple[set[str], set[str]]:
    """Twenty that run, held by a gate, and fifty that wait: ten and twenty-five of each agent."""
    held = {submit(server, agent, params={"gate": "door"}) for _ in range(10) for agent in AGENTS}
    until(lambda: tasks(server, "running") == held, "all twenty run")
    waiting = {submit(server, agent) for _ in range(25) for agent in AGENTS}
    assert tasks(server, "queued") == waiting
    return held, waiting


def test_l5_sigterm_during_20_running_and_50_waiting_runs(tmp_path: Path) -> None:
    with serving(tmp_path, None, "--grace", "10m") as server:
        held, waiting = crowd(server)
        server.process.signal(signal.SIGTERM)
        until(lambda: status(server, "/readyz") == httpx.codes.SERVICE_UNAVAILABLE, "red")
        reasons = server.http.get("/readyz").text
        assert "draining" in reasons
        assert status(server, "/healthz") == httpx.codes.OK
        refused = server.http.post("/tasks", json={"agentId": "greedy", "action": "click"})
        assert refused.status_code == httpx.codes.SERVICE_UNAVAILABLE
        assert int(refused.headers["Retry-After"]) >= 1
        assert (refused.json()["code"], refused.json()["retryable"]) == ("draining", True)
        assert tasks(server, "running") == held, "they have the grace"
        assert server.process.alive
        gate("door", tmp_path).touch()
        assert server.process.popen.wait(60) == 0
        assert "waiting for 20 running turns" in server.process.printed
    with serving(tmp_path) as server:
        until(lambda: tasks(server, "done") == held | waiting, "all are done after the next start")
        assert server.process.end() == 0


def test_l5_after_the_grace_what_still_runs_is_cut_and_the_exit_code_is_0(tmp_path: Path) -> None:
    with serving(tmp_path, None, "--grace", "2s") as server:
        held = submit(server, "greedy", params={"gate": "never"})
        until(lambda: tasks(server, "running") == {held}, "it runs")
        began = time.monotonic()
        assert server.process.end() == 0
        took = time.monotonic() - began
        assert 1 < took < 25, "not at once, and long before the usual grace is over"
    with serving(tmp_path) as server:
        outcome = server.http.get(f"/tasks/{held}").json()["outcome"]
        assert (outcome["state"], outcome["reason"]) == ("cancelled", "draining")


def test_a_second_signal_cuts_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, None, "--grace", "10m") as server:
        held = submit(server, "greedy", params={"gate": "never"})
        until(lambda: tasks(server, "running") == {held}, "it runs")
        server.process.signal(signal.SIGTERM)
        server.process.wait_for("waiting for 1 running turn")
        assert server.process.end() == 0
        assert "cutting 1 running turn" in server.process.printed


def test_ctrl_c_is_a_stop_like_any_other(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.process.signal(signal.SIGINT)
        assert server.process.popen.wait(60) == 0
        assert "Traceback" not in server.process.printed


def test_event_streams_and_sockets_are_ended_properly(tmp_path: Path) -> None:
    """A stream ends after its last event, a socket with a close: neither holds the server up."""
    with (
        serving(tmp_path, None, "--grace", "10m") as server,
        httpx.stream("GET", f"{server.url}/events", timeout=60) as events,
        connect(server.rpc_url) as line,
    ):
        lines = events.iter_lines()
        line.send('{"id": 1, "method": "health", "params": {}}')
        line.recv(timeout=60)
        server.process.signal(signal.SIGTERM)
        told = list(lines)
        assert any("NodeDraining" in each for each in told)
        with pytest.raises(ConnectionClosed) as closed:
            _read_on(line)
        assert closed.value.rcvd is not None, "a close, not a cut"
        assert server.process.popen.wait(60) == 0


def _read_on(line: ClientConnection) -> None:
    while True:
        line.recv(timeout=60)


def test_l5_callers_that_wait_are_answered_before_the_door_closes(tmp_path: Path) -> None:
    """Whose turn runs gets its reply; whose message waits for the next start is told that it was taken."""
    chat = {"agentId": "steady", "session": "chat"}

    def say(text: str) -> httpx.Response:
        params, body = {"wait": "60"}, {**chat, "text": text}
        return server.http.post("/messages", params=params, json=body)

    with serving(tmp_path) as server, ThreadPoolExecutor(2) as people:
        first = people.submit(say, "hold door")
        until(lambda: len(session(server)["running"]) == 1, "it runs")
        second = people.submit(say, "and then?")
        until(lambda: len(session(server)["waiting"]) == 1, "it waits")
        server.process.signal(signal.SIGTERM)
        server.process.wait_for("waiting for 1 running turn")
        gate("door", tmp_path).touch()
        assert first.result().json()["outcome"]["text"].startswith("steady held door")
        assert second.result().status_code == httpx.codes.ACCEPTED
        assert server.process.popen.wait(60) == 0
        assert '"level":"error"' not in server.process.printed
    run = second.result().json()["runId"]
    with serving(tmp_path) as server:
        until(lambda: server.http.get(f"/runs/{run}").json()["state"] == "done", "it runs now")


def session(server: Server) -> dict[str, list[str]]:
    found: dict[str, list[str]] = server.http.get("/sessions/chat").raise_for_status().json()
    return found
