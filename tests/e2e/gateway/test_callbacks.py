"""Callbacks from a real server to a real receiver (T-4)."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.e2e.gateway.cast import gate
from tests.e2e.gateway.hooks import ENVIRONMENT, receiving
from tests.e2e.gateway.servers import Server, serving
from tests.ports import free_port

ALL_AT_ONCE = {
    "HEADWAY_MAX_INFLIGHT": "200",
    "HEADWAY_LIMITS_MAX_INFLIGHT_PER_AGENT": "200",
    "HEADWAY_LIMITS_MAX_QUEUE_PER_AGENT": "500",
    "HEADWAY_LANE_MAIN": "200",
    **ENVIRONMENT,
}
_PATIENCE_S = 60.0


def submit(server: Server, **fields: object) -> str:
    answer = server.http.post("/tasks", json={"agentId": "modest", "action": "click", **fields})
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    return str(answer.json()["taskId"])


def letters(server: Server, state: str) -> list[dict[str, object]]:
    found = server.http.get("/outbox", params={"state": state}).raise_for_status().json()
    listed: list[dict[str, object]] = found["letters"]
    return listed


def until_letter(server: Server, state: str) -> dict[str, object]:
    """The one letter that was tried and is in this state now."""
    give_up_at = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up_at:
        for letter in letters(server, state):
            if letter["tries"]:
                return letter
        time.sleep(0.05)
    raise AssertionError(f"no letter is {state}")


def headway(server: Server, *words: str) -> str:
    command = [sys.executable, "-m", "headway", *words, "--server", server.url]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


def memory_mb(server: Server) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def test_t4_two_hundred_tasks_that_end_together_are_told_to_a_slow_receiver_once_each(
    tmp_path: Path,
) -> None:
    with (
        receiving(takes_s=0.05) as receiver,
        serving(tmp_path, environment=ALL_AT_ONCE) as server,
    ):
        taken: list[str] = []
        held = {"action": "click", "params": {"gate": "all"}}
        for agent in ("greedy", "modest") * 2:
            batch = {"agentId": agent, "tasks": [held] * 50, "callbackUrl": receiver.url}
            answer = server.http.post("/tasks/batch", json=batch)
            assert answer.status_code == httpx.codes.ACCEPTED, answer.text
            taken += [item["taskId"] for item in answer.json()["items"]]
        before_mb = memory_mb(server)
        gate("all", tmp_path).touch()
        receiver.wait_for(200)
        assert receiver.came == {f"{task}.callback": 1 for task in taken}
        assert {receiver.notices[task]["state"] for task in taken} == {"done"}
        assert receiver.forged == 0
        assert receiver.most <= 4, "a receiver is not flooded"
        assert memory_mb(server) - before_mb < 60
        give_up_at = time.monotonic() + _PATIENCE_S
        while letters(server, "waiting"):
            assert time.monotonic() < give_up_at, "all were taken, and the outbox knows"
            time.sleep(0.05)


def test_t4_a_notice_outlives_a_kill_of_the_server(tmp_path: Path) -> None:
    """It is in the store with the outcome: nobody listens, the server is killed, the next one tells it."""
    port = free_port()
    with serving(tmp_path, environment=ENVIRONMENT) as server:
        task = submit(server, callbackUrl=f"http://127.0.0.1:{port}/late")
        waiting = until_letter(server, "waiting")
        assert waiting["id"] == f"{task}.callback"
        assert "ConnectError" in str(waiting["error"])
        server.process.kill()
    with receiving(port) as receiver, serving(tmp_path, environment=ENVIRONMENT):
        receiver.wait_for(1)
        assert receiver.came == {f"{task}.callback": 1}
        assert receiver.notices[task]["state"] == "done"


def test_t4_a_dead_letter_is_listed_and_replayed_by_the_command_line(tmp_path: Path) -> None:
    with receiving() as receiver, serving(tmp_path, environment=ENVIRONMENT) as server:
        receiver.status = 404
        said = headway(
            server, "tasks", "submit", "modest", "click", "--callback", receiver.url, "--json"
        )
        dead = until_letter(server, "dead")
        assert str(dead["id"]).removesuffix(".callback") in said
        table = headway(server, "outbox", "list")
        assert str(dead["id"]) in table
        assert f"http://127.0.0.1:{receiver.port}" in table
        assert "t0ken" not in table
        assert "404" in table
        receiver.status = 204
        headway(server, "outbox", "retry", str(dead["id"]))
        give_up_at = time.monotonic() + _PATIENCE_S
        while letters(server, "waiting") or letters(server, "dead"):
            assert time.monotonic() < give_up_at
            time.sleep(0.05)
        assert receiver.came == {str(dead["id"]): 2}


def test_t4_the_secret_is_shown_nowhere(tmp_path: Path) -> None:
    with serving(tmp_path, environment=ENVIRONMENT) as server:
        secret = ENVIRONMENT["HEADWAY_CALLBACKS_SECRET"]
        config = server.http.get("/config").raise_for_status()
        assert "callbacks.secret" in config.text
        assert secret not in config.text
        shown = subprocess.run(
            [sys.executable, "-m", "headway", "config", "show"],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **ENVIRONMENT},
        )
        assert "callbacks.secret" in shown.stdout
        assert secret not in shown.stdout
        assert secret not in server.process.printed
