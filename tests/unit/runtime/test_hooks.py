"""S-11: a hook just before an attempt may change it, add to it, or refuse it."""

import asyncio

import pytest

from headway import Headway, Refuse, RunFailed, Turn
from headway.model.events import RunFinished
from headway.testing import virtual_time
from tests.unit.runtime.worlds import (
    Recorder,
    deaf_sleep,
    ending,
    endings,
    hear,
    moment,
    now_s,
    only,
    with_agents,
)


@virtual_time
async def test_s11_a_hook_may_change_the_text() -> None:
    hw = with_agents(Recorder())

    @hw.before
    async def translate(turn: Turn) -> None:
        await asyncio.sleep(0.5)
        turn.text = turn.text.upper()

    async with hw:
        assert await hw.send("a", "hello") == "re: HELLO"
        assert now_s() == pytest.approx(1.5)


@virtual_time
async def test_s11_a_hook_may_add_context() -> None:
    hw = Headway()

    @hw.before
    def remember(turn: Turn) -> None:
        turn.context["name"] = "Ann"

    @hw.agent("a")
    async def agent(turn: Turn) -> str:
        return f"hello {turn.context['name']}"

    async with hw:
        assert await hw.send("a") == "hello Ann"


@virtual_time
async def test_s11_hooks_run_in_order_for_each_attempt() -> None:
    hw = Headway()
    calls: list[str] = []
    hw.before(lambda turn: calls.append(f"first {turn.attempt}"))
    hw.before(lambda turn: calls.append(f"second {turn.attempt}"))

    @hw.agent("a")
    async def agent(turn: Turn) -> str:
        if turn.attempt == 1:
            raise ValueError
        return "done"

    async with hw:
        await hw.send("a", retries=1)
        assert calls == ["first 1", "second 1", "first 2", "second 2"]


@virtual_time
async def test_s11_a_hook_may_refuse_and_the_agent_is_never_called() -> None:
    recorder = Recorder()
    hw = with_agents(recorder)

    @hw.before
    def refuse(turn: Turn) -> None:
        if "secret" in turn.text:
            raise Refuse("no secrets here")

    async with hw:
        with pytest.raises(RunFailed) as failure:
            await hw.send("a", "a secret", retries=3)
        assert ending(failure.value.outcome) == "failed/refused"
        assert failure.value.outcome.error == "no secrets here"
        assert now_s() == 0, "a refusal is not tried again"
        assert await hw.send("a", "plain") == "re: plain"
        assert recorder.started == ["plain"]


@virtual_time
async def test_s11_a_hook_that_raises_ends_only_that_run() -> None:
    recorder = Recorder()
    hw = with_agents(recorder)

    @hw.before
    def broken(turn: Turn) -> None:
        if turn.text == "bad":
            raise KeyError("hook broken")

    async with hw:
        handles = [await hw.submit("a", text, session="s") for text in ("good", "bad", "fine")]
        assert await endings(*handles) == ["done", "failed/error", "done"]
        outcome = handles[1].outcome
        assert outcome is not None
        assert "hook broken" in outcome.error
        assert recorder.started == ["good", "fine"]


@virtual_time
async def test_s11_cancelled_during_the_hook_the_agent_is_never_called() -> None:
    recorder = Recorder()
    hw = with_agents(recorder)

    @hw.before
    async def slow(turn: Turn) -> None:
        await asyncio.sleep(5)

    async with hw:
        handle = await hw.submit("a", "x", session="s")
        await asyncio.sleep(1)
        assert str(await hw.stop("s")) == "1 running stopped"
        assert ending(await handle.wait()) == "cancelled/stopped"
        assert now_s() == pytest.approx(1)
        assert recorder.turns == []


@virtual_time
async def test_s11_cancellation_is_checked_again_after_a_hook_that_ignored_it() -> None:
    recorder = Recorder()
    hw = with_agents(recorder)

    @hw.before
    async def deaf(turn: Turn) -> None:
        await deaf_sleep(5)

    async with hw:
        handle = await hw.submit("a", "x", session="s")
        await asyncio.sleep(1)
        await hw.stop("s")
        assert ending(await handle.wait()) == "cancelled/stopped"
        assert now_s() == pytest.approx(5), "the session is held until the hook has returned"
        assert recorder.turns == []


@virtual_time
async def test_s11_a_hook_that_stops_its_own_run_keeps_the_agent_from_being_called() -> None:
    recorder = Recorder()
    hw = with_agents(recorder)

    @hw.before
    async def stop_itself(turn: Turn) -> None:
        await hw.cancel(turn.id)

    async with hw:
        handle = await hw.submit("a", "x")
        assert ending(await handle.wait()) == "cancelled/stopped"
        assert recorder.turns == []


@virtual_time
async def test_s11_a_deadline_that_passes_in_the_hook_is_deadline_running() -> None:
    recorder = Recorder()
    hw = with_agents(recorder)

    @hw.before
    async def slow(turn: Turn) -> None:
        await asyncio.sleep(5)

    async with hw:
        heard = hear(hw)
        handle = await hw.submit("a", "x", deadline="2s")
        assert ending(await handle.wait()) == "failed/deadline_running"
        assert recorder.turns == []
        assert len(only(heard, RunFinished)) == 1


@virtual_time
async def test_s11_a_hook_added_while_running_counts_from_then_on() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await hw.send("a", "before")

        @hw.before
        def mark(turn: Turn) -> None:
            turn.text = "marked"

        await hw.send("a", "after")
        await moment()
        assert recorder.started == ["before", "marked"]
