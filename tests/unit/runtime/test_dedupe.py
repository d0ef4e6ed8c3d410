"""S-8 and D-6: the same message or key is the same run."""

import asyncio

import msgspec
import pytest

from headway import Headway, QueueFull, RunFailed, Turn
from headway.testing import virtual_time
from tests.unit.runtime.worlds import (
    ANN,
    CHAT,
    Recorder,
    ending,
    endings,
    moment,
    quick_queue,
    with_agents,
)

MINUTE_S = 60


@virtual_time
async def test_s8_a_redelivered_message_is_the_first_run() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        first = await hw.submit("a", "hi", route=CHAT, message_id="7")
        again = await hw.submit("a", "hi", route=CHAT, message_id="7")
        assert again.id == first.id
        assert await again.reply() == "re: hi"
        late = await hw.submit("a", "hi", route=CHAT, message_id="7")
        assert await late.reply() == "re: hi"
        assert recorder.started == ["hi"]


@virtual_time
async def test_s8_same_text_with_another_id_is_another_message() -> None:
    recorder = Recorder()
    async with with_agents(recorder, queue=quick_queue()) as hw:
        handles = [await hw.submit("a", "hi", route=CHAT, message_id=str(n)) for n in range(3)]
        await endings(*handles)
        assert recorder.started == ["hi"] * 3


@pytest.mark.parametrize("field", ["channel", "account", "peer", "thread"])
def test_s8_same_id_is_another_message_if_its_route_differs_in(field: str) -> None:
    @virtual_time
    async def main() -> None:
        recorder = Recorder()
        elsewhere = msgspec.structs.replace(CHAT, **{field: "other"})
        async with with_agents(recorder, queue=quick_queue()) as hw:
            handles = [
                await hw.submit("a", "hi", route=route, message_id="7")
                for route in (CHAT, elsewhere)
            ]
            assert handles[0].id != handles[1].id
            await endings(*handles)

    main()


@virtual_time
async def test_s8_same_id_to_another_agent_is_another_message() -> None:
    first, second = Recorder(), Recorder()
    async with with_agents(first, second, queue=quick_queue()) as hw:
        handles = [await hw.submit(agent, "hi", route=CHAT, message_id="7") for agent in "ab"]
        await endings(*handles)
        assert first.started == second.started == ["hi"]


@virtual_time
async def test_s8_the_window_is_twenty_minutes() -> None:
    recorder = Recorder(takes=0)
    async with with_agents(recorder, queue=quick_queue()) as hw:
        for _ in range(3):
            await hw.send("a", "hi", route=CHAT, message_id="7")
            await asyncio.sleep(19 * MINUTE_S + 59)
        assert recorder.started_at == pytest.approx([0, 2 * (19 * MINUTE_S + 59)])


@virtual_time
async def test_s8_a_refused_message_can_be_redelivered() -> None:
    recorder = Recorder()
    async with with_agents(recorder, queue=quick_queue()) as hw:
        await hw.submit("a", "running", session="s")
        await hw.submit("a", "waits", session="s")
        with pytest.raises(QueueFull):
            await hw.submit("a", "hi", session="s", route=CHAT, message_id="7", cap=1, drop="new")
        await asyncio.sleep(5)
        assert await hw.send("a", "hi", session="s", route=CHAT, message_id="7") == "re: hi"


@virtual_time
async def test_s8_a_message_cut_by_a_drain_can_be_redelivered() -> None:
    recorder = Recorder(takes=5)
    async with with_agents(recorder, queue=quick_queue()) as hw:
        first = await hw.submit("a", "hi", route=CHAT, message_id="7", max_attempts=1)
        await asyncio.sleep(1)
        await hw.restart(0)
        assert ending(first.outcome) == "cancelled/draining"
        assert await hw.send("a", "hi", route=CHAT, message_id="7") == "re: hi"
        assert recorder.started == ["hi", "hi"]


@virtual_time
async def test_s8_every_part_of_a_merged_run_that_was_cut_can_be_redelivered() -> None:
    recorder = Recorder(takes=5)
    async with with_agents(recorder) as hw:
        parts = [("one", "1"), ("two", "2")]
        for text, message_id in parts:
            await hw.submit(
                "a", text, route=CHAT, sender=ANN, message_id=message_id, max_attempts=1
            )
        await asyncio.sleep(2)
        assert recorder.started == ["one\ntwo"]
        await hw.restart(0)
        *_, last = [
            await hw.submit("a", text, route=CHAT, sender=ANN, message_id=message_id)
            for text, message_id in parts
        ]
        assert await last.reply() == "re: one\ntwo"


@virtual_time
async def test_s8_a_stopped_message_is_not_run_again_by_a_redelivery() -> None:
    recorder = Recorder()
    async with with_agents(recorder, queue=quick_queue()) as hw:
        first = await hw.submit("a", "hi", session="s", route=CHAT, message_id="7")
        await moment()
        await hw.stop("s")
        await first.wait()
        again = await hw.submit("a", "hi", session="s", route=CHAT, message_id="7")
        assert again.id == first.id
        assert ending(await again.wait()) == "cancelled/stopped"
        assert recorder.started == ["hi"]


@virtual_time
async def test_s8_a_redelivered_part_of_a_merged_run_gets_that_runs_reply() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        *_, last = [
            await hw.submit("a", text, route=CHAT, message_id=message_id)
            for text, message_id in (("one", "1"), ("two", "2"))
        ]
        await asyncio.sleep(1)
        while_running = await hw.submit("a", "one", route=CHAT, message_id="1")
        assert await while_running.reply() == "re: one\ntwo"
        await last.wait()
        afterwards = await hw.submit("a", "one", route=CHAT, message_id="1")
        assert await afterwards.reply() == "re: one\ntwo"
        assert recorder.started == ["one\ntwo"]


@virtual_time
async def test_s8_a_duplicate_of_a_forgotten_run_is_still_no_second_run() -> None:
    """Results are kept shorter than ids are remembered; the caller is told something it can use."""
    recorder = Recorder(takes=0)
    async with with_agents(recorder, queue=quick_queue(), retention=0) as hw:
        first = await hw.submit("a", "hi", route=CHAT, message_id="7")
        await first.wait()
        again = await hw.submit("a", "hi", route=CHAT, message_id="7")
        assert again.id == first.id
        assert (await again.wait()).ok
        assert recorder.started == ["hi"]


@virtual_time
async def test_d6_the_second_submission_of_a_key_returns_the_first_run() -> None:
    recorder = Recorder()
    async with with_agents(recorder, Recorder()) as hw:
        first = await hw.submit("a", "x", idempotency_key="k")
        second = await hw.submit("a", "y", idempotency_key="k")
        other = await hw.submit("b", "x", idempotency_key="k")
        assert second.id == first.id != other.id, "unique per agent"
        assert await second.reply() == "re: x"
        assert recorder.started == ["x"]


class Failing:
    """An agent that fails until it is mended."""

    def __init__(self) -> None:
        self.calls = 0
        self.mended = False

    async def __call__(self, turn: Turn) -> str:
        self.calls += 1
        if not self.mended:
            raise ValueError("broken")
        return "mended"


@virtual_time
async def test_d6_a_failed_key_is_replayed_by_default_and_retried_if_asked() -> None:
    failing = Failing()
    hw = Headway()
    hw.agent("a")(failing)
    async with hw:
        with pytest.raises(RunFailed):
            await hw.send("a", "x", idempotency_key="k")
        failing.mended = True
        with pytest.raises(RunFailed):
            await hw.send("a", "x", idempotency_key="k")
        assert await hw.send("a", "x", idempotency_key="k", on_repeat="retry") == "mended"
        assert await hw.send("a", "x", idempotency_key="k", on_repeat="retry") == "mended"
        assert failing.calls == 2, "what has succeeded is never run again"


@virtual_time
async def test_d6_two_submissions_of_a_key_at_once_make_one_run() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        replies = await asyncio.gather(*(hw.send("a", "x", idempotency_key="k") for _ in range(20)))
        assert replies == ["re: x"] * 20
        assert recorder.started == ["x"]


@virtual_time
async def test_d6_a_key_outlives_the_result_of_its_task() -> None:
    """Keys are kept 24 h, results of tasks 300 s: in between the work is not done twice."""
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        first = await hw.submit("a", "x", source="task", idempotency_key="k")
        await first.wait()
        for number in range(3):
            await asyncio.sleep(600)
            await hw.send("a", "another", source="task", session=f"s{number}")
        again = await hw.submit("a", "x", source="task", idempotency_key="k")
        assert again.id == first.id
        assert await again.reply() == "re: x"
        assert recorder.started.count("x") == 1
