"""Endpoints as agents (T-3), against a real server on this machine."""

import asyncio
import subprocess
import sys
import tracemalloc
from collections.abc import Callable

import httpx
import pytest
import uvloop

from headway import Attachment, InvalidInput, RateLimited, Reply, WorkFailed
from headway.model.runner import HttpSpec
from headway.model.task import Task
from headway.model.time import SECOND
from headway.runners.exchange import Exchange
from headway.runners.http import HttpRunner
from headway.turn import ChecksTasks, Closes
from tests.unit.runners.endpoints import (
    Asked,
    answer,
    endpoint,
    hang,
    json_answer,
    play,
    turn_of,
)

OK = json_answer({"ok": True})
CLICK = Task("click", "t1", "#buy", "e5", {"button": "left"})


async def reply_to(*answers: bytes, spec: dict[str, object] | None = None) -> Reply:
    """What the runner makes of an answer."""
    async with endpoint(*answers) as server:
        runner = HttpRunner(HttpSpec(url=server.url, **(spec or {})))  # type: ignore[arg-type]
        try:
            return await runner.run(turn_of())
        finally:
            await runner.close()


async def failure_of(*answers: bytes, spec: dict[str, object] | None = None) -> WorkFailed:
    with pytest.raises(WorkFailed) as failure:
        await reply_to(*answers, spec=spec)
    return failure.value


# What is sent.


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_t3_x4_an_attempt_is_one_request(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        async with endpoint(OK) as server:
            runner = HttpRunner(
                HttpSpec(url=f"{server.url}/run", token="s3cret", headers={"X-Team": "red"})
            )
            assert isinstance(runner, ChecksTasks)
            assert isinstance(runner, Closes)
            turn = turn_of(deadline_at=1_800_000_000 * SECOND, traceparent="00-abc-def-01")
            assert await runner.run(turn) == Reply(data={"ok": True})
            await runner.close()
        (asked,) = server.asked
        assert (asked.method, asked.target) == ("POST", "/run")
        assert asked.json == {
            "text": "hello",
            "agent": "browser",
            "session": "chat:42",
            "runId": "run-1",
            "traceId": "trace-1",
            "attempt": 2,
            "fence": "3.7",
            "deadline": "2027-01-15T08:00:00+00:00",
        }
        headers = asked.headers
        assert headers["content-type"] == "application/json"
        assert headers["authorization"] == "Bearer s3cret"
        assert headers["x-team"] == "red"
        assert headers["x-agent-id"] == "browser"
        assert headers["x-request-id"] == "run-1.2"
        assert headers["idempotency-key"] == "run-1"
        assert headers["x-headway-fence"] == "3.7"
        assert headers["x-headway-deadline"] == "2027-01-15T08:00:00.000Z"
        assert headers["traceparent"] == "00-abc-def-01"
        assert headers["accept-encoding"] == "identity"

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(main(), 60))


def test_what_a_run_does_not_have_is_not_sent() -> None:
    async def main() -> None:
        async with endpoint(OK) as server:
            runner = HttpRunner(HttpSpec(url=server.url))
            await runner.run(turn_of())
            picture = Attachment("cat.png", "image/png", "https://example.com/cat.png")
            await runner.run(turn_of("", CLICK, attachments=(picture,), job="j-1"))
            await runner.close()
        plain, rich = server.asked
        assert not {"authorization", "traceparent", "x-headway-deadline"} & plain.headers.keys()
        assert isinstance(plain.json, dict)
        assert not {"task", "jobId", "attachments", "deadline"} & plain.json.keys()
        assert isinstance(rich.json, dict)
        assert rich.json["jobId"] == "j-1"
        assert rich.json["attachments"] == [
            {"name": "cat.png", "mediaType": "image/png", "url": "https://example.com/cat.png"}
        ]
        assert rich.json["task"] == {
            "action": "click",
            "tabId": "t1",
            "selector": "#buy",
            "ref": "e5",
            "params": {"button": "left"},
        }

    play(main())


def test_t3_any_json_endpoint_by_configuration() -> None:
    """Method, address and body are said; what is filled in stays where it was put."""

    async def main() -> None:
        async with endpoint(OK) as server:
            spec = HttpSpec(
                url=f"{server.url}/agents/{{agent}}/runs/{{run_id}}?q={{text}}",
                method="put",
                body={"say": "<{text}>", "with": "{params}", "try": "{attempt}"},
            )
            runner = HttpRunner(spec)
            await runner.run(turn_of("a&b=c", CLICK, agent="../x"))
            await runner.close()
        (asked,) = server.asked
        assert asked.method == "PUT"
        assert asked.target == "/agents/..%2Fx/runs/run-1?q=a%26b%3Dc"
        assert asked.json == {"say": "<a&b=c>", "with": {"button": "left"}, "try": 2}

    play(main())


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_method_without_a_body_sends_none(method: str) -> None:
    async def main() -> None:
        async with endpoint(OK) as server:
            runner = HttpRunner(HttpSpec(url=server.url, method=method))
            await runner.run(turn_of())
            await runner.close()
        (asked,) = server.asked
        assert (asked.method, asked.body) == (method, b"")
        assert "content-type" not in asked.headers

    play(main())


@pytest.mark.parametrize(
    ("agent", "header"),
    [("größe", "gr%C3%B6%C3%9Fe"), ("a\r\nX-Evil: 1", "a%0D%0AX-Evil:%201"), ("100%", "100%25")],
)
def test_a_name_that_no_header_can_hold_is_escaped(agent: str, header: str) -> None:
    async def main() -> None:
        async with endpoint(OK) as server:
            runner = HttpRunner(HttpSpec(url=server.url))
            await runner.run(turn_of(agent=agent))
            await runner.close()
        assert server.asked[0].headers["x-agent-id"] == header
        assert "x-evil" not in server.asked[0].headers

    play(main())


def test_a_secret_can_be_named_instead_of_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "t0ken")

    async def main() -> None:
        async with endpoint(OK) as server:
            runner = HttpRunner(
                HttpSpec(url=server.url, token="env:MY_TOKEN", headers={"X-Key": "env:MY_TOKEN"})
            )
            await runner.run(turn_of())
            await runner.close()
        assert server.asked[0].headers["authorization"] == "Bearer t0ken"
        assert server.asked[0].headers["x-key"] == "t0ken"

    play(main())


# What is answered.


@pytest.mark.parametrize(
    ("given", "reply"),
    [
        (json_answer({"a": [1]}), Reply(data={"a": [1]})),
        (json_answer("words"), Reply("words")),
        (json_answer(None), Reply()),
        (answer(), Reply()),
        (answer(status="204 No Content"), Reply()),
        (answer(b"plain w\xc3\xb6rds", "Content-Type: text/plain"), Reply("plain wörds")),
        (answer(b"12", "Content-Type: text/plain"), Reply("12")),
        (answer(b'{"a": 1}', "Content-Type: text/html"), Reply(data={"a": 1})),
        (answer(b'{"a": ', "Content-Type: application/json"), Reply('{"a": ')),
        (answer(b"\xff\xfe", "Content-Type: application/json"), Reply("\ufffd\ufffd")),
        (answer(b"[" * 5_000, "Content-Type: application/json"), Reply("[" * 5_000)),
    ],
)
def test_t3_json_is_data_and_anything_else_is_text(given: bytes, reply: Reply) -> None:
    async def main() -> None:
        assert await reply_to(given) == reply

    play(main())


@pytest.mark.parametrize(
    ("path", "reply"),
    [
        ("choices.0.message.content", Reply("hi")),
        ("choices.1.message.content", Reply(data={"choices": [{"message": {"content": "hi"}}]})),
        ("choices.x", Reply(data={"choices": [{"message": {"content": "hi"}}]})),
        ("choices", Reply(data={"choices": [{"message": {"content": "hi"}}]})),
        (
            "choices.0.message.content.more",
            Reply(data={"choices": [{"message": {"content": "hi"}}]}),
        ),
    ],
)
def test_t3_the_text_of_an_answer_stands_where_the_configuration_says(
    path: str, reply: Reply
) -> None:
    async def main() -> None:
        given = json_answer({"choices": [{"message": {"content": "hi"}}]})
        assert await reply_to(given, spec={"reply": path}) == reply

    play(main())


@pytest.mark.parametrize(
    ("status", "permanent"),
    [
        ("302 Found", False),
        ("400 Bad Request", True),
        ("401 Unauthorized", True),
        ("404 Not Found", True),
        ("408 Request Timeout", False),
        ("422 Unprocessable Content", True),
        ("429 Too Many Requests", False),
        ("500 Internal Server Error", False),
        ("503 Service Unavailable", False),
    ],
)
def test_t3_c9_what_is_no_success_fails_with_status_and_body(status: str, permanent: bool) -> None:
    async def main() -> None:
        failed = await failure_of(answer(b'{"why": "because"}', status=status))
        code = int(status[:3])
        assert failed.code == "http_status"
        assert failed.permanent is permanent
        assert failed.details == {"status": code, "body": '{"why": "because"}'}
        assert str(failed).endswith(f' answered {code}: {{"why": "because"}}')

    play(main())


def test_t3_of_a_long_refusal_the_end_is_kept() -> None:
    async def main() -> None:
        failed = await failure_of(answer(b"x" * 50_000 + b"the end", status="500 Oops"))
        assert isinstance(failed.details, dict)
        body = failed.details["body"]
        assert isinstance(body, str)
        assert len(body) == 8 * 1024
        assert body.endswith("xthe end")

    play(main())


def test_t3_a_refusal_that_breaks_off_is_one_all_the_same() -> None:
    async def main() -> None:
        given = b"HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\nonly th"

        async def half(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(given)
            await writer.drain()
            writer.close()

        async with endpoint(half) as server:
            runner = HttpRunner(HttpSpec(url=server.url))
            with pytest.raises(WorkFailed) as failure:
                await runner.run(turn_of())
            assert failure.value.details == {"status": 403, "body": "only th"}
            assert failure.value.permanent
            await runner.close()

    play(main())


@pytest.mark.parametrize(
    ("headers", "pause_s"),
    [
        (["Retry-After: 7"], 7),
        (["Retry-After: 0"], 1),
        (["Retry-After: 99999999999999999999"], 10_000_000),
        (
            [
                "Date: Wed, 21 Oct 2015 07:28:00 GMT",
                "Retry-After: Wed, 21 Oct 2015 07:29:30 GMT",
            ],
            90,
        ),
        (
            [
                "Date: Wed, 21 Oct 2015 07:28:00 GMT",
                "Retry-After: Wed, 21 Oct 2015 07:20:00 GMT",
            ],
            1,
        ),
    ],
)
def test_x6_a_provider_that_asks_for_a_pause_gets_it(headers: list[str], pause_s: int) -> None:
    async def main() -> None:
        with pytest.raises(RateLimited) as limited:
            await reply_to(answer(b"slow down", *headers, status="429 Too Many Requests"))
        assert limited.value.retry_after == pause_s

    play(main())


@pytest.mark.parametrize("said", ["soon", "-1", "Wed, 21 Oct 2015 07:29:30 GMT"])
def test_x6_a_pause_that_cannot_be_read_is_a_failure_to_be_tried_again(said: str) -> None:
    """A date alone says nothing: whose clock it goes by is not known."""

    async def main() -> None:
        given = answer(b"", f"Retry-After: {said}", status="429 Too Many Requests")
        failed = await failure_of(given)
        assert (failed.code, failed.permanent) == ("http_status", False)

    play(main())


def test_t3_a_redirect_is_not_followed_but_told() -> None:
    async def main() -> None:
        async with endpoint(OK) as elsewhere:
            location = f"{elsewhere.url}/secret"
            failed = await failure_of(
                answer(b"", f"Location: {location}", status="307 Temporary Redirect")
            )
            assert failed.details == {"status": 307, "body": "", "location": location}
            assert elsewhere.asked == []

    play(main())


@pytest.mark.parametrize("says_so", [True, False])
def test_an_answer_that_is_too_large_is_not_read(says_so: bool) -> None:
    """100 MB are offered; what is taken stays near the bound, and the connection is closed."""
    piece = b"x" * 65_536

    async def flood(asked: Asked, writer: asyncio.StreamWriter) -> None:
        length = b"Content-Length: 104857600\r\n" if says_so else b"Transfer-Encoding: chunked\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n")
        for _ in range(1_600):
            writer.write(piece if says_so else b"10000\r\n" + piece + b"\r\n")
            await writer.drain()

    async def main() -> None:
        async with endpoint(flood) as server:
            runner = HttpRunner(HttpSpec(url=server.url, max_body=1_000_000))
            tracemalloc.start()
            try:
                with pytest.raises(WorkFailed, match="more than 1,000,000 bytes") as failure:
                    await runner.run(turn_of())
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert most < 10_000_000
            assert failure.value.code == "answer_too_large"
            assert failure.value.permanent
            await server.until(lambda: server.closed == 1)
            await runner.close()

    play(main())


def test_an_answer_that_is_packed_is_not_unpacked() -> None:
    async def main() -> None:
        failed = await failure_of(answer(b"\x1f\x8b", "Content-Encoding: gzip"))
        assert failed.code == "bad_answer"
        assert "'gzip', which was not asked for" in str(failed)

    play(main())


# What goes wrong.


def test_a_server_that_is_not_there_is_tried_again() -> None:
    async def main() -> None:
        async with endpoint(OK) as server:
            pass
        runner = HttpRunner(HttpSpec(url=f"{server.url}/t0ken?key=s3cret"))
        with pytest.raises(WorkFailed, match="cannot be reached: ConnectError") as failure:
            await runner.run(turn_of())
        await runner.close()
        assert (failure.value.code, failure.value.permanent) == ("unreachable", False)
        assert "t0ken" not in str(failure.value), "an address may hold a secret"
        assert "s3cret" not in str(failure.value)

    play(main())


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        (b"220 mail.example.com ESMTP\r\n", "unreachable", "RemoteProtocolError"),
        (b"", "unreachable", "RemoteProtocolError"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal", "broken_answer", "broke off"),
    ],
)
def test_an_answer_that_breaks_is_tried_again(said: bytes, code: str, words: str) -> None:
    async def broken(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        writer.close()

    async def main() -> None:
        async with endpoint(broken) as server:
            runner = HttpRunner(HttpSpec(url=server.url))
            with pytest.raises(WorkFailed, match=words) as failure:
                await runner.run(turn_of())
            assert (failure.value.code, failure.value.permanent) == (code, False)
            await runner.close()

    play(main())


def test_a_cancel_closes_the_connection_and_returns_at_once() -> None:
    async def main() -> None:
        async with endpoint(hang) as server:
            runner = HttpRunner(HttpSpec(url=server.url))
            running = asyncio.create_task(runner.run(turn_of()))
            await server.until(lambda: len(server.asked) == 1)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(running, 30)
            await server.until(lambda: server.closed == 1)
            await runner.close()

    play(main())


def test_f5_a_request_ends_soon_after_its_deadline_by_itself() -> None:
    """The kernel cuts at the deadline; this is for a node that cannot."""

    async def main() -> None:
        async with endpoint(hang) as server:
            runner = HttpRunner(HttpSpec(url=server.url))
            began = asyncio.get_running_loop().time()
            with pytest.raises(WorkFailed, match="did not answer in time"):
                await runner.run(turn_of(deadline_at=SECOND // 10))
            assert 1.0 < asyncio.get_running_loop().time() - began < 30.0
            await server.until(lambda: server.closed == 1)
            await runner.close()

    play(main())


# The pool.


def test_connections_are_used_again() -> None:
    async def main() -> None:
        async with endpoint(OK) as server:
            runner = HttpRunner(HttpSpec(url=server.url))
            for _ in range(5):
                await runner.run(turn_of())
            assert (len(server.asked), server.connections) == (5, 1)
            await runner.close()
            await server.until(lambda: server.closed == 1)

    play(main())


def test_no_more_connections_are_open_than_may_be() -> None:
    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.01)
        writer.write(OK)

    async def main() -> None:
        async with endpoint(slow) as server:
            runner = HttpRunner(HttpSpec(url=server.url, connections=3))
            await asyncio.gather(*(runner.run(turn_of()) for _ in range(30)))
            assert len(server.asked) == 30
            assert server.connections <= 3
            await runner.close()

    play(main())


def test_what_one_run_is_given_to_keep_another_does_not_say() -> None:
    async def main() -> None:
        async with endpoint(json_answer({}, "Set-Cookie: who=ann; Path=/")) as server:
            runner = HttpRunner(HttpSpec(url=server.url))
            await runner.run(turn_of())
            await runner.run(turn_of())
            await runner.close()
        assert all("cookie" not in asked.headers for asked in server.asked)

    play(main())


def test_one_runner_serves_loop_after_loop() -> None:
    """A node that is started again has another loop. Connections of an old one are of no use, closed or not."""
    runner: HttpRunner | None = None
    pools: list[object] = []

    async def main(close: bool) -> None:
        nonlocal runner
        async with endpoint(json_answer({}, "Connection: close")) as server:
            runner = HttpRunner(HttpSpec(url=server.url)) if runner is None else runner
            runner._spec = HttpSpec(url=server.url)
            await runner.run(turn_of())
            await runner.run(turn_of())
            assert len(server.asked) == 2
            pools.append(runner._exchange._client)
            if close:
                await runner.close()

    play(main(close=False))
    play(main(close=True))
    play(main(close=True))
    assert len({id(pool) for pool in pools}) == 3


@pytest.mark.parametrize(("scheme", "direct"), [("http", True), ("https", False)])
def test_a_proxy_of_the_environment_is_for_https_only(
    scheme: str, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would read the token of what is not encrypted."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    client = Exchange(headers={}, max_body=1, connections=1)._client
    assert client is not None
    transport = client._transport_for_url(httpx.URL(f"{scheme}://example.com/"))
    assert (transport is client._transport) is direct


# What is refused before anything is sent.


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"url": ""}, "url"),
        ({"url": "example.com"}, "url"),
        ({"url": "ftp://example.com/"}, "url"),
        ({"url": "http:///path"}, "url"),
        ({"url": "http://ann:pass@example.com/"}, "url"),
        ({"url": "http://example.com:{agent}{tab_id}x/"}, "url"),
        ({"url": "http://h/{tabid}"}, "url"),
        ({"url": "http://h/{"}, "url"),
        ({"url": "http://h/", "method": "TRACE"}, "method"),
        ({"url": "http://h/", "body": {"a": "{nothing}"}}, "body.a"),
        ({"url": "http://h/", "headers": {"X Y": "a"}}, "headers"),
        ({"url": "http://h/", "headers": {"X-A": "a\r\nX-B: b"}}, "headers.X-A"),
        ({"url": "http://h/", "headers": {"X-A": "ü"}}, "headers.X-A"),
        ({"url": "http://h/", "headers": {"x-request-id": "1"}}, "headers"),
        ({"url": "http://h/", "headers": {"X-A": "env:NO_SUCH_THING"}}, "headers.X-A"),
        ({"url": "http://h/", "token": "a\n"}, "token"),
        ({"url": "http://h/", "token": "env:NO_SUCH_THING"}, "token"),
        ({"url": "http://h/", "token": "a", "headers": {"Authorization": "b"}}, "token"),
    ],
)
def test_a_wrong_configuration_is_refused_naming_the_field(
    spec: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        HttpRunner(HttpSpec(**spec))  # type: ignore[arg-type]
    assert refused.value.field == field


@pytest.mark.parametrize("task", [None, Task("click")])
def test_t3_a_task_that_the_address_needs_more_of_is_refused(task: Task | None) -> None:
    runner = HttpRunner(HttpSpec(url="http://h/tabs/{tab_id}"))
    with pytest.raises(InvalidInput) as refused:
        runner.check_task(task)
    assert refused.value.field == "task.tab_id"
    runner.check_task(CLICK)
    HttpRunner(HttpSpec(url="http://h/{agent}")).check_task(None)


def test_t3_a_value_that_cannot_be_in_the_address_fails_for_good() -> None:
    async def main() -> None:
        runner = HttpRunner(HttpSpec(url="http://h/tabs/{tab_id}"))
        with pytest.raises(WorkFailed) as failure:
            await runner.run(turn_of("", Task("click", "..")))
        assert (failure.value.code, failure.value.permanent) == ("bad_address", True)

    play(main())


def test_without_httpx_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['httpx'] = None\n"
        "from headway import Refused\n"
        "from headway.model.runner import HttpSpec\n"
        "from headway.runners.http import HttpRunner\n"
        "try: HttpRunner(HttpSpec(url='https://example.com/'))\n"
        "except Refused as refused: print(refused)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "an agent behind HTTP needs httpx: pip install 'headway[webhook]'\n"
