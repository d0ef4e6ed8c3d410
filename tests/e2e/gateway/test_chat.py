"""The chat flow over real sockets: bursts collapse, modes hold, `/stop` really stops."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.e2e.gateway.cast import gate
from tests.e2e.gateway.servers import Server, serving

CHAT = {"agentId": "steady", "channel": "web", "peer": "42", "sender": {"id": "ann"}}
KEY = "agent:steady:web:dm:42"
SLOW = '[channels.web]\ndebounce = "3s"\n'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    config = tmp_path / "headway.toml"
    config.write_text(SLOW)
    with serving(tmp_path, None, "--config", str(config)) as started:
        yield started


@pytest.fixture
def people() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def say(server: Server, text: str, *, wait: bool = False, **fields: object) -> dict[str, object]:
    """Write a message; with `wait`, the answer is its run's outcome."""
    answer = server.http.post(
        "/messages", params={"wait": "60"} if wait else {}, json={**CHAT, "text": text, **fields}
    )
    assert answer.status_code in {httpx.codes.OK, httpx.codes.ACCEPTED}, answer.text
    said: dict[str, object] = answer.json()
    return said


def later(
    people: ThreadPoolExecutor, server: Server, text: str, **fields: object
) -> "Future[dict[str, object]]":
    return people.submit(say, server, text, wait=True, **fields)


def until_running(server: Server, count: int = 1) -> None:
    while len(session(server)["running"]) < count:  # type: ignore[arg-type]
        threading.Event().wait(0.01)


def until_waiting(server: Server, count: int) -> None:
    while len(session(server)["waiting"]) < count:  # type: ignore[arg-type]
        threading.Event().wait(0.01)


def session(server: Server) -> dict[str, object]:
    answer = server.http.get(f"/sessions/{quote(KEY, safe='')}")
    found: dict[str, object] = answer.raise_for_status().json()
    return found


def outcome(said: dict[str, object]) -> dict[str, object]:
    found = said["outcome"]
    assert isinstance(found, dict), said
    return found


def test_s7_a_burst_is_one_turn_and_each_gets_its_reply(
    server: Server, people: ThreadPoolExecutor
) -> None:
    first = later(people, server, "one")
    second = later(people, server, "two")
    replies = {str(outcome(each.result())["text"]) for each in (first, second)}
    assert replies in ({"steady: one\ntwo"}, {"steady: two\none"})


def test_collect_merges_what_waited_into_one_turn(
    server: Server, people: ThreadPoolExecutor, tmp_path: Path
) -> None:
    held = later(people, server, "hold door", debounce="0")
    until_running(server)
    options = {"mode": "collect", "debounce": "100ms"}
    path = f"/sessions/{quote(KEY, safe='')}/queue"
    assert server.http.patch(path, json=options).status_code == httpx.codes.OK
    one = later(people, server, "red")
    until_waiting(server, 1)
    two = later(people, server, "green")
    until_waiting(server, 2)
    gate("door", tmp_path).touch()
    assert outcome(held.result())["text"] == "steady held door; told []"
    assert outcome(one.result())["text"] == "steady: red\ngreen"
    assert outcome(two.result())["text"] == "steady: red\ngreen"


def test_x2_a_steered_message_is_taken_by_the_running_turn(
    server: Server, people: ThreadPoolExecutor
) -> None:
    held = later(people, server, "hold ever", debounce="0")
    until_running(server)
    steered = say(server, "look left", mode="steer", debounce="0", wait=True)
    assert outcome(held.result())["text"] == "steady held ever; told ['look left']"
    assert outcome(steered)["state"] in {"done", "cancelled"}
    assert session(server)["waiting"] == []


def test_interrupt_cancels_the_running_one_and_runs_the_new_one(
    server: Server, people: ThreadPoolExecutor
) -> None:
    held = later(people, server, "hold ever", debounce="0")
    until_running(server)
    new = say(server, "never mind", mode="interrupt", debounce="0", wait=True)
    assert outcome(new)["text"] == "steady: never mind"
    assert (outcome(held.result())["state"], outcome(held.result())["reason"]) == (
        "cancelled",
        "superseded",
    )


def test_reject_answers_that_it_is_busy(server: Server, people: ThreadPoolExecutor) -> None:
    held = later(people, server, "hold ever", debounce="0")
    until_running(server)
    busy = server.http.post("/messages", json={**CHAT, "text": "hello", "mode": "reject"})
    assert busy.status_code == httpx.codes.CONFLICT
    assert busy.json()["code"] == "rejected_busy"
    say(server, "/stop")
    held.result()


def test_s9_stop_and_stopall_answer_what_they_stopped(
    server: Server, people: ThreadPoolExecutor
) -> None:
    assert say(server, "/STOP@bot")["reply"] == "nothing to stop"
    held = later(people, server, "hold ever", debounce="0")
    until_running(server)
    waiting = later(people, server, "and then", debounce="0")
    until_waiting(server, 1)
    status = str(say(server, "/status")["reply"])
    assert "running for" in status
    assert "and then" in status
    assert say(server, "/stopall")["reply"] == "1 running and 1 waiting stopped"
    for each in (held, waiting):
        assert (outcome(each.result())["state"], outcome(each.result())["reason"]) == (
            "cancelled",
            "stopped",
        )


def test_s8_a_message_that_comes_twice_is_one_run(server: Server) -> None:
    first = say(server, "hello", messageId="m-1", debounce="0", wait=True)
    again = say(server, "hello", messageId="m-1", debounce="0", wait=True)
    assert again["runId"] == first["runId"]
