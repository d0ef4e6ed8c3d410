"""Chats over RPC: what was sent is followed on the connection, and can be stopped and read again."""

import asyncio

from headway import Headway, Turn
from headway.gateway.rpc.conversations import UNANSWERED
from headway.model.server import ServerSettings
from headway.model.words import Scope
from headway.testing import virtual_time
from tests.unit.gateway.calling import opened
from tests.unit.gateway.rpc.lines import Frame, Line, called, connected

CHAT = {"agentId": "a", "channel": "web", "peer": "42", "debounce": "0"}
KEY = "agent:a:web:dm:42"


def talking() -> Headway:
    """An agent that emits two words and takes three seconds."""
    hw = Headway()

    @hw.agent("a")
    async def a(turn: Turn) -> str:
        turn.emit("one ")
        await asyncio.sleep(1)
        turn.emit("two")
        await asyncio.sleep(2)
        return f"re: {turn.text}"

    return hw


def data(frame: Frame) -> Frame:
    found = frame["data"]
    assert isinstance(found, dict)
    return found


async def until_reply(line: Line) -> list[tuple[object, object]]:
    """All that comes of one message, up to its reply."""
    heard: list[tuple[object, object]] = []
    while True:
        frame = await line.hear()
        said = data(frame)
        match frame["event"]:
            case "chat.typing":
                heard.append(("typing", said["typing"]))
            case "chat.output":
                heard.append(("output", said["text"]))
            case _:
                outcome = said["outcome"]
                assert isinstance(outcome, dict)
                heard.append((frame["event"], outcome["text"]))
                return heard


@virtual_time
async def test_a_message_is_answered_at_once_and_its_reply_follows() -> None:
    async with called(talking()) as line:
        sent = await line.call("chat.send", **CHAT, text="hello")
        assert (sent["command"], sent["session"], sent["outcome"]) == (False, KEY, None)
        assert await until_reply(line) == [
            ("typing", True),
            ("output", "one "),
            ("output", "two"),
            ("typing", False),
            ("chat.reply", "re: hello"),
        ]


@virtual_time
async def test_messages_one_after_the_other_are_each_followed() -> None:
    async with called(talking()) as line:
        first = await line.call("chat.send", **CHAT, text="1")
        second = await line.call("chat.send", **CHAT, text="2")
        replies = [data(await line.event("chat.reply")) for _ in range(2)]
        assert [reply["runId"] for reply in replies] == [first["runId"], second["runId"]]


@virtual_time
async def test_s7_a_burst_is_one_turn_with_one_reply_and_echoes_of_it() -> None:
    async with called(talking()) as line:
        chat = {**CHAT, "debounce": "1s"}
        runs = [(await line.call("chat.send", **chat, text=text))["runId"] for text in "abc"]
        replies = [data(await line.event("chat.reply")) for _ in range(3)]
        assert {reply["runId"] for reply in replies} == set(runs)
        assert {reply["outcome"]["text"] for reply in replies} == {"re: a\nb\nc"}  # type: ignore[index]
        assert sorted(bool(reply["echo"]) for reply in replies) == [False, True, True]


@virtual_time
async def test_the_output_of_the_run_that_a_message_went_into_is_its_output() -> None:
    async with called(talking()) as line:
        chat = {**CHAT, "debounce": "1s"}
        for text in "ab":
            await line.call("chat.send", **chat, text=text)
        assert data(await line.event("chat.typing"))["typing"] is True
        assert data(await line.event("chat.output"))["text"] == "one "
        assert data(await line.event("chat.output"))["text"] == "two"


@virtual_time
async def test_s9_a_chat_command_is_answered_with_its_reply() -> None:
    async with called(talking()) as line:
        await line.call("chat.send", **CHAT, text="hello")
        await line.event("chat.output")
        stopped = await line.call("chat.send", **CHAT, text="/stop")
        assert (stopped["command"], stopped["reply"]) == (True, "1 running stopped")
        outcome = data(await line.event("chat.reply"))["outcome"]
        assert (outcome["state"], outcome["reason"]) == ("cancelled", "stopped")  # type: ignore[index]


@virtual_time
async def test_abort_stops_the_running_turn_or_all_or_one_run() -> None:
    async with called(talking()) as line:
        await line.call("chat.send", **CHAT, text="1")
        await line.call("chat.send", **CHAT, text="2")
        third = await line.call("chat.send", **CHAT, text="3")
        await line.event("chat.output")
        assert (await line.call("chat.abort", runId=third["runId"]))["text"] == "1 waiting stopped"
        one = await line.call("chat.abort", agentId="a", channel="web", peer="42")
        assert (one["running"], one["waiting"]) == (1, 0)
        await line.event("chat.output")
        await line.call("chat.send", **CHAT, text="4")
        rest = await line.call("chat.abort", session=KEY, all=True)
        assert (rest["running"], rest["waiting"]) == (1, 1)


@virtual_time
async def test_abort_needs_to_know_what() -> None:
    async with called(talking()) as line:
        assert (await line.refused("chat.abort"))["details"] == {"field": "session"}
        assert (await line.refused("chat.abort", channel="web"))["details"] == {"field": "agentId"}
        wrong = await line.refused("chat.abort", peer="42")
        assert wrong["details"]["field"] == "peer"  # type: ignore[index]
        assert (await line.refused("chat.abort", runId="nobody-1"))["code"] == "not_found"


@virtual_time
async def test_history_has_messages_and_replies_by_pages() -> None:
    async with called(talking()) as line:
        for text in "123":
            await line.call("chat.send", **CHAT, text=text)
        for _ in "123":
            await line.event("chat.reply")
        await line.call("chat.send", **CHAT, text="4")
        first = await line.call("chat.history", session=KEY, limit=3)
        turns: list[Frame] = first["turns"]  # type: ignore[assignment]
        assert [turn["text"] for turn in turns] == ["4", "3", "2"]
        assert turns[0]["outcome"] is None
        assert turns[1]["outcome"]["text"] == "re: 3"  # type: ignore[index]
        rest = await line.call("chat.history", session=KEY, limit=3, cursor=first["cursor"])
        assert [turn["text"] for turn in rest["turns"]] == ["1"]  # type: ignore[attr-defined]
        assert rest["cursor"] is None


@virtual_time
async def test_o4_who_is_bound_to_an_agent_reads_and_stops_only_its_chats() -> None:
    hw = talking()

    @hw.agent("b")
    async def b(turn: Turn) -> str:
        await asyncio.sleep(100)
        return ""

    async with opened(hw) as gateway:
        _, secret = await hw.tokens.create("bs", [Scope.SUBMIT], agent="b")
        _, all_of_it = await hw.tokens.create("all", [Scope.SUBMIT])
        await asyncio.sleep(5)
        async with (
            connected(gateway.desk, token=all_of_it) as free,
            connected(gateway.desk, token=secret) as bound,
        ):
            sent = await free.call("chat.send", **CHAT, text="hello")
            await free.event("chat.output")
            assert (await bound.refused("chat.send", **CHAT, text="x"))["code"] == "forbidden"
            assert (await bound.call("chat.history", session=KEY))["turns"] == []
            assert (await bound.refused("chat.abort", session=KEY))["code"] == "not_found"
            unseen = await bound.refused("chat.abort", runId=sent["runId"])
            assert unseen["code"] == "not_found"
            await bound.call("chat.send", agentId="b", session="s", text="x")
            assert (await bound.event("chat.typing"))["data"]["typing"] is True  # type: ignore[index]
            assert data(await free.event("chat.reply"))["runId"] == sent["runId"]


@virtual_time
async def test_who_has_left_is_not_waited_for() -> None:
    """A connection that is gone would else take up its place until the outcome comes."""
    hw = Headway()

    @hw.agent("a")
    async def a(turn: Turn) -> str:
        await asyncio.sleep(50)
        return "done"

    loop = asyncio.get_running_loop()
    async with opened(hw) as gateway:
        async with connected(gateway.desk) as line:
            line.ask("chat.send", agentId="a", session="s", text="x", wait="40")
            await asyncio.sleep(1)
            left_s = loop.time()
        assert loop.time() - left_s < 1
        assert len(hw.sessions()["s"].running) == 1, "what was sent goes on"


@virtual_time
async def test_only_so_many_messages_wait_for_their_reply() -> None:
    hw = Headway()

    @hw.agent("a")
    async def a(turn: Turn) -> str:
        await asyncio.sleep(10)
        return ""

    async with called(hw) as line:
        for number in range(UNANSWERED):
            await line.call("chat.send", agentId="a", session=f"s{number}", text="x", debounce="0")
        full = await line.refused("chat.send", agentId="a", session="one more", text="x")
        assert (full["code"], full["retryable"]) == ("too_many_connections", True)
        await line.event("chat.reply")
        await line.call("chat.send", agentId="a", session="one more", text="x")


@virtual_time
async def test_who_does_not_read_its_output_is_told_nothing_twice() -> None:
    """A client that stands still for a while gets all in order when it reads again."""
    async with (
        opened(talking(), ServerSettings()) as gateway,
        connected(gateway.desk, room=1) as line,
    ):
        await line.call("chat.send", **CHAT, text="hello")
        await asyncio.sleep(60)
        heard = await until_reply(line)
        assert [word for word in heard if word[0] == "output"] == [
            ("output", "one "),
            ("output", "two"),
        ]
        assert heard[-1] == ("chat.reply", "re: hello")
