"""R-2, R-4, S-3: a cancelled attempt that ends late changes nothing, least of all a run like it."""

import asyncio

import pytest

from headway import Headway, State
from headway.model.events import AttemptAbandoned, LateResult, RunFinished, RunStarted
from headway.model.time import HOUR, SECOND
from headway.testing import virtual_time
from tests.unit.runtime.worlds import (
    CHAT,
    Recorder,
    ending,
    hear,
    moment,
    now_s,
    only,
    quick_queue,
    with_agents,
)

GRACE_S = 10.0


@virtual_time
async def test_s3_a_cancelled_attempt_keeps_its_session_until_it_has_returned() -> None:
    deaf = Recorder(takes=100, deaf=2)
    async with with_agents(deaf) as hw:
        first = await hw.submit("a", "one", session="s")
        await asyncio.sleep(1)
        await first.cancel()
        second = await hw.submit("a", "two", session="s")
        deaf.takes = 1
        await second.wait()
        assert deaf.started_at == pytest.approx([0, 3])
        assert deaf.most == 1
        assert ending(first.outcome) == "cancelled/stopped"


@virtual_time
async def test_s3_an_attempt_that_ignores_its_cancellation_is_abandoned_after_the_grace() -> None:
    deaf = Recorder(takes=100, deaf=60)
    async with with_agents(deaf) as hw:
        heard = hear(hw)
        first = await hw.submit("a", "one", session="s")
        await asyncio.sleep(1)
        await first.cancel()
        assert await first.state() is State.RUNNING
        await first.wait()
        assert now_s() == pytest.approx(1 + GRACE_S)
        assert ending(first.outcome) == "cancelled/stopped"
        assert [event.run_id for event in only(heard, AttemptAbandoned)] == [first.id]
        assert hw.lanes()["main"].running == 0


@virtual_time
async def test_r4_the_late_result_of_an_abandoned_attempt_changes_nothing_but_a_log_line() -> None:
    deaf = Recorder(takes=100, deaf=60)
    async with with_agents(deaf) as hw:
        heard = hear(hw)
        first = await hw.submit("a", "one", session="s")
        await asyncio.sleep(1)
        await first.cancel()
        await first.wait()
        before = await hw.run(first)
        deaf.takes = 100
        second = await hw.submit("a", "two", session="s")
        await asyncio.sleep(60)
        assert deaf.ended == ["one"]
        assert [event.run_id for event in only(heard, LateResult)] == [first.id]
        assert await hw.run(first) == before
        assert await second.state() is State.RUNNING
        assert hw.sessions()["s"].running == (second.id,)
        assert hw.lanes()["main"].running == 1
        assert len([e for e in only(heard, RunFinished) if e.run_id == first.id]) == 1
        await second.cancel()


async def _second_counts_and_can_be_cancelled(hw: Headway, deaf: Recorder, second_id: str) -> None:
    """The late result of the first arrives; the second runs on and can be stopped."""
    assert deaf.ended == []
    await asyncio.sleep(61)
    assert len(deaf.ended) == 1
    assert await hw.engine.state((await hw.run(second_id)).id) is State.RUNNING
    assert hw.sessions()["s"].running == (second_id,)
    assert hw.lanes()["main"].running == 1
    deaf.deaf = 0
    assert (await hw.cancel(second_id)).running == 1
    await moment()
    assert ending((await hw.run(second_id)).outcome) == "cancelled/stopped"
    assert hw.lanes()["main"].running == 0
    assert hw.sessions() == {}


@virtual_time
async def test_r4_same_message_id_redelivered_after_a_drain_while_the_first_still_ends() -> None:
    deaf = Recorder(takes=100, deaf=60)
    async with with_agents(deaf, queue=quick_queue()) as hw:
        first = await hw.submit("a", "hi", session="s", route=CHAT, message_id="7", max_attempts=1)
        await asyncio.sleep(1)
        await hw.restart(0)
        assert ending(first.outcome) == "cancelled/draining"
        second = await hw.submit("a", "hi", session="s", route=CHAT, message_id="7")
        assert second.id != first.id
        await moment()
        assert deaf.started == ["hi", "hi"]
        await _second_counts_and_can_be_cancelled(hw, deaf, second.id)


@virtual_time
async def test_s3_same_message_id_after_the_dedupe_window_waits_for_the_first_to_return() -> None:
    deaf = Recorder(takes=10_000, deaf=1500)
    async with with_agents(deaf, queue=quick_queue(), cancel_grace=HOUR) as hw:
        first = await hw.submit("a", "hi", session="s", route=CHAT, message_id="7")
        await asyncio.sleep(1)
        await first.cancel()
        await asyncio.sleep(21 * 60)
        second = await hw.submit("a", "hi", session="s", route=CHAT, message_id="7")
        assert second.id != first.id
        assert await second.state() is State.QUEUED
        await first.wait()
        await moment()
        assert ending(first.outcome) == "cancelled/stopped"
        assert await second.state() is State.RUNNING
        assert deaf.most == 1
        deaf.deaf = 0
        assert (await second.cancel()).running == 1
        assert ending(await second.wait()) == "cancelled/stopped"


@virtual_time
async def test_r4_same_idempotency_key_retried_while_the_first_still_ends() -> None:
    deaf = Recorder(takes=100, deaf=60)
    async with with_agents(deaf) as hw:
        first = await hw.submit("a", "hi", session="s", idempotency_key="k")
        await asyncio.sleep(1)
        await first.cancel()
        again = await hw.submit("a", "hi", session="s", idempotency_key="k", on_repeat="retry")
        assert again.id == first.id, "the first has not ended yet"
        await first.wait()
        second = await hw.submit("a", "hi", session="s", idempotency_key="k", on_repeat="retry")
        assert second.id != first.id
        await moment()
        await _second_counts_and_can_be_cancelled(hw, deaf, second.id)


@virtual_time
async def test_r4_second_attempt_of_the_same_run_while_the_first_still_ends() -> None:
    deaf = Recorder(takes=100, deaf=60)
    async with with_agents(deaf) as hw:
        heard = hear(hw)
        run = await hw.submit("a", "hi", session="s", max_attempts=2)
        await asyncio.sleep(1)
        await hw.restart(0)
        await moment()
        assert [turn.attempt for turn in deaf.turns] == [1, 2]
        assert deaf.turns[0].id == deaf.turns[1].id
        await _second_counts_and_can_be_cancelled(hw, deaf, run.id)
        assert len(only(heard, RunFinished)) == 1


@virtual_time
async def test_r4_what_a_late_attempt_says_and_takes_is_not_heard() -> None:
    """Its output, its tokens and its hand in the inbox belong to nobody any more."""
    deaf = Recorder(takes=100, deaf=60)
    async with with_agents(deaf) as hw:
        first = await hw.submit("a", "one", session="s")
        await asyncio.sleep(1)
        await first.cancel()
        await first.wait()
        heard = hear(hw)
        turn = deaf.turns[0]
        turn.emit("still here")
        turn.usage(input=5)
        assert turn.inbox.poll() is None
        await moment()
        assert heard == []


@virtual_time
async def test_r4_a_timed_out_attempt_that_returns_late_stays_timed_out() -> None:
    deaf = Recorder(takes=100, deaf=5)
    async with with_agents(deaf) as hw:
        outcome = await (await hw.submit("a", "slow", timeout="2s")).wait()
        assert now_s() == pytest.approx(7)
        assert ending(outcome) == "failed/timed_out"


@virtual_time
async def test_s3_the_lane_slot_is_held_as_long_as_the_session() -> None:
    deaf = Recorder(takes=100, deaf=3)
    async with with_agents(deaf, Recorder()) as hw:
        hw.set_lane("main", 1)
        first = await hw.submit("a", "one", session="s")
        await asyncio.sleep(1)
        await first.cancel()
        heard = hear(hw)
        await hw.send("b", "other", session="t")
        assert only(heard, RunStarted)[0].at - (await hw.run(first)).run.submitted_at == 4 * SECOND
