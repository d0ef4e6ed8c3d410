"""S-6: how many messages may wait in a session, and who gives way."""

import asyncio

import pytest

from headway import Handle, Headway, QueueDropped, QueueFull, Turn
from headway.testing import virtual_time
from tests.unit.runtime.worlds import (
    CHAT,
    OTHER_CHAT,
    Recorder,
    ask,
    each,
    ending,
    endings,
    moment,
    with_agents,
)


async def _crowd(hw: Headway, count: int, **options: object) -> list[Handle]:
    """One running message, then so many that want to wait."""
    await hw.submit("a", "running", session="s")
    await moment()
    return [await ask(hw, "a", text, {"session": "s", **options}) for text in each(count)]


@virtual_time
async def test_s6_ten_may_wait_by_default_and_the_running_one_does_not_count() -> None:
    recorder = Recorder(takes=0.1)
    async with with_agents(recorder) as hw:
        handles = await _crowd(hw, 10)
        assert await endings(*handles) == ["done"] * 10
        assert recorder.started == ["running", *each(10)]


@virtual_time
async def test_s6_drop_old_lets_the_oldest_waiting_give_way() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = await _crowd(hw, 5, cap=3)
        assert await endings(*handles) == ["cancelled/queue_dropped"] * 2 + ["done"] * 3
        with pytest.raises(QueueDropped):
            await handles[0].reply()
        assert recorder.started == ["running", "m3", "m4", "m5"]


@virtual_time
async def test_s6_the_dropped_are_told_at_once() -> None:
    async with with_agents(Recorder()) as hw:
        handles = await _crowd(hw, 2, cap=1)
        await moment()
        assert ending(handles[0].outcome) == "cancelled/queue_dropped"


@virtual_time
async def test_s6_drop_new_refuses_the_new_one() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = await _crowd(hw, 3, cap=3, drop="new")
        with pytest.raises(QueueFull) as refusal:
            await hw.send("a", "m4", session="s", cap=3, drop="new")
        assert ending(refusal.value.outcome) == "rejected/queue_full"
        assert await endings(*handles) == ["done"] * 3
        assert recorder.started == ["running", *each(3)]


@virtual_time
async def test_s6_summarize_with_cap_3_and_five_messages() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = await _crowd(hw, 5, cap=3, drop="summarize")
        assert await endings(*handles) == ["cancelled/queue_dropped"] * 2 + ["done"] * 3
        noted, plain, last = recorder.turns[1:]
        assert noted.overflow == ("m1", "m2")
        assert noted.text.endswith("\nm3"), "the note never swallows the message itself"
        assert "- m1\n- m2" in noted.text
        assert noted.run.text == "m3"
        assert (plain.text, plain.overflow) == ("m4", ())
        assert (last.text, last.overflow) == ("m5", ())


@virtual_time
async def test_s6_each_dropped_message_gives_one_short_line() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await hw.submit("a", "running", session="s")
        long = "word " * 1000
        for text in ("two\nlines  here", long, "last"):
            await hw.submit("a", text, session="s", cap=1, drop="summarize")
        await asyncio.sleep(5)
        first, second = recorder.turns[1].overflow
        assert first == "two lines here"
        assert second.startswith("word word")
        assert len(second) <= 160


@virtual_time
async def test_s6_a_flood_keeps_a_bounded_note_that_counts_the_rest() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await _crowd(hw, 101, cap=1, drop="summarize")
        await asyncio.sleep(5)
        overflow = recorder.turns[1].overflow
        assert len(overflow) <= 51
        assert overflow[0] == "(50 older messages)"
        assert overflow[-1] == "m100"
        assert recorder.turns[1].run.text == "m101"


@virtual_time
async def test_s6_the_note_waits_for_the_next_message_not_for_a_task() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await hw.submit("a", "running", session="s")
        await hw.submit("a", "task", session="s", source="task")
        *_, last = [
            await hw.submit("a", text, session="s", cap=1, drop="summarize")
            for text in ("dropped", "kept")
        ]
        await last.wait()
        assert [turn.overflow for turn in recorder.turns] == [(), (), ("dropped",)]


@virtual_time
async def test_s6_stopall_forgets_the_note() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await _crowd(hw, 3, cap=1, drop="summarize")
        await hw.stop_all("s")
        await hw.send("a", "fresh", session="s")
        assert recorder.turns[-1].text == "fresh"


@virtual_time
async def test_s6_the_note_is_seen_again_by_the_next_attempt_of_its_run() -> None:
    seen: list[tuple[str, ...]] = []
    recorder = Recorder()
    hw = with_agents(recorder)

    @hw.before
    def fail_first(turn: Turn) -> None:
        seen.append(turn.overflow)
        if turn.run.text == "m2" and turn.attempt == 1:
            raise ValueError("try again")

    async with hw:
        handles = await _crowd(hw, 2, cap=1, drop="summarize", retries=1)
        await endings(*handles)
        assert seen == [(), ("m1",), ("m1",)]


@virtual_time
async def test_s6_tasks_and_firings_do_not_count() -> None:
    recorder = Recorder(takes=0.1)
    async with with_agents(recorder) as hw:
        await hw.submit("a", "running", session="s")
        others = [
            await hw.submit("a", "other", session="s", source=source)
            for source in ("task", "firing", "heartbeat")
            for _ in range(3)
        ]
        messages = [await hw.submit("a", text, session="s", cap=2) for text in each(2)]
        assert await endings(*others, *messages) == ["done"] * 11


@virtual_time
async def test_s6_a_retried_message_is_never_dropped_to_make_room() -> None:
    recorder = Recorder()
    hw = with_agents(recorder)

    async def flaky(turn: Turn) -> str:
        raise ValueError

    hw.agent("flaky")(flaky)
    async with hw:
        first = await hw.submit("flaky", "x", session="s", retries=1)
        await moment()
        *_, last = [await hw.submit("a", text, session="s", cap=1) for text in each(3)]
        await endings(first, last)
        assert ending(first.outcome) == "failed/error"
        assert recorder.started == ["m3"]


@virtual_time
async def test_s7_an_idle_session_never_drops_while_debouncing() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = [
            await hw.submit("a", text, session="s", debounce="1s", cap=1) for text in each(5)
        ]
        told = [await handle.wait() for handle in handles]
        assert {outcome.text for outcome in told} == {"re: m1\nm2\nm3\nm4\nm5"}


@virtual_time
async def test_s6_a_window_that_closes_on_a_full_queue_makes_room_by_the_rule() -> None:
    recorder = Recorder(takes=5)
    async with with_agents(recorder) as hw:
        await _crowd(hw, 1)
        late = await hw.submit("a", "late", session="s", route=CHAT, cap=1)
        await late.wait()
        assert recorder.started == ["running", "late"]


@virtual_time
async def test_s6_drop_new_after_the_window_tells_the_caller_of_the_new_one() -> None:
    recorder = Recorder(takes=5)
    async with with_agents(recorder) as hw:
        await hw.submit("a", "running", session="s")
        options = {"session": "s", "cap": 1, "drop": "new", "debounce": "1s"}
        one = await ask(hw, "a", "one", {"route": CHAT, **options})
        two = await ask(hw, "a", "two", {"route": OTHER_CHAT, **options})
        assert await endings(one, two) == ["done", "cancelled/queue_dropped"]


@virtual_time
async def test_s6_drop_new_for_a_message_that_joins_an_open_window_of_a_changed_session() -> None:
    """The window was opened under other options; whatever wins, the caller is answered."""
    async with with_agents(Recorder(takes=5)) as hw:
        await _crowd(hw, 1)
        opened = await hw.submit("a", "opened", session="s", route=CHAT)
        await hw.set_queue("s", cap=1, drop="new", debounce=0)
        try:
            late = await hw.submit("a", "late", session="s", route=CHAT)
        except QueueFull:
            pass
        else:
            assert (await late.wait()).reason == "queue_dropped"
        await opened.wait()
