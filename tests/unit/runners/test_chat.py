"""Chat endpoints as agents: what they stream is the run's live output."""

import asyncio
import json
import tracemalloc

import pytest

from headway import Attachment, Headway, InvalidInput, RateLimited, Reply, WorkFailed
from headway.model.events import OutputEmitted, TokensUsed
from headway.model.outcome import Json
from headway.model.runner import ChatSpec
from headway.model.task import Task
from headway.runners.chat import ChatRunner
from tests.unit.runners.endpoints import (
    Answering,
    Asked,
    Ears,
    Endpoint,
    answer,
    endpoint,
    json_answer,
    play,
    turn_of,
)
from tests.unit.runtime.worlds import hear, only

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}


def delta(content: str | None = None, finish: str | None = None, **more: object) -> bytes:
    words = {"content": content, **more}
    choice = {"index": 0, "delta": words, "finish_reason": finish}
    return event({"choices": [choice]})


def event(data: object) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def chunk(piece: bytes) -> bytes:
    return f"{len(piece):x}\r\n".encode() + piece + b"\r\n"


def stream(*pieces: bytes, end: bool = True) -> Answering:
    """Sends the pieces, one by one, and then ends the answer or breaks it off."""

    async def send(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for piece in pieces:
            writer.write(chunk(piece))
            await writer.drain()
        if end:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        else:
            writer.close()

    return send


def runner_of(server: Endpoint, **options: object) -> ChatRunner:
    spec = ChatSpec(url=f"{server.url}/v1", model="small", **options)  # type: ignore[arg-type]
    return ChatRunner(spec)


async def reply_to(given: bytes | Answering, desk: Ears | None = None, **options: object) -> Reply:
    async with endpoint(given) as server:
        runner = runner_of(server, **options)
        try:
            return await runner.run(turn_of(desk=desk))
        finally:
            await runner.close()


async def failure_of(given: bytes | Answering, desk: Ears | None = None) -> WorkFailed:
    with pytest.raises(WorkFailed) as failure:
        await reply_to(given, desk)
    return failure.value


PLAIN = stream(delta("Hel"), delta("lo"), delta(finish="stop"), DONE)


# What is asked.


def test_a_run_is_what_the_user_says() -> None:
    async def main() -> None:
        async with endpoint(PLAIN) as server:
            runner = runner_of(
                server, token="key", system="You are {agent}.", options={"temperature": 0}
            )
            await runner.run(turn_of("hi {agent}"))
            await runner.close()
        (asked,) = server.asked
        assert (asked.method, asked.target) == ("POST", "/v1/chat/completions")
        assert asked.json == {
            "model": "small",
            "messages": [
                {"role": "system", "content": "You are browser."},
                {"role": "user", "content": "hi {agent}"},
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
        }
        assert asked.headers["authorization"] == "Bearer key"
        assert asked.headers["x-request-id"] == "run-1.2"
        assert asked.headers["x-headway-fence"] == "3.7"
        assert "text/event-stream" in asked.headers["accept"]

    play(main())


def test_what_old_servers_do_not_know_can_be_left_out() -> None:
    async def main() -> None:
        async with endpoint(PLAIN) as server:
            runner = runner_of(server, options={"stream_options": None})
            await runner.run(turn_of())
            await runner.close()
        assert isinstance(server.asked[0].json, dict)
        assert "stream_options" not in server.asked[0].json

    play(main())


def test_pictures_are_shown_and_tasks_say_themselves() -> None:
    async def main() -> None:
        picture = Attachment("cat.png", "image/png", "https://example.com/cat.png")
        paper = Attachment("a.pdf", "application/pdf", "https://example.com/a.pdf")
        async with endpoint(PLAIN) as server:
            runner = runner_of(server)
            await runner.run(turn_of("look", attachments=(picture, paper)))
            await runner.run(turn_of("", Task("sum", params={"n": [1, 2]})))
            await runner.close()
        first, second = (asked.json["messages"][0]["content"] for asked in server.asked)  # type: ignore[index]
        assert first == [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
            {"type": "text", "text": "a.pdf: https://example.com/a.pdf"},
        ]
        assert json.loads(second)["action"] == "sum"
        assert json.loads(second)["params"] == {"n": [1, 2]}

    play(main())


# What is answered.


def test_what_is_streamed_is_live_output_and_all_of_it_is_the_reply() -> None:
    """Each piece is told as it comes: the second is sent only after the first was heard."""

    async def main() -> None:
        desk = Ears()

        async def slowly(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(HEAD + chunk(b": hello\n\n" + delta("", role="assistant") + delta("Hel")))
            await desk.came.wait()
            assert desk.pieces == ["Hel"]
            writer.write(chunk(delta("lo 😀")[:20]))
            await writer.drain()
            writer.write(chunk(delta("lo 😀")[20:] + delta(finish="stop")))
            writer.write(chunk(event({"choices": [], "usage": USAGE}) + DONE) + b"0\r\n\r\n")

        reply = await reply_to(slowly, desk)
        assert reply == Reply("Hello 😀")
        assert desk.pieces == ["Hel", "lo 😀"]
        assert desk.tokens == [(12, 3)]

    play(main())


def test_the_last_count_of_tokens_is_the_one() -> None:
    """Some servers count with each piece, up to there."""

    async def main() -> None:
        desk = Ears()
        pieces = [
            event(
                {
                    "choices": [{"delta": {"content": "a"}}],
                    "usage": {"prompt_tokens": 5, "completion_tokens": n},
                }
            )
            for n in (1, 2, 3)
        ]
        await reply_to(stream(*pieces, delta(finish="stop"), DONE), desk)
        assert desk.tokens == [(5, 3)]

    play(main())


@pytest.mark.parametrize(
    ("pieces", "reply"),
    [
        ([delta("a"), delta(finish="stop"), DONE], Reply("a")),
        ([delta("a"), delta(finish="stop")], Reply("a")),
        ([delta("a"), DONE], Reply("a")),
        ([delta("a"), delta(finish="stop"), b"data: [DONE]"], Reply("a")),
        ([delta("a"), delta(finish="length"), DONE], Reply("a", data={"finish_reason": "length"})),
        ([delta(finish="stop"), DONE], Reply(data={"finish_reason": "stop"})),
        ([DONE], Reply(data={"finish_reason": None})),
        (
            [delta(refusal="I must "), delta(refusal="not"), delta(finish="stop"), DONE],
            Reply(data={"refusal": "I must not", "finish_reason": "stop"}),
        ),
        (
            [
                event({"choices": [{"index": 1, "delta": {"content": "other"}}]}),
                delta("a"),
                delta(finish="stop"),
                DONE,
            ],
            Reply("a"),
        ),
    ],
)
def test_how_a_stream_ends(pieces: list[bytes], reply: Reply) -> None:
    async def main() -> None:
        assert await reply_to(stream(*pieces)) == reply

    play(main())


def test_calls_of_tools_are_data() -> None:
    async def main() -> None:
        def call(index: int, arguments: str, **first: object) -> bytes:
            function = {"arguments": arguments, **({"name": "look"} if first else {})}
            return delta(tool_calls=[{"index": index, "function": function, **first}])

        reply = await reply_to(
            stream(
                call(0, "", id="c0", type="function"),
                call(0, '{"q":'),
                call(1, "{}", id="c1", type="function"),
                call(0, " 1}"),
                delta(finish="tool_calls"),
                DONE,
            )
        )
        expected: Json = {
            "tool_calls": [
                {
                    "id": "c0",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"q": 1}'},
                },
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ],
            "finish_reason": "tool_calls",
        }
        assert reply == Reply(data=expected)

    play(main())


@pytest.mark.parametrize("asks_for_stream", [True, False])
def test_an_answer_in_one_piece_is_taken_too(asks_for_stream: bool) -> None:
    async def main() -> None:
        desk = Ears()
        message = {"role": "assistant", "content": "whole"}
        given = json_answer(
            {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}
        )
        assert await reply_to(given, desk, stream=asks_for_stream) == Reply("whole")
        assert (desk.pieces, desk.tokens) == ([], [(12, 3)])

    play(main())


def test_the_parts_of_a_content_are_joined() -> None:
    async def main() -> None:
        content = [{"type": "text", "text": "a"}, {"type": "other"}, {"type": "text", "text": "b"}]
        given = json_answer({"choices": [{"message": {"content": content}}]})
        assert await reply_to(given) == Reply("ab")

    play(main())


def test_after_a_stream_the_connection_is_used_again() -> None:
    async def main() -> None:
        async with endpoint(PLAIN) as server:
            runner = runner_of(server)
            for _ in range(3):
                await runner.run(turn_of())
            assert server.connections == 1
            await runner.close()

    play(main())


def test_a_stream_that_is_left_open_after_its_last_word_is_not_waited_for() -> None:
    async def main() -> None:
        async def lingering(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(HEAD + chunk(delta("a") + delta(finish="stop") + DONE))
            await asyncio.Event().wait()

        assert await asyncio.wait_for(reply_to(lingering), 30) == Reply("a")

    play(main())


# What goes wrong.


@pytest.mark.parametrize("end", [True, False])
def test_a_stream_that_breaks_off_is_tried_again(end: bool) -> None:
    async def main() -> None:
        desk = Ears()
        failed = await failure_of(stream(delta("half a"), event({"usage": USAGE}), end=end), desk)
        assert (failed.code, failed.permanent) == ("broken_answer", False)
        assert "broke off its answer" in str(failed)
        assert desk.pieces == ["half a"]
        assert desk.tokens == [(12, 3)], "it was paid for"

    play(main())


def test_a_stream_that_breaks_after_its_last_word_is_whole() -> None:
    async def main() -> None:
        pieces = (delta("a"), delta(finish="stop"), DONE)
        assert await reply_to(stream(*pieces, end=False)) == Reply("a")

    play(main())


@pytest.mark.parametrize(
    ("error", "words", "permanent"),
    [
        ({"message": "overloaded", "type": "server_error"}, "overloaded", False),
        ({"message": "too long", "type": "invalid_request_error"}, "too long", True),
        ({"code": 502}, '{"code":502}', False),
        ("just words", "just words", False),
    ],
)
def test_an_error_inside_an_answer_is_a_failure(error: Json, words: str, permanent: bool) -> None:
    async def main() -> None:
        for given in (stream(delta("a"), event({"error": error})), json_answer({"error": error})):
            failed = await failure_of(given)
            assert (failed.code, failed.permanent) == ("provider_error", permanent)
            assert str(failed).endswith(f": {words}")
            assert failed.details == {"error": error}

    play(main())


@pytest.mark.parametrize(
    "given",
    [
        json_answer({"choices": []}),
        json_answer({"choices": [{"message": None}]}),
        json_answer({"hello": "world"}),
        json_answer([1]),
        answer(b"<html>Please log in</html>", "Content-Type: text/html"),
        stream(b"data: <html>\n\n"),
        stream(event({"choices": "none"})),
        stream(
            event({"choices": [{"delta": {"tool_calls": [{"index": n} for n in range(1_001)]}}]})
        ),
    ],
)
def test_what_is_no_answer_of_a_model_is_said_to_be_none(given: bytes | Answering) -> None:
    async def main() -> None:
        failed = await failure_of(given)
        assert failed.code == "bad_answer"

    play(main())


def test_x6_a_provider_that_asks_for_a_pause_gets_it() -> None:
    async def main() -> None:
        busy = json_answer({"error": {}}, "Retry-After: 9", status="429 Too Many Requests")
        with pytest.raises(RateLimited) as limited:
            await reply_to(busy)
        assert limited.value.retry_after == 9

    play(main())


def test_c9_a_provider_that_says_no_is_not_asked_again() -> None:
    async def main() -> None:
        wrong = json_answer({"error": {"message": "no such model"}}, status="404 Not Found")
        failed = await failure_of(wrong)
        assert (failed.code, failed.permanent) == ("http_status", True)
        assert "no such model" in str(failed)

    play(main())


@pytest.mark.parametrize("lines", [True, False])
def test_a_stream_without_end_is_cut_in_bounded_memory(lines: bool) -> None:
    piece = delta("x" * 30_000) if lines else b"x" * 32_768

    async def flood(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for _ in range(3_000):
            writer.write(chunk(piece))
            await writer.drain()

    class Deaf(Ears):
        def emit(self, ticket: int, text: str) -> None: ...

    async def main() -> None:
        async with endpoint(flood) as server:
            runner = runner_of(server, max_body=2_000_000)
            tracemalloc.start()
            try:
                with pytest.raises(WorkFailed, match="more than") as failure:
                    await runner.run(turn_of(desk=Deaf()))
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert most < 12_000_000
            assert (failure.value.code, failure.value.permanent) == ("answer_too_large", True)
            await server.until(lambda: server.closed == 1)
            await runner.close()

    play(main())


def test_a_cancel_in_the_middle_of_a_stream_closes_the_connection() -> None:
    async def main() -> None:
        desk = Ears()

        async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(HEAD + chunk(delta("and so on")))
            await asyncio.Event().wait()

        async with endpoint(endless) as server:
            runner = runner_of(server)
            running = asyncio.create_task(runner.run(turn_of(desk=desk)))
            await desk.came.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(running, 30)
            await server.until(lambda: server.closed == 1)
            await runner.close()

    play(main())


# As an agent.


def test_a_chat_agent_streams_into_its_run() -> None:
    async def main() -> None:
        told = stream(
            delta("Hel"), delta("lo"), event({"usage": USAGE}), delta(finish="stop"), DONE
        )
        async with endpoint(told) as server:
            hw = Headway()
            hw.chat_agent("model", f"{server.url}/v1", "small")
            async with hw:
                heard = hear(hw)
                assert await hw.send("model", "hi", session="s") == "Hello"
        assert [event.text for event in only(heard, OutputEmitted)] == ["Hel", "lo"]
        assert [(event.tokens_in, event.tokens_out) for event in only(heard, TokensUsed)] == [
            (12, 3)
        ]

    play(main())


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"url": "example.com"}, "url"),
        ({"url": "http://h/v1?key=1"}, "url"),
        ({"url": "http://h/v1", "model": ""}, "model"),
        ({"url": "http://h/v1", "system": "{nobody}"}, "system"),
        ({"url": "http://h/v1", "options": [1]}, "options"),
        ({"url": "http://h/v1", "options": {"messages": []}}, "options"),
        ({"url": "http://h/v1", "options": {"stream": False}}, "options"),
        ({"url": "http://h/v1", "token": "a b"}, "token"),
    ],
)
def test_a_wrong_configuration_is_refused_naming_the_field(
    spec: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        ChatRunner(ChatSpec(**{"model": "small", **spec}))  # type: ignore[arg-type]
    assert refused.value.field == field
