"""Turns: what an agent is given for one attempt."""

import asyncio
from datetime import timedelta

import pytest

from headway import Attachment, Fence, Headway, InvalidInput, Turn
from headway.model.events import OutputEmitted, TokensUsed
from headway.model.time import as_datetime
from headway.testing import virtual_time
from headway.testing.clock import ORIGIN
from tests.unit.runtime.worlds import ANN, CHAT, Recorder, each, endings, hear, only, with_agents


@virtual_time
async def test_a_turn_carries_what_was_asked() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handle = await hw.submit(
            "a",
            "hello",
            session="s",
            route=CHAT,
            sender=ANN,
            debounce=0,
            attachments=[Attachment("pic.png", "image/png", "https://example.org/pic.png")],
            trace_id="trace-1",
            deadline="1m",
        )
        await handle.wait()
        (turn,) = recorder.turns
        assert (turn.id, turn.agent, turn.session, turn.text) == (handle.id, "a", "s", "hello")
        assert (turn.route, turn.sender) == (CHAT, ANN)
        assert turn.attachments[0].media_type == "image/png"
        assert turn.trace_id == "trace-1"
        assert turn.deadline == as_datetime(ORIGIN) + timedelta(minutes=1)
        assert turn.attempt == 1
        assert (turn.cancelled, turn.overflow, turn.context) == (False, (), {})


@virtual_time
async def test_a_message_has_no_deadline_and_a_task_has_a_minute() -> None:
    """F-5."""
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await hw.send("a", "message")
        await hw.send("a", "task", source="task")
        message, task = recorder.turns
        assert message.deadline is None
        assert task.deadline == as_datetime(ORIGIN) + timedelta(seconds=61)


@virtual_time
async def test_x4_the_fence_grows_with_every_attempt_of_a_session() -> None:
    recorder = Recorder(takes=1)
    async with with_agents(recorder, idle_sessions=0) as hw:
        for text in each(3):
            await hw.send("a", text, session="s")
            await hw.send("a", text, session="t")
        handle = await hw.submit("a", "cut", session="s", max_attempts=2)
        await asyncio.sleep(0.5)
        await hw.restart(0)
        await handle.wait()
        fences = [turn.fence for turn in recorder.turns if turn.session == "s"]
        assert len(fences) == 5
        assert fences == sorted(set(fences))
        assert str(Fence(3, 14)) == "3.14"


@virtual_time
async def test_what_a_turn_emits_and_uses_is_heard() -> None:
    hw = Headway()

    @hw.agent("a")
    async def agent(turn: Turn) -> str:
        turn.emit("thinking")
        turn.usage(input=10, output=5)
        turn.usage(output=1)
        return "done"

    async with hw:
        heard = hear(hw)
        handle = await hw.submit("a", session="s")
        await handle.wait()
        assert [
            (event.run_id, event.session, event.text) for event in only(heard, OutputEmitted)
        ] == [(handle.id, "s", "thinking")]
        used = [(event.tokens_in, event.tokens_out) for event in only(heard, TokensUsed)]
        assert used == [(10, 5), (0, 1)]


@pytest.mark.parametrize("field", ["input", "output"])
def test_negative_tokens_are_refused(field: str) -> None:
    @virtual_time
    async def main() -> None:
        hw = Headway()

        @hw.agent("a")
        async def agent(turn: Turn) -> str:
            with pytest.raises(InvalidInput, match=field):
                turn.usage(**{field: -1})
            return "done"

        async with hw:
            assert await hw.send("a") == "done"

    main()


@virtual_time
async def test_x6_reported_tokens_are_taken_from_the_agents_budget() -> None:
    hw = Headway()
    starts: list[float] = []

    @hw.agent("a", tokens_per_minute=600)
    async def agent(turn: Turn) -> str:
        starts.append(asyncio.get_running_loop().time())
        turn.usage(input=1200)
        return "done"

    async with hw:
        handles = [await hw.submit("a", text) for text in each(1)]
        await endings(*handles)
        await hw.send("a", "second")
        assert starts[1] == pytest.approx(60, abs=1)


@virtual_time
async def test_an_async_agent_awaits_directly() -> None:
    hw = with_agents(Recorder())

    @hw.agent("parent")
    async def parent(turn: Turn) -> str:
        with pytest.raises(InvalidInput, match="awaited directly"):
            turn.wait_for(turn.delegate("a", "x"))
        return await turn.delegate("a", "x")

    async with hw:
        assert await hw.send("parent") == "re: x"


@virtual_time
async def test_raise_if_cancelled_ends_a_turn_that_was_stopped() -> None:
    hw = Headway()
    passed: list[str] = []

    @hw.agent("a")
    async def agent(turn: Turn) -> str:
        turn.raise_if_cancelled()
        passed.append("before")
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            turn.raise_if_cancelled()
            passed.append("never")
        return "never"

    async with hw:
        handle = await hw.submit("a", session="s")
        await asyncio.sleep(1)
        await hw.stop("s")
        await handle.wait()
        assert passed == ["before"]
