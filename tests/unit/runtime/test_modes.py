"""The modes of S: what a message does while its session is busy."""

import asyncio

import msgspec
import pytest

from headway import Mode, QueueSettings, Sender, SessionBusy, Turn
from headway.model.events import AttemptAbandoned, LateResult, RunsMerged
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
    quick_queue,
    with_agents,
)


@pytest.mark.parametrize("mode", list(Mode))
def test_s_an_idle_session_simply_runs_the_message_whatever_the_mode(mode: Mode) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            assert await hw.send("a", "x", session="s", mode=mode) == "re: x"
            assert now_s() == pytest.approx(1)

    main()


@pytest.mark.parametrize("mode", ["queue", "followup"])
def test_s_queue_and_followup_wait_their_turn(mode: str) -> None:
    @virtual_time
    async def main() -> None:
        recorder = Recorder()
        async with with_agents(recorder) as hw:
            handles = [await hw.submit("a", text, session="s", mode=mode) for text in "abc"]
            assert await endings(*handles) == ["done"] * 3
            assert recorder.started_at == pytest.approx([0, 1, 2])

    main()


@virtual_time
async def test_s_reject_refuses_at_once_while_busy() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await hw.submit("a", "one", session="s")
        with pytest.raises(SessionBusy) as refusal:
            await hw.send("a", "two", session="s", mode="reject")
        assert now_s() == 0
        assert ending(refusal.value.outcome) == "rejected/rejected_busy"
        await asyncio.sleep(2)
        assert await hw.send("a", "three", session="s", mode="reject") == "re: three"
        assert recorder.started == ["one", "three"]


@virtual_time
async def test_s_reject_looks_at_the_width_of_the_session() -> None:
    async with with_agents(Recorder()) as hw:
        for text in ("one", "two"):
            await hw.submit("a", text, session="s", mode="reject", max_concurrent=2)
        with pytest.raises(SessionBusy):
            await hw.submit("a", "three", session="s", mode="reject", max_concurrent=2)


@virtual_time
async def test_s_interrupt_cancels_the_running_one_and_supersedes_the_waiting() -> None:
    recorder = Recorder(takes=10)
    async with with_agents(recorder) as hw:
        running = await hw.submit("a", "running", session="s")
        waiting = [await hw.submit("a", text, session="s") for text in ("one", "two")]
        await asyncio.sleep(1)
        new = await hw.submit("a", "new", session="s", mode="interrupt")
        assert await endings(running, *waiting) == ["cancelled/superseded"] * 3
        assert now_s() == pytest.approx(1)
        assert await new.reply() == "re: new"
        assert recorder.started_at == pytest.approx([0, 1])


@virtual_time
async def test_s_interrupt_waits_for_a_function_that_ignores_its_cancellation_for_two_seconds() -> (
    None
):
    recorder = Recorder(takes=10, deaf=2)
    async with with_agents(recorder) as hw:
        old = await hw.submit("a", "old", session="s")
        await asyncio.sleep(1)
        new = await hw.submit("a", "new", session="s", mode="interrupt")
        assert await endings(old, new) == ["cancelled/superseded", "done"]
        assert recorder.started_at == pytest.approx([0, 3])
        assert recorder.most == 1


@virtual_time
async def test_s_interrupt_past_the_grace_abandons_the_old_one_and_fences_its_result() -> None:
    recorder = Recorder(takes=10, deaf=30)
    async with with_agents(recorder) as hw:
        heard = hear(hw)
        old = await hw.submit("a", "old", session="s")
        await asyncio.sleep(1)
        new = await hw.submit("a", "new", session="s", mode="interrupt")
        await old.wait()
        assert now_s() == pytest.approx(11)
        assert [event.run_id for event in only(heard, AttemptAbandoned)] == [old.id]
        assert await new.reply() == "re: new"
        assert recorder.started_at == pytest.approx([0, 11])
        await asyncio.sleep(30)
        assert [event.run_id for event in only(heard, LateResult)] == [old.id]
        assert ending(old.outcome) == "cancelled/superseded"
        assert recorder.turns[0].fence < recorder.turns[1].fence


@virtual_time
async def test_s_the_last_of_many_interrupts_is_never_lost() -> None:
    recorder = Recorder(takes=10, deaf=2)
    async with with_agents(recorder) as hw:
        handles = [await hw.submit("a", "0", session="s")]
        for number in range(1, 6):
            await asyncio.sleep(0.3)
            handles.append(await hw.submit("a", str(number), session="s", mode="interrupt"))
        assert await endings(*handles) == ["cancelled/superseded"] * 5 + ["done"]
        assert recorder.started == ["0", "5"]


@virtual_time
async def test_s_a_message_due_later_acts_by_its_mode_when_it_becomes_due() -> None:
    recorder = Recorder(takes=10)
    async with with_agents(recorder) as hw:
        old = await hw.submit("a", "old", session="s")
        new = await hw.submit("a", "new", session="s", mode="interrupt", due="5s")
        await asyncio.sleep(4)
        assert recorder.cancelled == []
        assert await endings(old, new) == ["cancelled/superseded", "done"]
        assert recorder.started_at == pytest.approx([0, 5])


@virtual_time
async def test_s_a_task_due_later_waits_its_turn_whatever_the_mode() -> None:
    recorder = Recorder(takes=10)
    async with with_agents(recorder) as hw:
        await hw.set_queue("s", mode="interrupt", debounce="1s")
        old = await hw.submit("a", "old", session="s", debounce=0)
        task = await hw.submit("a", "task", session="s", source="task", due="5s")
        assert await endings(old, task) == ["done", "done"]
        assert recorder.started_at == pytest.approx([0, 10])


@virtual_time
async def test_s_interrupt_leaves_tasks_and_firings_their_turn() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await hw.submit("a", "running", session="s")
        await moment()
        firing = await hw.submit("a", "firing", session="s", source="firing")
        new = await hw.submit("a", "new", session="s", mode="interrupt")
        assert await endings(firing, new) == ["done", "done"]
        assert recorder.started == ["running", "new", "firing"]


@virtual_time
async def test_s_interrupt_cancels_all_running_ones_of_a_wide_session() -> None:
    recorder = Recorder(takes=10)
    async with with_agents(recorder) as hw:
        old = [await hw.submit("a", text, session="s", max_concurrent=2) for text in "xy"]
        await asyncio.sleep(1)
        new = await hw.submit("a", "new", session="s", mode="interrupt", max_concurrent=2)
        assert await endings(*old, new) == ["cancelled/superseded"] * 2 + ["done"]


@virtual_time
async def test_s_interrupt_reaches_what_the_interrupted_turn_had_started() -> None:
    """A superseded turn's sub-runs work for nobody; X-3 takes descendants along."""
    leaf = Recorder(takes=100)
    hw = with_agents(leaf)

    async def parent(turn: Turn) -> str:
        return await turn.delegate("a", "child")

    hw.agent("parent")(parent)
    async with hw:
        await hw.submit("parent", "old", session="s")
        await asyncio.sleep(1)
        await hw.submit("a", "new", session="s", mode="interrupt", timeout="1s")
        await asyncio.sleep(5)
        assert leaf.cancelled[:1] == ["child"]
        assert hw.lanes()["subagent"].running == 0


@virtual_time
async def test_s_collect_merges_what_waits_once_the_running_one_has_ended() -> None:
    recorder = Recorder(takes=2)
    async with with_agents(recorder) as hw:
        heard = hear(hw)
        first = await hw.submit("a", "first", session="s", mode="collect")
        parts = [await hw.submit("a", text, session="s", mode="collect") for text in "xyz"]
        told = await outcomes(first, *parts)
        assert recorder.started == ["first", "x\ny\nz"]
        assert recorder.started_at == pytest.approx([0, 2])
        assert [outcome.text for outcome in told] == ["re: first", *["re: x\ny\nz"] * 3]
        merged = only(heard, RunsMerged)
        assert [event.parts for event in merged] == [tuple(part.id for part in parts)]
        assert {ending(part.outcome) for part in parts} == {"cancelled/merged"}
        assert {part.outcome.into for part in parts if part.outcome} == {merged[0].run_id}


@virtual_time
async def test_s_collect_waits_for_a_quiet_window_from_the_last_arrival() -> None:
    recorder = Recorder(takes=5, spans={"x\ny": 1})
    async with with_agents(recorder) as hw:
        await hw.submit("a", "first", session="s")
        await asyncio.sleep(2)
        await hw.submit(
            "a", "x", session="s", mode="collect", debounce="4s", route=CHAT, sender=ANN
        )
        await asyncio.sleep(2)
        last = await hw.submit(
            "a", "y", session="s", mode="collect", debounce="4s", route=CHAT, sender=ANN
        )
        await last.wait()
        assert recorder.started == ["first", "x\ny"]
        assert recorder.started_at == pytest.approx([0, 8]), "4 s after y came at 4"


@virtual_time
async def test_s_collect_waits_for_others_whose_words_may_still_be_merged() -> None:
    """The running turn ends at 5 s, but the last message came at 3 s: it is quiet at 7 s."""
    recorder = Recorder(takes=5)
    carl = Sender("carl", "owner")
    async with with_agents(
        recorder, queue=QueueSettings(mode=Mode.COLLECT, debounce=4 * SECOND)
    ) as hw:
        await hw.submit("a", "first", session="s")
        await hw.submit("a", "x", session="s", route=CHAT, sender=ANN)
        await asyncio.sleep(3)
        last = await hw.submit("a", "y", session="s", route=CHAT, sender=carl)
        await last.wait()
        assert recorder.started == ["first", "x\ny"]
        assert recorder.started_at == pytest.approx([0, 7])


@virtual_time
async def test_s_collect_with_a_steady_stream_of_many_senders_does_not_starve() -> None:
    """The quiet window has the bound of the debounce window: five times its setting."""
    recorder = Recorder(takes=1)
    async with with_agents(
        recorder, queue=QueueSettings(mode=Mode.COLLECT, debounce=2 * SECOND)
    ) as hw:
        await hw.submit("a", "first", session="s")
        for number in range(40):
            sender = Sender(f"guest {number}")
            await hw.submit("a", str(number), session="s", route=CHAT, sender=sender)
            await asyncio.sleep(1)
        await asyncio.sleep(20)
        assert recorder.started_at[1] <= 12
        spoken = "\n".join(recorder.started[1:]).split("\n")
        assert spoken == [str(number) for number in range(40)]


@virtual_time
async def test_s_collect_with_routes_a_b_b_b() -> None:
    recorder = Recorder()
    async with with_agents(recorder, queue=quick_queue(mode=Mode.COLLECT)) as hw:
        await hw.submit("a", "first", session="s")
        routes = [CHAT, OTHER_CHAT, OTHER_CHAT, OTHER_CHAT]
        handles = [
            await hw.submit("a", f"m{number}", session="s", route=route)
            for number, route in enumerate(routes, 1)
        ]
        await endings(*handles)
        assert recorder.started == ["first", "m1", "m2\nm3\nm4"]
        assert recorder.turns[2].route == OTHER_CHAT


@virtual_time
async def test_s_collect_with_routes_a_b_a_stays_three_turns_in_order() -> None:
    recorder = Recorder()
    async with with_agents(recorder, queue=quick_queue(mode=Mode.COLLECT)) as hw:
        await hw.submit("a", "first", session="s")
        handles = [
            await hw.submit("a", text, session="s", route=route)
            for text, route in (("m1", CHAT), ("m2", OTHER_CHAT), ("m3", CHAT))
        ]
        assert await endings(*handles) == ["done"] * 3
        assert recorder.started == ["first", "m1", "m2", "m3"]


@virtual_time
async def test_s_collect_never_merges_words_of_different_authority() -> None:
    recorder = Recorder()
    carl = Sender("carl", "owner")
    async with with_agents(recorder, queue=quick_queue(mode=Mode.COLLECT)) as hw:
        await hw.submit("a", "first", session="s")
        *_, last = [
            await hw.submit("a", text, session="s", route=CHAT, sender=sender)
            for text, sender in (("m1", ANN), ("m2", carl), ("m3", BOB), ("m4", BOB))
        ]
        await last.wait()
        assert recorder.started == ["first", "m1\nm2", "m3\nm4"], "same authority, other person"


@pytest.mark.parametrize("field", ["channel", "account", "peer", "thread"])
def test_s_collect_never_merges_what_differs_in(field: str) -> None:
    @virtual_time
    async def main() -> None:
        recorder = Recorder()
        elsewhere = msgspec.structs.replace(CHAT, **{field: "other"})
        async with with_agents(recorder, queue=quick_queue(mode=Mode.COLLECT)) as hw:
            await hw.submit("a", "first", session="s")
            handles = [
                await hw.submit("a", text, session="s", route=route)
                for text, route in (("m1", CHAT), ("m2", elsewhere))
            ]
            await endings(*handles)
            assert recorder.started == ["first", "m1", "m2"]

    main()


@virtual_time
async def test_s_collect_does_not_reach_over_work_of_another_mode() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await hw.submit("a", "first", session="s")
        *_, last = [
            await hw.submit("a", text, session="s", mode=mode)
            for text, mode in (("m1", "collect"), ("m2", "queue"), ("m3", "collect"))
        ]
        await last.wait()
        assert recorder.started == ["first", "m1", "m2", "m3"]


@virtual_time
async def test_s_a_collected_turn_can_be_stopped_and_all_its_callers_are_told() -> None:
    async with with_agents(Recorder(takes=3)) as hw:
        await hw.submit("a", "first", session="s")
        parts = [await hw.submit("a", text, session="s", mode="collect") for text in "xyz"]
        await asyncio.sleep(4)
        assert str(await hw.stop("s")) == "1 running stopped"
        assert [ending(outcome) for outcome in await outcomes(*parts)] == ["cancelled/stopped"] * 3
