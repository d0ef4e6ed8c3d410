"""What tests of the process ask a server for, and how they wait for what it does."""

import time
from collections.abc import Callable

import httpx

from tests.e2e.gateway.servers import Server

_WITHIN_S = 60.0


def until(what: Callable[[], bool], why: str) -> None:
    """Until it is so; fails with the reason if it never is."""
    give_up_at = time.monotonic() + _WITHIN_S
    while not what():
        assert time.monotonic() < give_up_at, why
        time.sleep(0.02)


def submit(server: Server, agent: str, **fields: object) -> str:
    """A task that nothing but its agent ends; answers its id."""
    body = {"agentId": agent, "action": "click", "deadline": "10m", **fields}
    answer = server.http.post("/tasks", json=body)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    return str(answer.json()["taskId"])


def tasks(server: Server, state: str) -> set[str]:
    """The ids of all tasks in a state."""
    found: set[str] = set()
    cursor: str | None = None
    while True:
        params = {"state": state, "limit": "1000"} | ({"cursor": cursor} if cursor else {})
        page = server.http.get("/tasks", params=params).raise_for_status().json()
        found |= {task["taskId"] for task in page["tasks"]}
        cursor = page.get("cursor")
        if not cursor:
            return found


def status(server: Server, path: str) -> int:
    return server.http.get(path).status_code
