"""S-10: what is published when a turn is cancelled, and what its agent can still read."""

import asyncio
from contextvars import ContextVar

import pytest

from headway import Headway, LaneSettings, State, Turn
from headway.model.events import AttemptCancelled, OutboundEmpty, RunFinished
from headway.model.words import Cut
from headway.testing import virtual_time
from tests.unit.runtime.worlds import CHAT, Recorder, hear, moment, only, quick_queue, with_agents

collector: ContextVar[list[str] | None] = ContextVar("collector", default=None)


@virtual_time
async def test_s10_an_empty_outbound_message_ends_the_typing_indicator() -> None:
    async with with_agents(Recorder(takes=10), queue=quick_queue()) as hw:
        heard = hear(hw)
        handle = await hw.submit("a", "x", session="s", route=CHAT)
        await asyncio.sleep(1)
        await hw.stop("s")
        await handle.wait()
        (empty,) = only(heard, OutboundEmpty)
        assert (empty.run_id, empty.session, empty.route) == (handle.id, "s", CHAT)
        (cancelled,) = only(heard, AttemptCancelled)
        assert cancelled.cut is Cut.STOPPED


@virtual_time
async def test_s10_a_run_that_was_never_started_shows_no_typing_to_end() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.submit("a", "running", session="s")
        waiting = await hw.submit("a", "waiting", session="s")
        heard = hear(hw)
        await waiting.cancel()
        await waiting.wait()
        assert only(heard, OutboundEmpty) == []


@virtual_time
async def test_s10_a_preempted_run_stopped_while_it_waits_ends_its_typing_indicator() -> None:
    hw = with_agents(Recorder(takes=10), lanes={"main": LaneSettings(1)})
    async with hw:
        heard = hear(hw)
        cut = await hw.submit(
            "a", "long", session="s", priority=10, preemptible=True, route=CHAT, debounce=0
        )
        await asyncio.sleep(1)
        await hw.submit("a", "user", session="t")
        await asyncio.sleep(1)
        assert await cut.state() is State.QUEUED
        await cut.cancel()
        await cut.wait()
        assert [event.run_id for event in only(heard, OutboundEmpty)] == [cut.id]


@virtual_time
async def test_s10_the_final_trace_is_written_although_the_context_is_cancelled() -> None:
    async with with_agents(Recorder(takes=10)) as hw:
        heard = hear(hw)
        handle = await hw.submit("a", "x", session="s", trace_id="trace-1")
        await asyncio.sleep(1)
        await handle.cancel()
        await handle.wait()
        (finished,) = only(heard, RunFinished)
        assert (finished.run_id, finished.state) == (handle.id, State.CANCELLED)
        view = await hw.run(handle)
        assert (view.state, view.run.trace_id, view.attempt) == (State.CANCELLED, "trace-1", 1)
        assert view.finished_at is not None


@virtual_time
async def test_s10_trace_id_collector_and_context_stay_readable_after_the_cancel() -> None:
    hw = Headway()
    read: list[object] = []

    @hw.before
    def set_up(turn: Turn) -> None:
        collector.set(["from the hook"])
        turn.context["collector"] = "mine"

    @hw.agent("a")
    async def agent(turn: Turn) -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            read.extend([turn.trace_id, collector.get(), turn.context["collector"], turn.cancelled])
            raise
        return "never"

    async with hw:
        handle = await hw.submit("a", "x", trace_id="trace-1")
        await asyncio.sleep(1)
        await handle.cancel()
        await handle.wait()
        assert read == ["trace-1", ["from the hook"], "mine", True]


@virtual_time
async def test_s10_the_trace_id_of_a_run_is_its_own_id_unless_given() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handle = await hw.submit("a", "x")
        await handle.wait()
        assert recorder.turns[0].trace_id == handle.id


@pytest.mark.parametrize("how", ["stop", "interrupt", "drain"])
def test_s10_every_kind_of_cancel_is_published(how: str) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder(takes=10)) as hw:
            heard = hear(hw)
            handle = await hw.submit("a", "x", session="s")
            await asyncio.sleep(1)
            match how:
                case "stop":
                    await hw.stop("s")
                case "interrupt":
                    await hw.submit("a", "y", session="s", mode="interrupt")
                case _:
                    await hw.drain(0)
            await handle.wait()
            await moment()
            assert [event.run_id for event in only(heard, OutboundEmpty)] == [handle.id]

    main()
