"""What goes out: replies of firings, the empty message of a cancel, dead letters, and typing (C-1, S-10, D)."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from headway import Delivery, Headway, Permanent, Reason, Route, State, Turn
from headway.model.events import CallbackFailed, DeliveryFailed
from tests.unit.runtime.times import (
    Diary,
    Mailbox,
    log_of,
    now,
    program,
    quiet,
    starting,
    until,
    when,
)
from tests.unit.runtime.worlds import hear, only

CHAT = Route("chat", account="bot", peer="42", thread="7")


class Window:
    """A channel with a window in which one sees who is typing."""

    def __init__(self) -> None:
        self.got: list[Delivery] = []
        self.seen: list[tuple[datetime, bool]] = []
        self.error: Exception | None = None

    async def send(self, delivery: Delivery) -> None:
        self.got.append(delivery)
        if self.error is not None:
            raise self.error

    async def typing(self, route: Route, on: bool) -> None:
        assert route == CHAT
        self.seen.append((now(), on))


@starting("2026-01-01 12:00")
async def test_c1_the_reply_of_a_firing_goes_where_its_job_says() -> None:
    diary = Diary(takes_s=3)
    mailbox = Mailbox()
    hw = program(diary)
    hw.channel("chat")(mailbox)
    async with hw:
        deliver = {"channel": "chat", "to": "42", "thread": "7", "account": "bot"}
        await hw.jobs.add("d", "a", every="1h", text="news?", deliver=deliver)
        await hw.jobs.add("n", "a", every="1h", text="quiet")
        await until("2026-01-01 14:01")
        assert mailbox.texts == ["re: news?"] * 2
        assert mailbox.at == [when(f"2026-01-01 {hour}:00:03") for hour in (13, 14)]
        assert {delivery.route for delivery in mailbox.got} == {CHAT}
        assert len({delivery.id for delivery in mailbox.got}) == 2
        assert {turn.route for turn in diary.turns if turn.text == "news?"} == {CHAT}


@starting("2026-01-01 12:00")
async def test_c9_retries_are_invisible_only_the_final_outcome_is_delivered() -> None:
    mailbox = Mailbox()
    hw = program(Diary())

    @hw.agent("shaky")
    async def shaky(turn: Turn) -> str:
        if turn.attempt < 3:
            raise OSError("busy")
        return "at last"

    hw.channel("chat")(mailbox)
    async with hw:
        await hw.jobs.add("d", "shaky", every="1h", text="x", deliver=CHAT)
        await until("2026-01-01 13:30")
        assert mailbox.texts == ["at last"]


@starting("2026-01-01 12:00")
async def test_c9_a_firing_that_failed_for_good_is_told_once() -> None:
    mailbox = Mailbox()
    hw = program(Diary(error=OSError("busy")))
    hw.channel("chat")(mailbox)
    async with hw:
        await hw.jobs.add("digest", "a", every="1h", text="x", deliver=CHAT)
        await until("2026-01-01 13:30")
        (text,) = mailbox.texts
        assert "digest" in text
        assert "OSError: busy" in text


@pytest.mark.parametrize("source", ["message", "firing"])
def test_s10_a_cancel_publishes_an_empty_message_that_ends_typing(source: str) -> None:
    @starting("2026-01-01 12:00")
    async def main() -> None:
        diary = Diary(takes_s=600)
        window = Window()
        hw = program(diary)
        hw.add_channel("chat", window)
        async with hw:
            if source == "message":
                await hw.submit("a", "x", session="s", route=CHAT, debounce=0)
            else:
                await hw.jobs.add("d", "a", at="in 1m", text="x", session="s", deliver=CHAT)
                await until("2026-01-01 12:01")
            begun = now()
            await asyncio.sleep(5)
            stopped = await hw.stop("s")
            assert stopped.running == 1
            await quiet()
            (empty,) = window.got
            assert (empty.text, empty.attachments, empty.route) == ("", (), CHAT)
            assert empty.id.endswith(".empty")
            assert window.seen == [(begun, True), (begun + timedelta(seconds=5), False)]

    main()


@starting("2026-01-01 12:00")
async def test_s10_what_never_began_and_a_plain_function_get_no_empty_message() -> None:
    diary = Diary(takes_s=600)
    window, mailbox = Window(), Mailbox()
    hw = program(diary)
    hw.add_channel("chat", window)
    hw.channel("plain")(mailbox)
    async with hw:
        await hw.submit("a", "x", session="p", route=Route("plain", peer="1"), debounce=0)
        await hw.submit("a", "x", session="s", route=CHAT, debounce=0)
        waiting = await hw.submit("a", "y", session="s", route=CHAT, debounce=0)
        await quiet()
        await hw.cancel(waiting)
        await quiet()
        assert window.got == []
        await hw.stop("p")
        await quiet()
        assert mailbox.got == []
        assert await waiting_letters(hw) == [], "yet nothing is left over"
        await hw.close(0)


@starting("2026-01-01 12:00")
async def test_typing_is_shown_while_an_agent_works_and_ends_before_the_reply() -> None:
    window = Window()
    hw = program(Diary(takes_s=3))
    hw.add_channel("chat", window)
    async with hw:
        begun = now()
        await hw.send("a", "x", route=CHAT, debounce=0)
        await quiet()
        assert window.seen == [(begun, True), (begun + timedelta(seconds=3), False)]
        assert [delivery.text for delivery in window.got] == ["re: x"]


@starting("2026-01-01 12:00")
async def test_typing_that_fails_or_hangs_disturbs_nobody() -> None:
    class Grumpy(Window):
        async def typing(self, route: Route, on: bool) -> None:
            if on:
                raise ConnectionError("no typing here")
            await asyncio.sleep(1e6)

    window = Grumpy()
    hw = program(Diary())
    hw.add_channel("chat", window)
    async with hw:
        heard = hear(hw)
        assert await hw.send("a", "x", route=CHAT, debounce=0) == "re: x"
        await asyncio.sleep(10)
        assert [delivery.text for delivery in window.got] == ["re: x"]
        assert len(only(heard, CallbackFailed)) == 2


@starting("2026-01-01 12:00")
async def test_h3_a_heartbeat_that_has_nothing_to_say_shows_no_typing() -> None:
    window = Window()
    diary = Diary(takes_s=3)
    diary.reply = "HEARTBEAT_OK"
    hw = program(diary)
    hw.add_channel("chat", window)
    hw.heartbeat("a", every="1h", prompt="?", target=CHAT)
    async with hw:
        await until("2026-01-01 13:00")
        assert len(diary.began) == 1
        assert window.got == []
        assert window.seen == []


# What could not be delivered.


async def waiting_letters(hw: Headway) -> list[Delivery]:
    return list((await hw.letters(dead=False)).letters)


async def dead_letters(hw: Headway) -> list[Delivery]:
    return list((await hw.letters()).letters)


@starting("2026-01-01 12:00")
async def test_a_delivery_is_tried_again_for_a_day_and_then_is_a_dead_letter() -> None:
    window = Window()
    window.error = ConnectionError("offline")
    hw = program(Diary())
    hw.add_channel("chat", window)
    async with hw:
        heard = hear(hw)
        await hw.jobs.add("d", "a", at="in 1m", text="x", deliver=CHAT)
        await until("2026-01-02 11:00")
        (waiting,) = await waiting_letters(hw)
        assert waiting.error == "ConnectionError: offline"
        assert waiting.tries > 100
        assert await dead_letters(hw) == []
        await until("2026-01-02 12:05")
        assert await waiting_letters(hw) == []
        (dead,) = await dead_letters(hw)
        assert (dead.error, dead.text) == ("ConnectionError: offline", "re: x")
        assert only(heard, DeliveryFailed)[-1].again_at is None
        tried = len(window.got)
        assert len({delivery.id for delivery in window.got}) == 1
        await until("2026-01-03 12:00")
        assert len(window.got) == tried, "nobody tries it any more"

        window.error = None
        assert await hw.retry_letter(dead.id)
        await asyncio.sleep(1)
        assert len(window.got) == tried + 1
        assert window.got[-1].id == dead.id
        assert await dead_letters(hw) == await waiting_letters(hw) == []
        assert not await hw.retry_letter(dead.id)


@starting("2026-01-01 12:00")
async def test_what_can_never_be_delivered_is_a_dead_letter_at_once_and_holds_up_nothing() -> None:
    window = Window()
    window.error = Permanent("no such chat")
    hw = program(Diary())
    hw.add_channel("chat", window)
    async with hw:
        await hw.send("a", "x", route=CHAT, debounce=0)
        await quiet()
        assert [letter.error for letter in await dead_letters(hw)] == ["Permanent: no such chat"]
        window.error = None
        await hw.send("a", "y", route=CHAT, debounce=0)
        await quiet()
        assert [delivery.text for delivery in window.got] == ["re: x", "re: y"]


@starting("2026-01-01 12:00")
async def test_a_firing_whose_delivery_fails_is_done_all_the_same() -> None:
    window = Window()
    window.error = ConnectionError("offline")
    hw = program(Diary())
    hw.add_channel("chat", window)
    async with hw:
        job = await hw.jobs.add("d", "a", every="1h", text="x", deliver=CHAT)
        await until("2026-01-01 14:01")
        assert [line.state for line in await log_of(hw, job.id)] == [State.DONE] * 2
        assert (await hw.jobs.get(job.id)).consecutive_failures == 0
        await hw.close(0)


@starting("2026-01-01 12:00")
async def test_c7_a_superseded_firing_ends_its_typing_and_says_nothing() -> None:
    window = Window()
    hw = program(Diary(takes_s=90))
    hw.add_channel("chat", window)
    async with hw:
        job = await hw.jobs.add("d", "a", every="1m", text="x", deliver=CHAT, overlap="interrupt")
        await until("2026-01-01 12:03:30")
        lines = await log_of(hw, job.id)
        reasons = [line.outcome.reason for line in lines if line.outcome is not None]
        assert reasons == [Reason.SUPERSEDED] * 2
        assert {delivery.text for delivery in window.got} == {""}
        assert [on for _, on in window.seen].count(True) == 3
        await hw.close(0)


class Slow:
    """A channel that takes its time."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.open = asyncio.Event()
        self.both = asyncio.Event()
        self.got: list[str] = []

    async def __call__(self, delivery: Delivery) -> None:
        self.began.set()
        await self.open.wait()
        self.got.append(delivery.text)
        if len(self.got) == 2:
            self.both.set()


def _gateway(path: Path, channel: Slow) -> Headway:
    hw = Headway(f"sqlite:///{path}")
    hw.channel("chat")(channel)

    @hw.agent("a")
    async def answers(turn: Turn) -> str:
        return f"re: {turn.text}"

    return hw


def test_l5_what_is_on_its_way_arrives_before_the_end_and_only_once(tmp_path: Path) -> None:
    asyncio.run(_end_in_the_middle(tmp_path / "h.db"))


async def _end_in_the_middle(path: Path) -> None:
    slow = Slow()
    hw = _gateway(path, slow)
    async with hw:
        # Of one conversation: the second waits for the first.
        for text in ("one", "two"):
            handle = await hw.submit("a", text, session="s", route=CHAT, debounce=0)
            await handle.wait()
        await slow.began.wait()
        ending = asyncio.create_task(hw.close())
        await asyncio.sleep(0.05)
        assert not ending.done(), "a planned end cuts nobody off in the middle"
        slow.open.set()
        await ending
    assert slow.got == ["re: one", "re: two"]
    async with _gateway(path, slow) as again:
        assert (await again.letters(dead=False)).letters == ()
        assert slow.got == ["re: one", "re: two"]


def test_l5_who_is_in_a_hurry_waits_for_no_receiver(tmp_path: Path) -> None:
    asyncio.run(_end_in_a_hurry(tmp_path / "h.db"))


async def _end_in_a_hurry(path: Path) -> None:
    stuck = Slow()
    hw = _gateway(path, stuck)
    async with hw:
        for text in ("one", "two"):
            handle = await hw.submit("a", text, session="s", route=CHAT, debounce=0)
            await handle.wait()
        await stuck.began.wait()
        await hw.close("100ms")
    assert stuck.got == []
    ready = Slow()
    ready.open.set()
    async with _gateway(path, ready):
        await ready.both.wait()
    assert ready.got == ["re: one", "re: two"], "both were left for the next start, in their order"
