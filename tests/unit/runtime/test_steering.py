"""X-2: a steered message is taken by the running turn, or becomes a turn of its own; never both."""

import asyncio

import pytest

from headway import Attachment, Headway, LaneSettings, Message, State, Turn
from headway.model.events import MessageSteered
from headway.testing import virtual_time
from tests.unit.runtime.worlds import (
    ANN,
    Recorder,
    ending,
    endings,
    hear,
    moment,
    now_s,
    only,
    with_agents,
)


class Listener:
    """A steerable agent that works for `takes` seconds, hears messages until `deaf_after`.

    Its first `fail_attempts` attempts at the text `work` fail.
    """

    def __init__(self, takes: float = 10, deaf_after: float = 1e9, fail_attempts: int = 0) -> None:
        self.takes = takes
        self.deaf_after = deaf_after
        self.fail_attempts = fail_attempts
        self.turns: list[Turn] = []
        self.heard: list[tuple[str, Message]] = []

    @property
    def started(self) -> list[str]:
        return [turn.text for turn in self.turns]

    async def __call__(self, turn: Turn) -> str:
        self.turns.append(turn)
        until = now_s() + self.takes
        taken: list[str] = []
        while (left := min(until, self.deaf_after) - now_s()) > 0:
            try:
                message = await asyncio.wait_for(turn.inbox.get(), left)
            except TimeoutError:
                break
            taken.append(message.text)
            self.heard.append((turn.text, message))
        await asyncio.sleep(max(0, until - now_s()))
        if turn.text == "work" and turn.attempt <= self.fail_attempts:
            raise ValueError("failed after listening")
        return "+".join([turn.text, *taken])


def _steerable(listener: Listener, **lanes: int) -> Headway:
    hw = Headway(lanes=lanes)
    hw.agent("a", steerable=True)(listener)
    return hw


@virtual_time
async def test_x2_a_message_taken_from_the_inbox_ends_with_the_turn_and_gets_its_reply() -> None:
    listener = Listener()
    async with _steerable(listener) as hw:
        heard = hear(hw)
        turn = await hw.submit("a", "work", session="s")
        await asyncio.sleep(1)
        message = await hw.submit(
            "a", "also", session="s", mode="steer", sender=ANN, attachments=[Attachment("pic.png")]
        )
        await moment()
        assert listener.heard == [
            ("work", Message(message.id, "also", (Attachment("pic.png"),), ANN))
        ]
        assert (await hw.why(message)).rule == "steered"
        assert await turn.reply() == "work+also"
        assert await message.reply() == "work+also"
        assert ending(message.outcome) == "cancelled/merged"
        assert listener.started == ["work"]
        steered = only(heard, MessageSteered)
        assert [(event.message, event.into) for event in steered] == [(message.id, turn.id)]


@virtual_time
async def test_x2_several_messages_are_taken_in_order() -> None:
    listener = Listener()
    async with _steerable(listener) as hw:
        turn = await hw.submit("a", "work", session="s")
        await moment()
        for text in ("one", "two", "three"):
            await hw.submit("a", text, session="s", mode="steer")
        assert await turn.reply() == "work+one+two+three"


@virtual_time
async def test_x2_a_message_that_was_not_taken_becomes_a_turn_of_its_own() -> None:
    listener = Listener(takes=5, deaf_after=0)
    async with _steerable(listener) as hw:
        first = await hw.submit("a", "work", session="s")
        before = await hw.submit("a", "queued before", session="s")
        message = await hw.submit("a", "also", session="s", mode="steer")
        assert await endings(first, before, message) == ["done"] * 3
        assert listener.started == ["work", "queued before", "also"]
        assert listener.heard == []


@virtual_time
async def test_x2_a_message_keeps_its_place_in_the_queue_while_it_is_offered() -> None:
    listener = Listener(takes=5, deaf_after=0)
    async with _steerable(listener) as hw:
        await hw.submit("a", "work", session="s")
        message = await hw.submit("a", "steers", session="s", mode="steer")
        behind = await hw.submit("a", "behind", session="s")
        await endings(message, behind)
        assert listener.started == ["work", "steers", "behind"]


@virtual_time
async def test_x2_an_unsteerable_turn_is_interrupted_by_default() -> None:
    recorder = Recorder(takes=10)
    async with with_agents(recorder) as hw:
        old = await hw.submit("a", "old", session="s")
        await asyncio.sleep(1)
        new = await hw.submit("a", "new", session="s", mode="steer")
        assert await endings(old, new) == ["cancelled/superseded", "done"]


@virtual_time
async def test_x2_an_unsteerable_turn_is_followed_up_if_so_set() -> None:
    recorder = Recorder(takes=3)
    async with with_agents(recorder) as hw:
        old = await hw.submit("a", "old", session="s")
        new = await hw.submit("a", "new", session="s", mode="steer", steer_fallback="followup")
        assert await endings(old, new) == ["done", "done"]
        assert recorder.started_at == pytest.approx([0, 3])


@virtual_time
async def test_x2_a_turn_of_another_agent_in_the_session_is_not_steered() -> None:
    listener = Listener(takes=3)
    hw = _steerable(listener)
    other = Recorder(takes=3)
    hw.agent("b")(other)
    async with hw:
        await hw.submit("b", "other's", session="s")
        message = await hw.submit("a", "mine", session="s", mode="steer", steer_fallback="followup")
        await message.wait()
        assert other.ended == ["other's"]
        assert listener.started == ["mine"]


@virtual_time
async def test_x2_what_a_failed_attempt_had_taken_becomes_a_turn_of_its_own() -> None:
    listener = Listener(takes=5, deaf_after=5, fail_attempts=1)
    async with _steerable(listener) as hw:
        turn = await hw.submit("a", "work", session="s", retries=1)
        await asyncio.sleep(1)
        message = await hw.submit("a", "also", session="s", mode="steer")
        await moment()
        assert [message.text for _, message in listener.heard] == ["also"]
        listener.deaf_after = 0
        assert await turn.reply() == "work", "the second attempt knows nothing of the message"
        assert await message.reply() == "also"
        assert listener.started == ["work", "work", "also"]
        assert ending(message.outcome) == "done"


@virtual_time
async def test_x2_what_a_preempted_attempt_had_taken_becomes_a_turn_of_its_own() -> None:
    listener = Listener(takes=5)
    hw = Headway(lanes={"main": LaneSettings(1)})
    hw.agent("a", steerable=True, preemptible=True)(listener)
    user = Recorder()
    hw.agent("user")(user)
    async with hw:
        turn = await hw.submit("a", "work", session="s", priority=10)
        await asyncio.sleep(1)
        message = await hw.submit("a", "also", session="s", mode="steer", priority=10)
        await moment()
        assert len(listener.heard) == 1
        listener.deaf_after = 0
        await hw.send("user", "hello", session="t")
        assert await turn.reply() == "work"
        assert await message.reply() == "also"
        assert listener.started == ["work", "work", "also"]


@virtual_time
async def test_x2_a_turn_that_fails_for_good_takes_its_messages_with_it() -> None:
    listener = Listener(takes=5, fail_attempts=9)
    async with _steerable(listener) as hw:
        turn = await hw.submit("a", "work", session="s")
        await asyncio.sleep(1)
        message = await hw.submit("a", "also", session="s", mode="steer")
        assert ending(await turn.wait()) == "failed/error"
        assert ending(await message.wait()) == "failed/error"
        assert ending(message.outcome) == "cancelled/merged"
        assert listener.started == ["work"]


@virtual_time
async def test_x2_a_message_cancelled_while_offered_leaves_the_inbox() -> None:
    taken: list[Message | None] = []
    hw = Headway()

    @hw.agent("a", steerable=True)
    async def agent(turn: Turn) -> str:
        await asyncio.sleep(5)
        taken.append(turn.inbox.poll())
        return "done"

    async with hw:
        turn = await hw.submit("a", "work", session="s")
        await moment()
        message = await hw.submit("a", "also", session="s", mode="steer")
        await asyncio.sleep(1)
        assert (await message.cancel()).waiting == 1
        await turn.wait()
        assert taken == [None]
        assert ending(message.outcome) == "cancelled/stopped"


@virtual_time
async def test_x2_a_message_already_taken_is_not_cancelled_any_more() -> None:
    """The answer agrees with what happens (R-2): nothing was stopped."""
    listener = Listener(takes=5)
    async with _steerable(listener) as hw:
        await hw.submit("a", "work", session="s")
        await moment()
        message = await hw.submit("a", "also", session="s", mode="steer")
        await asyncio.sleep(1)
        assert (await message.cancel()).nothing
        assert await message.reply() == "work+also"


@virtual_time
async def test_x2_the_deadline_of_a_message_does_not_matter_once_it_is_taken() -> None:
    listener = Listener(takes=5)
    async with _steerable(listener) as hw:
        await hw.submit("a", "work", session="s")
        await moment()
        message = await hw.submit("a", "also", session="s", mode="steer", deadline="2s")
        assert await message.reply() == "work+also"
        assert now_s() == pytest.approx(5)


@virtual_time
async def test_x2_the_deadline_of_a_message_counts_while_it_is_only_offered() -> None:
    listener = Listener(takes=5, deaf_after=0)
    async with _steerable(listener) as hw:
        await hw.submit("a", "work", session="s")
        await moment()
        message = await hw.submit("a", "also", session="s", mode="steer", deadline="2s")
        assert ending(await message.wait()) == "failed/deadline_queued"
        assert now_s() == pytest.approx(2)


@virtual_time
async def test_x2_a_stopped_turn_cannot_take_a_message_any_more() -> None:
    taken: list[Message | None] = []
    hw = Headway()

    @hw.agent("a", steerable=True)
    async def agent(turn: Turn) -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            taken.append(turn.inbox.poll())
            raise
        return turn.text

    async with hw:
        turn = await hw.submit("a", "work", session="s")
        await moment()
        message = await hw.submit("a", "also", session="s", mode="steer")
        await asyncio.sleep(1)
        await turn.cancel()
        assert await message.reply() == "also"
        assert taken == [None]


@virtual_time
async def test_x2_poll_gives_what_is_there_and_get_waits() -> None:
    seen: list[object] = []
    hw = Headway()

    @hw.agent("a", steerable=True)
    async def agent(turn: Turn) -> str:
        seen.append(turn.inbox.poll())
        seen.append((await turn.inbox.get()).text)
        seen.append(now_s())
        return "done"

    async with hw:
        handle = await hw.submit("a", "work", session="s")
        await asyncio.sleep(3)
        await hw.submit("a", "also", session="s", mode="steer")
        await handle.wait()
        assert seen == [None, "also", pytest.approx(3)]


@virtual_time
async def test_x2_a_steered_message_in_its_debounce_window_arrives_when_it_closes() -> None:
    listener = Listener(takes=5)
    async with _steerable(listener) as hw:
        turn = await hw.submit("a", "work", session="s")
        await moment()
        parts = [
            await hw.submit("a", text, session="s", mode="steer", debounce="1s")
            for text in ("one", "two")
        ]
        assert await turn.reply() == "work+one\ntwo"
        assert [(await part.wait()).text for part in parts] == ["work+one\ntwo"] * 2


@virtual_time
async def test_x2_stop_reaches_a_turn_that_holds_a_message() -> None:
    listener = Listener(takes=5)
    async with _steerable(listener) as hw:
        turn = await hw.submit("a", "work", session="s")
        await moment()
        message = await hw.submit("a", "also", session="s", mode="steer")
        await asyncio.sleep(1)
        await hw.stop_all("s")
        assert ending(await turn.wait()) == "cancelled/stopped"
        assert ending(await message.wait()) == "cancelled/stopped"
        assert (await hw.run(message)).state is State.CANCELLED
        assert hw.sessions() == {}
