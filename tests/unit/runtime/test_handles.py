"""Handles: waiting, streaming and cancelling, by as many callers as there are."""

import asyncio

import pytest

from headway import Handle, Headway, RunCancelled, RunFailed, State, Turn
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Recorder, ending, moment, now_s, with_agents


def _talker() -> Headway:
    hw = Headway()

    @hw.agent("talker")
    async def talker(turn: Turn) -> str:
        for word in turn.text.split():
            await asyncio.sleep(1)
            turn.emit(word)
        return "done"

    return hw


async def _pieces(handle: Handle) -> list[tuple[str, float]]:
    return [(piece, now_s()) async for piece in handle.stream()]


@virtual_time
async def test_a_stream_gives_each_piece_as_it_comes_and_ends_with_the_run() -> None:
    async with _talker() as hw:
        handle = await hw.submit("talker", "one two three")
        assert await _pieces(handle) == [("one", 1.0), ("two", 2.0), ("three", 3.0)]
        assert await handle.reply() == "done"
        assert await _pieces(handle) == []


@virtual_time
async def test_two_streams_of_one_run_each_get_everything() -> None:
    """Two callers with one idempotency key hold the same run."""
    async with _talker() as hw:
        first = await hw.submit("talker", "one two", idempotency_key="k")
        second = await hw.submit("talker", "one two", idempotency_key="k")
        heard = await asyncio.gather(_pieces(first), _pieces(second))
        assert list(heard) == [[("one", 1.0), ("two", 2.0)]] * 2


@virtual_time
async def test_a_stream_that_begins_later_gets_what_comes_from_then_on() -> None:
    async with _talker() as hw:
        handle = await hw.submit("talker", "one two three")
        await asyncio.sleep(1.5)
        assert [piece for piece, _ in await _pieces(handle)] == ["two", "three"]


@virtual_time
async def test_a_stream_of_a_cancelled_run_ends() -> None:
    async with _talker() as hw:
        handle = await hw.submit("talker", "one two three")

        async def cancel_later() -> None:
            await asyncio.sleep(1.5)
            await handle.cancel()

        heard, _ = await asyncio.gather(_pieces(handle), cancel_later())
        assert [piece for piece, _ in heard] == ["one"]


@virtual_time
async def test_reply_raises_what_happened_with_its_outcome() -> None:
    hw = with_agents(Recorder(takes=5))

    @hw.agent("broken")
    async def broken(turn: Turn) -> str:
        raise ZeroDivisionError("by zero")

    async with hw:
        with pytest.raises(RunFailed, match="by zero") as failure:
            await hw.send("broken", "x")
        assert failure.value.outcome.error == "ZeroDivisionError: by zero"
        handle = await hw.submit("a", "x")
        await moment()
        await handle.cancel()
        with pytest.raises(RunCancelled) as cancellation:
            await handle.reply()
        assert cancellation.value.run_id == handle.id
        assert ending(cancellation.value.outcome) == "cancelled/stopped"


@virtual_time
async def test_t5_a_running_run_that_is_cancelled_says_so_until_it_has_returned() -> None:
    async with with_agents(Recorder(takes=10, deaf=3)) as hw:
        handle = await hw.submit("a", "x")
        await asyncio.sleep(1)
        await handle.cancel()
        assert now_s() == pytest.approx(1), "the answer comes at once"
        await moment()
        view = await hw.run(handle)
        assert (view.state, view.cancelling) == (State.RUNNING, True)
        await handle.wait()
        view = await hw.run(handle)
        assert (view.state, view.cancelling) == (State.CANCELLED, False)


@virtual_time
async def test_cancelling_twice_or_too_late_answers_nothing() -> None:
    async with with_agents(Recorder(takes=10, deaf=1)) as hw:
        handle = await hw.submit("a", "x")
        await asyncio.sleep(1)
        assert str(await handle.cancel()) == "1 running stopped"
        assert str(await handle.cancel()) == "nothing to stop"
        await handle.wait()
        assert str(await handle.cancel()) == "nothing to stop"


@virtual_time
async def test_a_caller_that_stops_waiting_in_send_does_not_cancel_the_run() -> None:
    recorder = Recorder(takes=5)
    async with with_agents(recorder) as hw:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(hw.send("a", "x"), 1)
        await asyncio.sleep(10)
        assert recorder.ended == ["x"]
        assert recorder.cancelled == []


@virtual_time
async def test_a_handle_shows_itself() -> None:
    async with with_agents(Recorder()) as hw:
        handle = await hw.submit("a", "x")
        assert handle.id in repr(handle)
        assert handle.outcome is None
        await handle.wait()
        assert handle.outcome is not None
