"""Odd requests get the documented answer (T-2): nothing is a 5xx, everything has the one form."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest

from headway import Headway
from headway.gateway.limits import MOST_HEADER_BYTES
from headway.model.server import MIB, ServerSettings
from headway.model.time import SECOND
from headway.testing import run_virtual, virtual_time
from headway.wire.errors import ErrorAnswer
from tests.unit.gateway.calling import client, opened, passes, served
from tests.unit.runtime.worlds import Gate, Recorder, with_agents

TASK = {"agentId": "a", "action": "x"}


def told(answer: httpx.Response) -> ErrorAnswer:
    """The error, which has exactly the one form."""
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert set(answer.json()) == {"error", "code", "retryable", "details"}
    return msgspec.json.decode(answer.content, type=ErrorAnswer)


async def ask(method: str, path: str, **options: object) -> httpx.Response:
    async with served(with_agents(Recorder(takes=0))) as http:
        return await http.request(method, path, **options)  # type: ignore[arg-type]


NESTED = b"[" * 900 + b"]" * 900


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"nonsense", "body"),
        (b'{"agentId":"a","action":"x"} {}', "body"),
        (b"\xff\xfe", "body"),
        (b'{"agentId":"a","action":"\xff"}', "body"),
        (b'{"agentId":"a","action":"\\ud800"}', "body"),
        (b"[" * 100_000, "body"),
        (b'{"agentId":"a","action":"x","params":{"a":' + b"[" * 100_000, "body"),
        (b'{"agentId":"a","action":"x","priority":1.0,"params":{"a":' + NESTED + b"}}", "body"),
        (b"null", "body"),
        (b'{"agentId":"a","action":"x\\u0000"}', "action"),
        (b'{"agentId":"a","action":"x","deadline":"soon"}', "deadline"),
        (b'{"agentId":"a","action":"x","deadline":"2026-13-01T00:00:00Z"}', "deadline"),
        (b'{"agentId":"a","action":"x","deadline":3}', "deadline"),
        (b'{"agentId":7,"action":"x"}', "agentId"),
    ],
)
def test_t2_a_body_that_cannot_be_read_is_a_400(body: bytes, field: str) -> None:
    headers = {"content-type": "application/json"}
    answer = run_virtual(ask("POST", "/tasks", content=body, headers=headers))
    assert answer.status_code == 400, answer.text
    assert told(answer).details["field"] == field


def test_t2_no_depth_of_nesting_is_our_fault() -> None:
    """There is a band in which a body can just be read, but not looked into with a few more calls on the stack."""

    async def statuses() -> set[int]:
        async with served(with_agents(Recorder(takes=0))) as http:
            found: set[int] = set()
            for depth in range(850, 1_000):
                body = b'{"agentId":' + b"[" * depth + b"]" * depth + b',"action":"x"}'
                headers = {"content-type": "application/json"}
                answer = await http.post("/tasks", content=body, headers=headers)
                found.add(answer.status_code)
            return found

    assert run_virtual(statuses()) == {400}


def test_t2_whole_numbers_may_be_written_with_a_point_and_others_stay_as_they_are() -> None:
    async def params() -> object:
        async with served(with_agents(Recorder(takes=0))) as http:
            task = {**TASK, "priority": 5.0, "params": {"few": 2.5, "many": 1e300}}
            taken = await http.post("/tasks", json=task)
            assert taken.status_code == 202, taken.text
            return (await http.get(taken.headers["location"])).json()["params"]

    assert run_virtual(params()) == {"few": 2.5, "many": 1e300}


@virtual_time
async def test_t2_where_nothing_can_be_said_an_unknown_field_is_an_error_too() -> None:
    async with served(with_agents(Recorder(takes=0))) as http:
        refused = await http.post("/lanes/main/pause", json={"for": "5m"})
        assert refused.status_code == 400
        assert told(refused).details["field"] == "for"
        assert (await http.get("/lanes/main")).json()["paused"] is False
        assert (await http.post("/lanes/main/pause", json={})).status_code == 200
        assert (await http.post("/lanes/main/resume")).status_code == 200


def test_t2_an_announced_length_of_any_size_is_a_413() -> None:
    headers = {"content-type": "application/json", "content-length": "9" * 5_000}
    answer = run_virtual(ask("POST", "/tasks", content=b"{}", headers=headers))
    assert answer.status_code == 413


def test_t2_more_than_a_mebibyte_is_a_413_however_it_comes() -> None:
    large = b'{"agentId":"a","action":"x","selector":"' + b"x" * (2 * MIB) + b'"}'
    headers = {"content-type": "application/json"}
    announced = run_virtual(ask("POST", "/tasks", content=large, headers=headers))
    assert announced.status_code == 413
    assert told(announced).details == {"limit": MIB}

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(large), 65_536):
            yield large[at : at + 65_536]

    streamed = run_virtual(ask("POST", "/tasks", content=pieces(), headers=headers))
    assert streamed.status_code == 413


@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_t2_a_body_of_another_kind_is_a_415(media: str) -> None:
    headers = {"content-type": media} if media else {}
    answer = run_virtual(ask("POST", "/tasks", content=b'{"agentId":"a"}', headers=headers))
    assert answer.status_code == 415
    assert "application/json" in told(answer).error


def test_json_may_name_its_charset() -> None:
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    body = msgspec.json.encode(TASK)
    assert run_virtual(ask("POST", "/tasks", content=body, headers=headers)).status_code == 202


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/tasks/unknown-1", 404),
        ("/tasks/%00", 400),
        ("/tasks/a%2Fb", 400),
        ("/tasks/%2e%2e", 404),
        ("/tasks/%ff", 400),
        ("/tasks/ü", 400),
        ("/tasks/" + "x" * 20_000, 400),
        ("/tasks/a b", 400),
        ("/%2ftasks", 404),
        ("/tasks%00", 404),
        ("/tasks?limit=0", 400),
        ("/tasks?limit=1001", 400),
        ("/tasks?limit=1e2", 400),
        ("/tasks?limit=1&limit=2", 400),
        ("/tasks?state=asleep", 400),
        ("/tasks?cursor=x", 400),
        ("/tasks?agentId=", 400),
        ("/tasks?agentId=%00", 400),
        ("/tasks?agentId=%ff", 400),
        ("/tasks?nothing=1", 400),
        ("/tasks?" + "a=1&" * 200, 400),
        ("/tasks/", 200),
        ("//tasks", 200),
    ],
)
def test_odd_paths_have_a_documented_answer(path: str, status: int) -> None:
    answer = run_virtual(ask("GET", f"http://localhost:8787{path}"))
    assert answer.status_code == status, answer.text
    if status != 200:
        assert not told(answer).retryable


@virtual_time
async def test_a_method_that_is_not_there_is_a_405_that_says_which_are() -> None:
    async with served(with_agents(Recorder())) as http:
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"):
            answer = await http.request(method, "/tasks")
            assert answer.status_code == 405
            assert answer.headers["allow"] == "GET, HEAD, POST"
            assert told(answer).code == "method_not_allowed"
        head = await http.head("/tasks")
        assert (head.status_code, head.content) == (200, b"")
        assert int(head.headers["content-length"]) > 0


@virtual_time
async def test_each_request_has_an_id_in_and_out() -> None:
    async with served(Headway()) as http:
        given = await http.get("/healthz", headers={"x-request-id": "my-id.7"})
        assert given.headers["x-request-id"] == "my-id.7"
        made = [(await http.get("/healthz")).headers["x-request-id"] for _ in range(2)]
        assert made[0] != made[1]
        odd = await http.get("/healthz", headers={"x-request-id": "a b\x7f"})
        assert odd.headers["x-request-id"] not in {"a b\x7f", ""}
        lost = await http.get("/nothing", headers={"x-request-id": "lost"})
        assert lost.headers["x-request-id"] == "lost"


@virtual_time
async def test_headers_are_bounded() -> None:
    async with served(Headway()) as http:
        answer = await http.get("/healthz", headers={"x-much": "x" * MOST_HEADER_BYTES})
        assert answer.status_code == 431
        told(answer)


@virtual_time
async def test_so_many_are_served_at_once_and_the_rest_is_told_to_come_later() -> None:
    gate = Gate()
    hw = with_agents(gate)
    async with opened(hw, ServerSettings(max_connections=1)) as gateway, client(gateway) as http:
        async with asyncio.TaskGroup() as group:
            body = {"agentId": "a", "session": "s"}
            waiting = group.create_task(http.post("/messages?wait=30", json=body))
            await passes(2 * SECOND)
            refused = await http.get("/healthz")
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) >= 1
            assert told(refused).code == "too_many_connections"
            gate.open()
        assert waiting.result().status_code == 200
        assert (await http.get("/healthz")).status_code == 200


@virtual_time
async def test_only_pages_of_the_named_origins_may_ask() -> None:
    settings = ServerSettings(cors_origins=("https://app.example",))
    async with served(Headway(), settings) as http:
        asked = {"origin": "https://app.example", "access-control-request-method": "POST"}
        preflight = await http.options("/tasks", headers=asked)
        assert preflight.status_code < 300
        assert preflight.headers["access-control-allow-origin"] == "https://app.example"
        answer = await http.get("/tasks", headers={"origin": "https://app.example"})
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert (
            await http.get("/tasks", headers={"origin": "https://x.example"})
        ).status_code == 401


@virtual_time
async def test_our_own_fault_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    hw = with_agents(Recorder())
    async with opened(hw) as gateway, client(gateway) as http:

        async def broken(*_: object) -> None:
            raise ZeroDivisionError("a secret detail")

        hw.run = broken  # type: ignore[method-assign, assignment]
        answer = await http.get("/tasks/some-1")
        assert (answer.status_code, told(answer).code) == (500, "internal_error")
        assert "secret" not in answer.text
        assert "a secret detail" in caplog.text


@virtual_time
async def test_what_is_observed_is_the_path_of_the_table() -> None:
    async with opened(Headway()) as gateway, client(gateway) as http:
        seen: list[tuple[str, str, int]] = []
        gateway.desk.observed = lambda method, path, status, took_s: seen.append(
            (method, path, status)
        )
        await http.get("/tasks/some-1")
        await http.request("FOO", "/tasks")
        assert seen == [("GET", "/tasks/{taskId}", 404), ("other", "/tasks", 405)]


@virtual_time
async def test_a_websocket_to_another_path_is_refused() -> None:
    async with opened(Headway()) as gateway:
        for path in ("/nothing", "/tasks"):
            sent: list[dict[str, object]] = []

            async def receive() -> dict[str, object]:
                return {"type": "websocket.connect"}

            async def send(
                message: dict[str, object], sent: list[dict[str, object]] = sent
            ) -> None:
                sent.append(message)

            scope: dict[str, object] = {
                "type": "websocket",
                "path": path,
                "raw_path": path.encode(),
                "query_string": b"",
                "headers": [(b"host", b"localhost")],
                "client": ("127.0.0.1", 1),
                "extensions": {"websocket.http.response": {}},
            }
            await gateway.app(scope, receive, send)  # type: ignore[arg-type]
            assert sent[0]["type"] == "websocket.http.response.start"
            assert sent[0]["status"] == 404
