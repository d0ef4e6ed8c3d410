"""R-3: every outcome carries its reason, and no timeout or deadline reads as a cancellation."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headway import Handle, Headway, RateLimited, Reason, Refuse, RunEnded, State, Turn
from headway.model.settings import Limits
from headway.model.time import MILLISECOND
from headway.testing import run_virtual
from tests.unit.runtime.worlds import CHAT, Recorder, ending, moment, with_agents

Scenario = Callable[[Headway], Awaitable[Handle]]


async def done(hw: Headway) -> Handle:
    return await hw.submit("a", "x")


async def queue_full(hw: Headway) -> Handle:
    hw.set_limits(max_queue=0)
    return await hw.submit("a", "x", source="task")


async def rejected_busy(hw: Headway) -> Handle:
    await hw.submit("a", "running", session="s")
    return await hw.submit("a", "x", session="s", mode="reject")


async def stopped(hw: Headway) -> Handle:
    handle = await hw.submit("a", "x", session="s")
    await moment()
    await hw.stop("s")
    return handle


async def superseded(hw: Headway) -> Handle:
    handle = await hw.submit("a", "x", session="s")
    await moment()
    await hw.submit("a", "newer", session="s", mode="interrupt")
    return handle


async def queue_dropped(hw: Headway) -> Handle:
    await hw.submit("a", "running", session="s")
    handle = await hw.submit("a", "x", session="s", cap=1)
    await hw.submit("a", "newer", session="s", cap=1)
    return handle


async def lane_cleared(hw: Headway) -> Handle:
    await hw.submit("a", "running", session="s")
    handle = await hw.submit("a", "x", session="s")
    hw.clear_lane("main")
    return handle


async def cleared(hw: Headway) -> Handle:
    await hw.submit("a", "running", session="s")
    handle = await hw.submit("a", "x", session="s")
    await hw.command("s", "/queue clear")
    return handle


async def stale(hw: Headway) -> Handle:
    await hw.stop_all("s", message_id="100", route=CHAT)
    return await hw.submit("a", "x", session="s", route=CHAT, message_id="9")


async def merged(hw: Headway) -> Handle:
    handle = await hw.submit("a", "x", session="s", debounce="1s")
    await hw.submit("a", "y", session="s", debounce="1s")
    return handle


async def draining(hw: Headway) -> Handle:
    handle = await hw.submit("a", "x")
    await moment()
    await hw.drain(0)
    return handle


async def error(hw: Headway) -> Handle:
    return await hw.submit("a", "error")


async def refused(hw: Headway) -> Handle:
    return await hw.submit("a", "refused")


async def deadline_queued(hw: Headway) -> Handle:
    await hw.submit("a", "running", session="s")
    return await hw.submit("a", "x", session="s", deadline="500ms")


async def deadline_running(hw: Headway) -> Handle:
    return await hw.submit("a", "x", deadline="500ms")


async def timed_out(hw: Headway) -> Handle:
    return await hw.submit("a", "x", timeout="500ms")


async def rate_limited(hw: Headway) -> Handle:
    return await hw.submit("a", "limited", deadline="5s")


ENDINGS: dict[str, Scenario] = {
    "done": done,
    "rejected/queue_full": queue_full,
    "rejected/rejected_busy": rejected_busy,
    "cancelled/stopped": stopped,
    "cancelled/superseded": superseded,
    "cancelled/queue_dropped": queue_dropped,
    "cancelled/lane_cleared": lane_cleared,
    "cancelled/cleared": cleared,
    "cancelled/stale": stale,
    "cancelled/merged": merged,
    "cancelled/draining": draining,
    "failed/error": error,
    "failed/refused": refused,
    "failed/deadline_queued": deadline_queued,
    "failed/deadline_running": deadline_running,
    "failed/timed_out": timed_out,
    "failed/rate_limited": rate_limited,
}


class Troubled(Recorder):
    """An agent that does what its text says."""

    async def __call__(self, turn: Turn) -> str:
        match turn.text:
            case "error":
                raise ValueError("broken")
            case "limited":
                raise RateLimited("10s")
            case _:
                return await super().__call__(turn)


def refuse_some(turn: Turn) -> None:
    if turn.text == "refused":
        raise Refuse("not today")


@pytest.mark.parametrize("expected", list(ENDINGS))
def test_r3_every_way_to_end_has_its_state_and_reason(expected: str) -> None:
    async def main() -> None:
        hw = with_agents(Troubled(takes=1))
        hw.before(refuse_some)
        async with hw:
            try:
                handle = await ENDINGS[expected](hw)
            except RunEnded as refusal:
                run_id, outcome = refusal.run_id, refusal.outcome
            else:
                await handle.wait()
                assert handle.outcome is not None
                run_id, outcome = handle.id, handle.outcome
            assert ending(outcome) == expected
            await moment()
            view = await hw.run(run_id)
            assert (view.state, view.outcome) == (outcome.state, outcome)

    run_virtual(main())


def test_r3_every_reason_of_this_version_is_proved() -> None:
    """`orphaned` needs a node that died; it belongs to the durable stores."""
    proved = {name.partition("/")[2] for name in ENDINGS} - {""}
    assert proved == {reason.value for reason in Reason} - {"orphaned"}


def test_r3_a_deadline_while_queued_is_told_at_that_very_instant_and_calls_no_agent() -> None:
    async def main() -> None:
        recorder = Recorder(takes=10)
        async with with_agents(recorder, limits=Limits()) as hw:
            await hw.submit("a", "running", session="s")
            handle = await hw.submit("a", "late", session="s", deadline="1234ms")
            outcome = await handle.wait()
            assert asyncio.get_running_loop().time() * 1000 == pytest.approx(1234)
            assert outcome.error == "deadline exceeded while queued"
            view = await hw.run(handle)
            assert view.finished_at == view.run.submitted_at + 1234 * MILLISECOND
            assert view.state is State.FAILED
            assert recorder.started == ["running"]

    run_virtual(main())
