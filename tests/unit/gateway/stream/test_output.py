"""The live output of a run: what was emitted before, what comes, and the outcome."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import httpx
import msgspec

from headway import Headway, Turn
from headway.gateway.desk import Desk
from headway.gateway.stream.output import Watch
from headway.gateway.stream.tails import TAIL
from headway.runtime.handle import Handle
from headway.testing import virtual_time
from tests.unit.gateway.calling import client, opened

News = tuple[str, dict[str, object]]
_FIELDS = {"attempt": "attempt", "output": "text", "again": "error"}


def talking() -> Headway:
    """Agents that emit something and take their time over it."""
    hw = Headway()
    tries: list[str] = []

    @hw.agent("slow")
    async def slow(turn: Turn) -> str:
        for word in ("one ", "two ", "three"):
            turn.emit(word)
            await asyncio.sleep(1)
        return f"re: {turn.text}"

    @hw.agent("troubled", retries=1)
    async def troubled(turn: Turn) -> str:
        tries.append(turn.id)
        turn.emit(f"try {len(tries)}")
        await asyncio.sleep(1)
        if len(tries) == 1:
            raise RuntimeError("broken")
        return "well"

    @hw.agent("chatty")
    async def chatty(turn: Turn) -> str:
        for _ in range(100):
            turn.emit("x" * 10_000)
        await asyncio.sleep(5)
        return ""

    return hw


async def news_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[News, None]:
    async for chunk in chunks:
        for block in chunk.decode().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "event" in lines:
                yield lines["event"], msgspec.json.decode(lines["data"])


async def watched(desk: Desk, handle: Handle, backlog: int = 100) -> list[tuple[str, object]]:
    """All that is told about a run, up to its end."""
    chunks = Watch(desk.journal, handle, backlog).told()
    heard: list[tuple[str, object]] = []
    async for name, data in news_of(chunks):
        if name == "outcome":
            outcome = data["outcome"]
            assert isinstance(outcome, dict)
            heard.append((name, outcome["text"]))
        else:
            heard.append((name, data[_FIELDS[name]]))
    return heard


@virtual_time
async def test_who_watches_from_the_start_sees_all() -> None:
    async with opened(talking()) as gateway:
        handle = await gateway.desk.hw.submit("slow", "hello")
        assert await watched(gateway.desk, handle) == [
            ("attempt", 1),
            ("output", "one "),
            ("output", "two "),
            ("output", "three"),
            ("outcome", "re: hello"),
        ]


@virtual_time
async def test_who_comes_late_sees_what_was_emitted_before_and_then_the_rest() -> None:
    async with opened(talking()) as gateway:
        handle = await gateway.desk.hw.submit("slow", "hello")
        await asyncio.sleep(1.5)
        assert await watched(gateway.desk, handle) == [
            ("attempt", 1),
            ("output", "one two "),
            ("output", "three"),
            ("outcome", "re: hello"),
        ]


@virtual_time
async def test_of_a_run_that_has_ended_the_outcome_is_told() -> None:
    async with opened(talking()) as gateway:
        handle = await gateway.desk.hw.submit("slow", "hello")
        await handle.wait()
        again = await gateway.desk.hw.engine.handle_of(handle.id)
        assert await watched(gateway.desk, again) == [("outcome", "re: hello")]


@virtual_time
async def test_each_attempt_is_told_apart() -> None:
    async with opened(talking()) as gateway:
        handle = await gateway.desk.hw.submit("troubled", "hello")
        assert await watched(gateway.desk, handle) == [
            ("attempt", 1),
            ("output", "try 1"),
            ("again", "RuntimeError: broken"),
            ("attempt", 2),
            ("output", "try 2"),
            ("outcome", "well"),
        ]


@virtual_time
async def test_a_merged_message_shows_the_output_of_the_run_it_went_into() -> None:
    async with opened(talking()) as gateway:
        first = await gateway.desk.hw.submit("slow", "a", session="s", debounce="1s")
        await gateway.desk.hw.submit("slow", "b", session="s", debounce="1s")
        heard = await watched(gateway.desk, first)
        assert ("output", "three") in heard
        assert heard[-1] == ("outcome", "re: a\nb")


@virtual_time
async def test_a_long_output_is_kept_only_at_its_end() -> None:
    async with opened(talking()) as gateway:
        handle = await gateway.desk.hw.submit("chatty", "x")
        await asyncio.sleep(1)
        chunks = Watch(gateway.desk.journal, handle, 100).told()
        heard = [news async for news in news_of(chunks)]
        name, data = heard[1]
        assert (name, data["cut"]) == ("output", True)
        assert len(str(data["text"])) <= TAIL


@virtual_time
async def test_who_is_too_slow_is_cut_off() -> None:
    async with opened(talking()) as gateway:
        handle = await gateway.desk.hw.submit("chatty", "x")
        chunks = Watch(gateway.desk.journal, handle, backlog=10).told()
        await anext(chunks)
        await asyncio.sleep(1)
        assert [chunk async for chunk in chunks] == [
            b": too slow, cut off; come back with Last-Event-ID\n\n"
        ]


@virtual_time
async def test_a_watch_shows_that_it_lives_also_while_much_happens_elsewhere() -> None:
    hw = talking()

    @hw.agent("silent")
    async def silent(turn: Turn) -> None:
        await asyncio.sleep(100)

    async with opened(hw) as gateway:
        handle = await hw.submit("silent", "x")
        await asyncio.sleep(1)
        chunks = Watch(gateway.desk.journal, handle, 10_000).told()
        await anext(chunks)

        async def busy() -> None:
            while True:
                await hw.submit("slow", "x")
                await asyncio.sleep(1)

        async with asyncio.TaskGroup() as group:
            happens = group.create_task(busy())
            async with asyncio.timeout(16):
                assert (await anext(chunks)).startswith(b": still here")
            happens.cancel()
        await chunks.aclose()


@virtual_time
async def test_nothing_listens_any_more_when_the_client_has_left() -> None:
    async with opened(talking()) as gateway:
        journal = gateway.desk.journal
        before = (len(journal._ears), len(journal._at_close))
        handle = await gateway.desk.hw.submit("slow", "x")
        chunks = Watch(journal, handle, 100).told()
        await anext(chunks)
        await anext(chunks)
        await chunks.aclose()
        assert (len(journal._ears), len(journal._at_close)) == before


@virtual_time
async def test_over_http_and_only_for_who_may_see_the_run() -> None:
    hw = talking()
    async with opened(hw) as gateway, client(gateway) as http:
        handle = await hw.submit("slow", "hello")
        answer = await http.get(f"/runs/{handle.id}/output")
        assert answer.status_code == httpx.codes.OK
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.text.count("event: output") == 3
        assert '"text":"re: hello"' in answer.text
        assert (await http.get("/runs/nobody-1/output")).status_code == httpx.codes.NOT_FOUND
        _, secret = await hw.tokens.create("others", ["read"], agent="chatty")
        await asyncio.sleep(5)
        async with client(gateway, token=secret) as other:
            assert (
                await other.get(f"/runs/{handle.id}/output")
            ).status_code == httpx.codes.NOT_FOUND
            shown = await other.get(f"/runs/{handle.id}/output", params={"access_token": secret})
            assert shown.status_code == httpx.codes.NOT_FOUND
