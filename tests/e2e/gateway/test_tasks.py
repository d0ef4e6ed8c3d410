"""The task flow over real sockets: admission, order between agents, results, cancels."""

import time
from pathlib import Path

import httpx

from tests.e2e.gateway.cast import gate
from tests.e2e.gateway.servers import Server, serving

ONE_AT_A_TIME = {"HEADWAY_MAX_INFLIGHT": "1"}


def submit(server: Server, agent: str, **fields: object) -> dict[str, object]:
    answer = server.http.post("/tasks", json={"agentId": agent, "action": "click", **fields})
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    accepted: dict[str, object] = answer.json()
    return accepted


def task(server: Server, task_id: object) -> dict[str, object]:
    found: dict[str, object] = server.http.get(f"/tasks/{task_id}").raise_for_status().json()
    return found


def until_state(server: Server, task_id: object, *states: str) -> dict[str, object]:
    """The task, once it is in one of these states. This asks again and again."""
    while True:
        found = task(server, task_id)
        if found["state"] in states:
            return found
        time.sleep(0.01)


def test_t1_t5_a_task_from_submission_to_result(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        accepted = submit(server, "modest", ref="e12", priority=3)
        assert set(accepted) >= {"taskId", "state", "position", "createdAt"}
        done = until_state(server, accepted["taskId"], "done", "failed")
        assert (done["state"], done["agentId"], done["action"]) == ("done", "modest", "click")
        assert "click e12" in str(done)


def test_f2_one_task_of_another_agent_waits_for_at_most_one(tmp_path: Path) -> None:
    """F-2, T-5: with a full queue of one agent, the other's one task starts after at most one more."""
    with serving(tmp_path, environment=ONE_AT_A_TIME) as server:
        held = submit(server, "greedy", params={"gate": "first"})
        until_state(server, held["taskId"], "running")
        crowd = [submit(server, "greedy", ref=f"e{n}") for n in range(20)]
        lone = submit(server, "modest", ref="lone")
        position = task(server, lone["taskId"])["position"]
        assert position in {0, 1}
        assert task(server, crowd[-1]["taskId"])["position"] == 20
        gate("first", tmp_path).touch()
        finished = [until_state(server, each["taskId"], "done") for each in (*crowd, lone)]
        order = sorted(finished, key=lambda each: str(each["startedAt"]))
        names = [each["taskId"] for each in order]
        assert names.index(lone["taskId"]) <= 1


def test_t5_a_cancelled_task_says_so_until_its_runner_returned(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        held = submit(server, "greedy", params={"gate": "never"})
        until_state(server, held["taskId"], "running")
        answer = server.http.post(f"/tasks/{held['taskId']}/cancel")
        assert answer.status_code == httpx.codes.OK
        ended = until_state(server, held["taskId"], "cancelled")
        assert ended["state"] == "cancelled"
        again = server.http.post(f"/tasks/{held['taskId']}/cancel")
        assert again.status_code == httpx.codes.CONFLICT
        unknown = server.http.post("/tasks/nobody-knows/cancel")
        assert unknown.status_code == httpx.codes.NOT_FOUND


def test_f1_a_full_queue_says_when_to_come_back(tmp_path: Path) -> None:
    limits = tmp_path / "headway.toml"
    limits.write_text("[limits]\nmax_queue_per_agent = 3\nmax_inflight = 1\n")
    with serving(tmp_path, None, "--config", str(limits)) as server:
        held = submit(server, "greedy", params={"gate": "first"})
        until_state(server, held["taskId"], "running")
        for _ in range(3):
            submit(server, "greedy")
        full = server.http.post("/tasks", json={"agentId": "greedy", "action": "click"})
        assert full.status_code == httpx.codes.TOO_MANY_REQUESTS
        assert int(full.headers["Retry-After"]) >= 1
        assert full.json()["code"] == "queue_full"
        assert full.json()["retryable"] is True
        batch = {"agentId": "greedy", "atomic": True, "tasks": [{"action": "a"}, {"action": "b"}]}
        assert server.http.post("/tasks/batch", json=batch).status_code == 429
        gate("first", tmp_path).touch()


def test_d6_the_same_key_is_the_same_task_also_after_a_restart(tmp_path: Path) -> None:
    headers = {"Idempotency-Key": "order-7"}
    body = {"agentId": "modest", "action": "buy"}
    with serving(tmp_path) as server:
        first = server.http.post("/tasks", json=body, headers=headers).json()["taskId"]
        until_state(server, first, "done")
        assert server.http.post("/tasks", json=body, headers=headers).json()["taskId"] == first
        assert server.process.end() == 0
    with serving(tmp_path) as server:
        assert server.http.post("/tasks", json=body, headers=headers).json()["taskId"] == first
