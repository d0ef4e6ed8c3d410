"""Two servers on one PostgreSQL: a chat whose owner is the other one works all the same (D-4, D-10)."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

from tests.e2e.gateway.cast import gate
from tests.e2e.gateway.servers import Server, serving
from tests.e2e.gateway.test_chat import outcome
from tests.e2e.serve.asking import until
from tests.postgres import fresh_url

KEY = "agent:steady:web:dm:42"
CHAT = {"agentId": "steady", "channel": "web", "peer": "42", "debounce": "0"}


def say(server: Server, text: str, **fields: object) -> dict[str, object]:
    answer = server.http.post(
        "/messages", params={"wait": "60"}, json={**CHAT, **fields, "text": text}
    )
    said: dict[str, object] = answer.raise_for_status().json()
    return said


def owner_state(server: Server) -> dict[str, object]:
    found: dict[str, object] = (
        server.http.get(f"/sessions/{quote(KEY, safe='')}").raise_for_status().json()
    )
    return found


def runs_everywhere(one: Server, two: Server) -> bool:
    """Its owner decides that it runs; what the other server knows of it is what is stored."""
    return bool(owner_state(one)["running"]) and bool(owner_state(two)["running"])


def test_d10_the_chat_goes_on_by_whichever_server_is_asked(tmp_path: Path) -> None:
    store = fresh_url()
    with (
        serving(tmp_path, store, name="one") as one,
        serving(tmp_path, store, name="two") as two,
        ThreadPoolExecutor(4) as people,
    ):
        assert len(two.http.get("/nodes").json()["nodes"]) == 2
        held = people.submit(say, one, "hold door")
        until(lambda: runs_everywhere(one, two), "it runs, and both know it")
        behind = people.submit(say, two, "by the other")
        until(lambda: bool(owner_state(one)["waiting"]), "it waits behind the other")
        assert owner_state(two)["running"] == owner_state(one)["running"]
        gate("door", tmp_path).touch()
        assert outcome(held.result())["text"] == "steady held door; told []"
        assert outcome(behind.result())["text"] == "steady: by the other"


def test_s9_a_stop_reaches_the_turn_on_the_other_server(tmp_path: Path) -> None:
    store = fresh_url()
    with (
        serving(tmp_path, store, name="one") as one,
        serving(tmp_path, store, name="two") as two,
        ThreadPoolExecutor(4) as people,
    ):
        held = people.submit(say, one, "hold ever")
        until(lambda: runs_everywhere(one, two), "it runs, and both know it")
        stopped = two.http.post("/messages", json={**CHAT, "text": "/stop"}).raise_for_status()
        assert stopped.json()["reply"] == "1 running stopped"
        assert outcome(held.result())["reason"] == "stopped"


def test_interrupt_and_steer_from_the_other_server(tmp_path: Path) -> None:
    store = fresh_url()
    with (
        serving(tmp_path, store, name="one") as one,
        serving(tmp_path, store, name="two") as two,
        ThreadPoolExecutor(4) as people,
    ):
        held = people.submit(say, one, "hold ever")
        until(lambda: runs_everywhere(one, two), "it runs, and both know it")
        say(two, "look left", mode="steer")
        assert outcome(held.result())["text"] == "steady held ever; told ['look left']"
        held = people.submit(say, one, "hold ever")
        until(lambda: runs_everywhere(one, two), "it runs, and both know it")
        assert outcome(say(two, "never mind", mode="interrupt"))["text"] == "steady: never mind"
        assert outcome(held.result())["reason"] == "superseded"
