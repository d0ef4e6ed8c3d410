"""S-7: rapid messages of one sender on one route become one run."""

import asyncio

import pytest

from headway import Attachment, QueueSettings, Sender, SessionBusy, Turn
from headway.model.events import RunsMerged
from headway.model.time import SECOND
from headway.testing import virtual_time
from tests.unit.runtime.worlds import (
    ANN,
    BOB,
    CHAT,
    OTHER_CHAT,
    Recorder,
    ending,
    endings,
    hear,
    moment,
    now_s,
    only,
    outcomes,
    with_agents,
)


@virtual_time
async def test_s7_rapid_messages_become_one_run_and_every_caller_gets_its_reply() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        heard = hear(hw)
        handles = []
        for text in ("one", "two", "three"):
            handles.append(await hw.submit("a", text, session="s", route=CHAT, sender=ANN))
            await asyncio.sleep(0.3)
        told = await outcomes(*handles)
        assert recorder.started == ["one\ntwo\nthree"]
        assert recorder.started_at == pytest.approx([0.6 + 0.8])
        assert [outcome.text for outcome in told] == ["re: one\ntwo\nthree"] * 3
        (merged,) = only(heard, RunsMerged)
        assert merged.parts == tuple(handle.id for handle in handles)
        for handle in handles:
            assert ending(handle.outcome) == "cancelled/merged"
            assert handle.outcome is not None
            assert handle.outcome.into == merged.run_id
            assert ending((await hw.run(handle)).outcome) == "cancelled/merged"
        assert (await hw.run(merged.run_id)).run.merged_from == merged.parts


@virtual_time
async def test_s7_a_single_message_keeps_its_own_id() -> None:
    async with with_agents(Recorder()) as hw:
        handle = await hw.submit("a", "alone", session="s", route=CHAT)
        assert await handle.reply() == "re: alone"
        assert ending(handle.outcome) == "done"


@virtual_time
async def test_s7_attachments_stay_in_order() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        *_, last = [
            await hw.submit(
                "a", text, session="s", route=CHAT, attachments=[Attachment(name) for name in names]
            )
            for text, names in (("one", "ab"), ("", "c"), ("three", ""))
        ]
        await last.wait()
        turn = recorder.turns[0]
        assert turn.text == "one\nthree"
        assert [attachment.name for attachment in turn.attachments] == ["a", "b", "c"]


@virtual_time
async def test_s7_a_message_every_100_ms_for_10_s_never_starves() -> None:
    recorder = Recorder(takes=0)
    async with with_agents(recorder) as hw:
        for number in range(100):
            await hw.submit("a", str(number), session="s", route=CHAT)
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        assert recorder.started_at == pytest.approx([4.0, 8.0, 10.7], abs=0.11)
        spoken = "\n".join(recorder.started).split("\n")
        assert spoken == [str(number) for number in range(100)], (
            "nothing lost, nothing out of order"
        )


@virtual_time
async def test_s7_the_window_restarts_with_each_message() -> None:
    recorder = Recorder(takes=0)
    async with with_agents(recorder) as hw:
        await hw.submit("a", "one", session="s", debounce="1s")
        await asyncio.sleep(0.9)
        last = await hw.submit("a", "two", session="s", debounce="1s")
        await last.wait()
        assert recorder.started_at == pytest.approx([1.9])


@virtual_time
async def test_s7_different_senders_and_routes_stay_apart() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = [
            await hw.submit("a", text, session="s", route=route, sender=sender)
            for text, route, sender in (
                ("ann here", CHAT, ANN),
                ("bob here", CHAT, BOB),
                ("ann there", OTHER_CHAT, ANN),
                ("ann again", CHAT, ANN),
                ("ann as guest", CHAT, Sender("ann", "guest")),
            )
        ]
        await endings(*handles)
        assert sorted(recorder.started) == [
            "ann as guest",
            "ann here\nann again",
            "ann there",
            "bob here",
        ]
        assert recorder.most == 1


@virtual_time
async def test_s7_the_library_does_not_debounce_unless_asked() -> None:
    recorder = Recorder(takes=0)
    async with with_agents(recorder) as hw:
        await hw.send("a", "one", session="s")
        assert now_s() == 0


@virtual_time
async def test_s7_the_window_is_a_setting() -> None:
    recorder = Recorder(takes=0)
    queue = QueueSettings(debounce=3 * SECOND)
    async with with_agents(recorder, queue=queue, debounce_limit=2) as hw:
        for _ in range(8):
            await hw.submit("a", "x", session="s", route=CHAT)
            await asyncio.sleep(1)
        await asyncio.sleep(3)
        assert recorder.started_at == pytest.approx([6, 10])


@virtual_time
async def test_s7_tasks_and_firings_are_never_debounced() -> None:
    recorder = Recorder(takes=0)
    async with with_agents(recorder) as hw:
        for source in ("task", "firing", "heartbeat"):
            await hw.send("a", source, source=source, session="s", debounce="10s")
        assert now_s() == 0


@virtual_time
async def test_s7_finishing_a_run_does_not_start_the_window_again() -> None:
    recorder = Recorder(takes=5)
    async with with_agents(recorder) as hw:
        await hw.submit("a", "first", session="s")
        second = await hw.submit("a", "second", session="s", route=CHAT)
        await second.wait()
        assert recorder.started_at == pytest.approx([0, 5])


@virtual_time
async def test_s7_interrupt_acts_when_the_window_closes() -> None:
    recorder = Recorder(takes=10)
    async with with_agents(recorder) as hw:
        old = await hw.submit("a", "old", session="s")
        await asyncio.sleep(1)
        one = await hw.submit("a", "one", session="s", route=CHAT, mode="interrupt")
        await asyncio.sleep(0.5)
        assert recorder.cancelled == []
        two = await hw.submit("a", "two", session="s", route=CHAT, mode="interrupt")
        await old.wait()
        assert now_s() == pytest.approx(2.3)
        assert [outcome.text for outcome in await outcomes(one, two)] == ["re: one\ntwo"] * 2


@virtual_time
async def test_s7_reject_acts_at_arrival() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.submit("a", "old", session="s")
        await moment()
        with pytest.raises(SessionBusy):
            await hw.submit("a", "new", session="s", route=CHAT, mode="reject")
        assert now_s() == 0


@virtual_time
async def test_s7_a_message_cancelled_in_its_window_leaves_the_others() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = [await hw.submit("a", text, session="s", route=CHAT) for text in "xyz"]
        assert str(await handles[1].cancel()) == "1 waiting stopped"
        await endings(*handles)
        assert recorder.started == ["x\nz"]
        assert ending(handles[1].outcome) == "cancelled/stopped"


@virtual_time
async def test_s7_a_window_emptied_by_cancelling_closes_and_leaves_nothing() -> None:
    async with with_agents(Recorder()) as hw:
        handle = await hw.submit("a", "x", session="s", route=CHAT)
        await handle.cancel()
        await moment()
        assert hw.sessions() == {}
        assert await hw.send("a", "y", session="s", debounce=0) == "re: y"


@virtual_time
async def test_s7_an_emptied_window_does_not_close_the_next_one_early() -> None:
    recorder = Recorder(takes=0)
    async with with_agents(recorder) as hw:
        handle = await hw.submit("a", "x", session="s", debounce="1s")
        await asyncio.sleep(0.5)
        await handle.cancel()
        await hw.send("a", "y", session="s", debounce="1s")
        assert recorder.started_at == pytest.approx([1.5])


@virtual_time
async def test_s7_a_deadline_can_pass_inside_the_window() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handle = await hw.submit("a", "x", session="s", debounce="10s", deadline="2s")
        assert ending(await handle.wait()) == "failed/deadline_queued"
        assert now_s() == pytest.approx(2)
        await asyncio.sleep(20)
        assert recorder.started == []


@virtual_time
async def test_s7_output_of_the_merged_run_streams_to_every_caller() -> None:
    hw = with_agents(Recorder())

    @hw.agent("talker")
    async def talker(turn: Turn) -> str:
        for word in ("a", "b"):
            turn.emit(word)
            await asyncio.sleep(1)
        return "done"

    async with hw:
        handles = [await hw.submit("talker", text, session="s", debounce="1s") for text in "xy"]

        async def pieces(number: int) -> list[str]:
            return [piece async for piece in handles[number].stream()]

        assert list(await asyncio.gather(pieces(0), pieces(1))) == [["a", "b"]] * 2


@virtual_time
async def test_s7_why_tells_until_when_the_window_is_open() -> None:
    async with with_agents(Recorder()) as hw:
        handle = await hw.submit("a", "x", session="s", debounce="2s")
        why = await hw.why(handle)
        assert why.rule == "debounce"
        assert why.until == (await hw.run(handle)).run.submitted_at + 2 * SECOND
