"""Heartbeats in a running node: when an agent is woken, when it is left alone, and who hears of it (H)."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from headway import Attachment, Headway, InvalidInput, Reply, Route, StoreUnavailable, Turn
from headway.core.firing import OVERLAPS
from headway.core.heartbeat import COALESCE, SPACING, phase
from headway.model.events import HeartbeatQuiet
from headway.model.job import Advance, Entry
from headway.model.run import AgentName
from headway.model.time import DAY, HOUR, MINUTE, as_datetime, as_timedelta
from headway.model.words import Fired, HeartbeatSkip, Source, State
from headway.ports import Admission
from headway.runtime.clock import SystemClock
from tests.unit.runtime.times import (
    Diary,
    Mailbox,
    a_clock,
    instant,
    now,
    program,
    quiet,
    rarely,
    starting,
    until,
)
from tests.unit.runtime.worlds import hear, only

CHAT = Route("chat", peer="42")
HALF_AN_HOUR = timedelta(minutes=30)


def beats(agent: str, first: str, last: str, interval: int = 30 * MINUTE) -> list[datetime]:
    """When an agent is woken by its cadence between two instants."""
    shift = phase(AgentName(agent), interval)
    begin = -(-(instant(first) - shift) // interval) * interval + shift
    return [as_datetime(at) for at in range(begin, instant(last) + 1, interval)]


async def beats_log(hw: Headway, agent: str = "a") -> list[Entry]:
    return list((await hw.heartbeats.log(agent, limit=1000)).entries)[::-1]


async def told(hw: Headway, agent: str = "a") -> list[str]:
    return [
        f"{entry.kind}: {entry.reason}" if entry.reason else str(entry.kind)
        for entry in await beats_log(hw, agent)
    ]


@starting("2026-01-01 00:00")
async def test_h1_an_agent_is_woken_every_half_hour_at_its_own_phase() -> None:
    diary = Diary()
    diary.reply = "HEARTBEAT_OK"
    hw = program(diary)
    hw.heartbeat("a", prompt="Anything? Else say HEARTBEAT_OK.")
    async with hw:
        await until("2026-01-02 00:00")
        assert diary.began == beats("a", "2026-01-01 00:00:00", "2026-01-02 00:00")
        assert len(diary.began) == 48
        assert set(diary.texts) == {"Anything? Else say HEARTBEAT_OK."}
        assert all(turn.is_heartbeat for turn in diary.turns)
        assert {turn.run.lane for turn in diary.turns} == {"cron"}
        assert {turn.run.source for turn in diary.turns} == {Source.HEARTBEAT}
        assert {turn.session for turn in diary.turns} == {"agent:a:main"}
        assert (await hw.jobs.list()).jobs == (), "it is not among the jobs"
        assert len(await hw.heartbeats.list()) == 1


@pytest.mark.parametrize(
    ("hours", "woken"),
    [
        ("22:00-06:00", [(22, 30), (23, 30), (0, 30), (1, 30), (2, 30), (3, 30), (4, 30), (5, 30)]),
        ("09:00-12:00", [(9, 30), (10, 30), (11, 30)]),
        ("20:00-24:00", [(20, 30), (21, 30), (22, 30), (23, 30)]),
    ],
)
def test_h1_outside_its_hours_an_agent_is_not_woken_and_the_log_has_one_reason_each(
    hours: str, woken: list[tuple[int, int]]
) -> None:
    @starting("2026-01-01 00:00")
    async def main() -> None:
        diary = Diary()
        hw = program(diary)
        hw.heartbeat("a", every="1h", prompt="?", hours=hours, tz="Europe/Berlin", target="none")
        async with hw:
            await until("2026-01-02 00:00")
            lines = await beats_log(hw)
            assert len(lines) == 24, "one line for each, and not one per poll"
            berlin = [(began + timedelta(hours=1)).hour for began in diary.began]
            assert sorted(berlin) == sorted(hour for hour, _ in woken)
            skipped = {line.reason for line in lines if line.kind is Fired.SKIPPED}
            assert skipped == {HeartbeatSkip.OUTSIDE_HOURS}
            assert len(lines) - len(woken) == sum(line.kind is Fired.SKIPPED for line in lines)

    main()


@starting("2026-01-01 00:00")
async def test_h2_an_empty_or_missing_checklist_wakes_nobody(tmp_path: Path) -> None:
    diary = Diary()
    diary.reply = "HEARTBEAT_OK"
    hw = program(diary)
    hw.heartbeat("a", every="1h")
    file = tmp_path / "HEARTBEAT.md"
    hw.agent("b")(diary)
    hw.heartbeat("b", every="1h", checklist=file)
    async with hw:
        await until("2026-01-01 01:00")
        assert await told(hw) == [f"skipped: {HeartbeatSkip.NO_CHECKLIST}"]
        assert await told(hw, "b") == [f"skipped: {HeartbeatSkip.NO_CHECKLIST}"]
        for agent in ("a", "b"):
            await hw.heartbeats.set_checklist(agent, "# Tasks\n\n- [ ] \n<!-- none -->\n")
        await until("2026-01-01 02:00")
        assert (await told(hw))[1:] == [f"skipped: {HeartbeatSkip.EMPTY_CHECKLIST}"]
        assert (await told(hw, "b"))[1:] == [f"skipped: {HeartbeatSkip.EMPTY_CHECKLIST}"]
        for agent in ("a", "b"):
            await hw.heartbeats.set_checklist(agent, f"# Tasks\n- water the plants of {agent}\n")
        assert file.read_text().endswith("plants of b\n")
        await until("2026-01-01 03:00")
        assert (await told(hw))[2:] == ["on_time"]
        assert (await told(hw, "b"))[2:] == ["on_time"]
        assert sorted(text[-21:] for text in diary.texts) == [
            "water the plants of a",
            "water the plants of b",
        ]


@starting("2026-01-01 00:00")
async def test_h2_busy_through_five_intervals_means_one_run_soon_after_and_the_same_cadence() -> (
    None
):
    diary = Diary()
    hw = program(diary)
    hw.heartbeat("a", prompt="?", target="none")
    async with hw:
        cadence = beats("a", "2026-01-01 00:00", "2026-01-02 00:00")
        await until(cadence[1] - timedelta(minutes=1))
        woken = len(diary.began)
        assert woken == 1
        diary.takes_s = 5 * 1800
        await hw.submit("a", "a long talk", session="agent:a:main", timeout="9h")
        await quiet()
        diary.takes_s = 0
        free_at = now() + 5 * HALF_AN_HOUR
        await until(free_at)
        assert diary.texts == ["?", "a long talk", "?"]
        assert diary.began[-1] == free_at
        skipped = f"skipped: {OVERLAPS}"
        assert (await told(hw))[1:] == ["on_time", skipped, skipped, skipped, skipped]
        await until(cadence[8])
        assert diary.began[3:] == cadence[6:9]


@starting("2026-01-01 00:00")
async def test_h4_one_hung_heartbeat_beside_five_healthy_ones() -> None:
    diaries = {name: Diary() for name in "bcdefg"}
    hw = program(Diary())
    for name, diary in diaries.items():
        hw.agent(name)(diary)
        hw.heartbeat(name, every="10m", prompt="?", target="none", timeout="9d")
    diaries["b"].takes_s = 1e6
    async with hw:
        await until("2026-01-01 06:00")
        assert len(diaries.pop("b").began) == 1
        for name, diary in diaries.items():
            expected = beats(name, "2026-01-01 00:00:01", "2026-01-01 06:00", 10 * MINUTE)
            assert diary.began == expected
        assert set(await told(hw, "b")) == {"on_time", f"skipped: {OVERLAPS}"}
        await hw.close(0)


@starting("2026-01-01 00:00")
async def test_h4_a_hung_look_delays_no_other_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = Diary()
    hw = program(Diary())
    hw.agent("b")(healthy)
    hw.heartbeat("a", every="10m", prompt="?", target="last")
    hw.heartbeat("b", every="10m", prompt="?", target="none")
    async with hw:

        async def hangs(agent: str) -> None:
            await asyncio.sleep(1e9)

        monkeypatch.setattr(hw.engine._parts.routes, "last", hangs)
        await until("2026-01-01 02:00")
        assert healthy.began == beats("b", "2026-01-01 00:00:01", "2026-01-01 02:00", 10 * MINUTE)
        assert {line.kind for line in await beats_log(hw)} == {Fired.SKIPPED}


# What is told to whom (H-2, H-3).


@pytest.mark.parametrize(
    ("reply", "delivered", "why"),
    [
        ("HEARTBEAT_OK", [], HeartbeatSkip.ALL_WELL),
        ("**HEARTBEAT_OK** nothing new", [], HeartbeatSkip.ALL_WELL),
        (" \n", [], HeartbeatSkip.EMPTY_REPLY),
        ("HEARTBEAT_OK " + "x" * 301, ["x" * 301], None),
        ("HEARTBEAT_OK " + "😀" * 300, [], HeartbeatSkip.ALL_WELL),
        ("The disk is full.", ["The disk is full."], None),
        ("not HEARTBEAT_OK at all", ["not HEARTBEAT_OK at all"], None),
    ],
)
def test_h3_all_well_is_silent_and_an_alert_is_delivered(
    reply: str, delivered: list[str], why: HeartbeatSkip | None
) -> None:
    @starting("2026-01-01 00:00")
    async def main() -> None:
        mailbox = Mailbox()
        hw = program(Diary())

        @hw.agent("watch")
        async def watch(turn: Turn) -> str:
            return reply

        hw.channel("chat")(mailbox)
        hw.heartbeat("watch", every="1h", prompt="?", target=CHAT)
        async with hw:
            heard = hear(hw)
            await until("2026-01-01 01:00")
            assert [text.strip() for text in mailbox.texts] == delivered
            assert [event.reason for event in only(heard, HeartbeatQuiet)] == ([why] if why else [])
            (line,) = await beats_log(hw, "watch")
            assert line.outcome is not None
            assert line.outcome.text == reply, "the log has it all the same"

    main()


@starting("2026-01-01 00:00")
async def test_h3_attachments_are_always_delivered() -> None:
    mailbox = Mailbox()
    hw = program(Diary())
    chart = Attachment("chart.png", "image/png", "https://example.org/chart.png")

    @hw.agent("watch")
    async def watch(turn: Turn) -> Reply:
        return Reply("HEARTBEAT_OK", (chart,))

    hw.channel("chat")(mailbox)
    hw.heartbeat("watch", every="1h", prompt="?", target=CHAT)
    async with hw:
        await until("2026-01-01 03:00")
        assert [delivery.attachments for delivery in mailbox.got] == [(chart,)] * 3
        assert set(mailbox.texts) == {""}


@starting("2026-01-01 00:00")
async def test_h2_the_same_alert_is_told_once_in_a_day_and_another_one_at_once() -> None:
    mailbox = Mailbox()
    diary = Diary()
    diary.reply = "The disk is full."
    hw = program(diary)
    hw.channel("chat")(mailbox)
    hw.heartbeat("a", every="1h", prompt="?", target=CHAT)
    async with hw:
        cadence = beats("a", "2026-01-01 00:00:01", "2026-01-09 00:00", HOUR)
        await until(cadence[10])
        diary.reply = "The disk is  full.\n"
        await until(cadence[11])
        assert mailbox.at == [cadence[0]]
        diary.reply = "The disk is on fire."
        await until(cadence[12])
        diary.reply = "The disk is full."
        await until(cadence[60])
        assert mailbox.at == [cadence[0], cadence[12], cadence[24], cadence[48]]


@pytest.mark.parametrize("target", ["last", "none"])
def test_h1_without_anybody_to_tell_nothing_is_told(target: str) -> None:
    @starting("2026-01-01 00:00")
    async def main() -> None:
        mailbox = Mailbox()
        diary = Diary()
        hw = program(diary)
        hw.channel("chat")(mailbox)
        hw.heartbeat("a", every="1h", prompt="?", target=target)
        async with hw:
            if target == "none":
                await hw.send("a", "hello", route=CHAT)
                await quiet()
                mailbox.got.clear()
            await until("2026-01-01 03:00")
            assert mailbox.got == []
            assert [line.state for line in await beats_log(hw)] == [State.DONE] * 3

    main()


@starting("2026-01-01 00:00")
async def test_h1_last_is_where_the_latest_message_came_from() -> None:
    mailbox = Mailbox()
    diary = Diary()
    hw = program(diary)
    hw.channel("chat")(mailbox)
    hw.heartbeat("a", every="1h", prompt="?")
    async with hw:
        await hw.send("a", "hello", route=Route("chat", peer="1"))
        await hw.send("a", "hello", route=Route("chat", peer="2"))
        await quiet()
        mailbox.got.clear()
        await until("2026-01-01 01:00")
        assert [delivery.route.peer for delivery in mailbox.got] == ["2"]
        await hw.send("a", "hello", route=Route("chat", peer="3"))
        await quiet()
        mailbox.got.clear()
        diary.reply = "something else"
        await until("2026-01-01 02:00")
        assert [delivery.route.peer for delivery in mailbox.got] == ["3"]


# Across a restart, on a file.


class SetClock(SystemClock):
    """The machine's clock, moved by a test."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead

    def wall(self) -> int:
        return super().wall() + self.ahead


def watching(file: Path, clock: SetClock, mailbox: list[tuple[str, str]]) -> Headway:
    hw = Headway(f"sqlite:///{file}", clock=clock)

    @hw.agent("watch")
    async def watch(turn: Turn) -> str:
        return "The disk is full." if turn.is_heartbeat else "hello"

    @hw.channel("chat")
    async def send(delivery: object) -> None:
        mailbox.append((delivery.route.peer, delivery.text))  # type: ignore[attr-defined]

    hw.heartbeat("watch", every="30m", prompt="?")
    return hw


async def beat(hw: Headway) -> None:
    """Wake it by hand, and wait until it has answered and what it said was delivered."""
    with hw.events() as events:
        await hw.heartbeats.wake("watch")
        async for event in events:
            if getattr(event, "event", type(event).__name__) == "RunFinished":
                break
    for _ in range(500):
        if not (await hw.letters(dead=False)).letters:
            return
        await asyncio.sleep(0.01)


def test_h1_h2_last_target_and_repeated_alerts_survive_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        file, clock = tmp_path / "h.db", SetClock()
        mailbox: list[tuple[str, str]] = []
        async with asyncio.timeout(30):
            async with watching(file, clock, mailbox) as hw:
                await hw.send("watch", "hi", route=Route("chat", peer="7"))
                await beat(hw)
                assert mailbox[1:] == [("7", "The disk is full.")]
            clock.ahead = 23 * HOUR
            async with watching(file, clock, mailbox) as hw:
                await beat(hw)
                assert len(mailbox) == 2, "the same alert 23 hours later"
            clock.ahead = 25 * HOUR
            async with watching(file, clock, mailbox) as hw:
                await beat(hw)
                assert mailbox[2:] == [("7", "The disk is full.")]

    asyncio.run(main())


# Wakes beside the cadence (H-4).


@starting("2026-01-01 00:00")
async def test_h4_wakes_coalesce_and_keep_their_distance_unless_a_person_asks() -> None:
    diary = Diary()
    hw = program(diary)
    hw.heartbeat("a", every="9d", prompt="?", target="none")
    async with hw:
        begin = now()
        for _ in range(5):
            await hw.heartbeats.wake("a", manual=False)
            await asyncio.sleep(0.02)
        await asyncio.sleep(1)
        first = begin + as_timedelta(COALESCE)
        assert diary.began == [first]
        await hw.heartbeats.wake("a", manual=False)
        await asyncio.sleep(60)
        assert diary.began == [first, first + as_timedelta(SPACING)]
        await asyncio.sleep(60)
        at = now()
        for _ in range(3):
            await hw.heartbeats.wake("a")
            await asyncio.sleep(5)
        assert diary.began[2:] == [
            at + timedelta(seconds=5 * n) + as_timedelta(COALESCE) for n in range(3)
        ]
        assert set(await told(hw)) == {"manual"}


@starting("2026-01-01 00:00")
async def test_h4_one_that_had_to_wait_and_the_next_one_keep_their_distance_too() -> None:
    diary = Diary()
    hw = program(diary)
    hw.heartbeat("a", every="10m", prompt="?", target="none")
    async with hw:
        first, second = beats("a", "2026-01-01 00:00:01", "2026-01-01 00:20", 10 * MINUTE)
        await until(first - timedelta(seconds=1))
        diary.takes_s = (second - first).total_seconds() - 4
        await hw.submit("a", "talk", session="agent:a:main", timeout="1h")
        await quiet()
        diary.takes_s = 0
        await until(second + timedelta(minutes=9))
        starts = [at for at, text in zip(diary.began, diary.texts, strict=True) if text == "?"]
        assert starts[0] == second - timedelta(seconds=5)
        assert all(at - starts[0] >= timedelta(seconds=30) for at in starts[1:])


@starting("2026-01-01 00:00")
async def test_h2_a_store_that_is_away_for_a_moment_during_a_look_loses_no_heartbeat() -> None:
    diary = Diary()
    hw = program(diary)
    hw.heartbeat("a", every="1h", prompt="?", target="none")
    async with hw:
        advance = hw.engine._store.advance
        calls = 0

        async def shaky(advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise StoreUnavailable("memory", "away for a moment")
            return await advance(advances)

        hw.engine._store.advance = shaky  # type: ignore[method-assign]
        (beat_at,) = beats("a", "2026-01-01 00:00:01", "2026-01-01 01:00", HOUR)
        await until(beat_at + timedelta(seconds=30))
        assert len(diary.began) == 1
        assert await told(hw) == ["on_time"]


@starting("2026-01-01 00:00")
async def test_h4_a_manual_wake_keeps_the_cadence_and_a_beat_right_after_it_is_left_out() -> None:
    diary = Diary()
    hw = program(diary)
    hw.heartbeat("a", every="1h", prompt="?", target="none")
    async with hw:
        (beat_at,) = beats("a", "2026-01-01 00:00:01", "2026-01-01 01:00", HOUR)
        await until(beat_at - timedelta(seconds=10))
        await hw.heartbeats.wake("a")
        await until(beat_at + timedelta(hours=1))
        woken = beat_at - timedelta(seconds=10) + as_timedelta(COALESCE)
        assert diary.began == [woken, beat_at + timedelta(hours=1)]
        assert await told(hw) == [
            "manual",
            "skipped: the agent was woken less than 30 s before",
            "on_time",
        ]


@starting("2026-01-01 00:00")
async def test_h4_a_wake_while_somebody_looks_is_not_delayed_by_the_claim() -> None:
    diary = Diary()
    hw = program(diary)
    hw.heartbeat("a", every="1h", prompt="?", target="last")
    async with hw:
        (beat_at,) = beats("a", "2026-01-01 00:00:01", "2026-01-01 01:00", HOUR)
        last = hw.engine._parts.routes.last

        async def slow(agent: AgentName) -> Route | None:
            await asyncio.sleep(10)
            return await last(agent)

        hw.engine._parts.routes.last = slow  # type: ignore[method-assign]
        await until(beat_at + timedelta(seconds=5))
        await hw.heartbeats.wake("a")
        await until(beat_at + timedelta(seconds=30))
        assert len(diary.began) == 1
        lines = await beats_log(hw)
        assert len({line.due_at for line in lines}) == len(lines)


@starting("2026-01-01 00:00")
async def test_h4_a_heartbeat_cannot_wake_itself_and_a_message_of_its_agent_can() -> None:
    hw = program(Diary())
    answers: list[object] = []

    @hw.agent("eager")
    async def eager(turn: Turn) -> str:
        answers.append(await hw.heartbeats.wake("eager", manual=False))
        return "HEARTBEAT_OK"

    hw.heartbeat("eager", every="9d", prompt="?", target="none")
    async with hw:
        await hw.send("eager", "hello")
        await asyncio.sleep(3600)
        assert len(answers) == 2
        assert answers[0] is not None
        assert answers[1] is None, "its own heartbeat asked"


@starting("2026-01-01 00:00")
async def test_h4_reminders_do_not_depend_on_heartbeats() -> None:
    diary = Diary()
    hw = program(diary)
    hw.heartbeat("a", every="1h", prompt="?", hours="09:00-10:00", target="none")
    async with hw:
        await hw.heartbeats.pause("a")
        await hw.jobs.add("tea", "a", at="in 7m", text="tea")
        await until("2026-01-01 00:08")
        assert diary.texts == ["tea"]
        with pytest.raises(InvalidInput, match="enabled"):
            await hw.heartbeats.wake("a")


@starting("2026-01-01 00:00")
async def test_f4_a_message_never_waits_behind_a_heartbeat_of_its_session() -> None:
    diary = Diary(takes_s=60)
    hw = program(diary)
    hw.heartbeat("a", every="1h", prompt="?", target="none")
    async with hw:
        (beat_at,) = beats("a", "2026-01-01 00:00:01", "2026-01-01 01:00", HOUR)
        await until(beat_at + timedelta(seconds=5))
        assert diary.texts == ["?"]
        await hw.submit("a", "me first", session="agent:a:main")
        await asyncio.sleep(1)
        assert diary.texts == ["?", "me first"]
        await asyncio.sleep(300)
        assert diary.texts == ["?", "me first", "?"]
        assert [line.state for line in await beats_log(hw)] == [State.DONE]


@starting("2026-01-01 00:00")
async def test_h1_settings_can_be_changed_paused_and_removed_while_it_runs() -> None:
    diary = Diary()
    hw = program(diary)
    hw.heartbeat("a", every="1h", prompt="?", target="none")
    async with hw:
        await until("2026-01-01 02:00")
        assert len(diary.began) == 2
        view = await hw.heartbeats.set("a", every="10m", prompt="!", target="none")
        assert view.job.heartbeat is not None
        assert view.job.heartbeat.interval == 10 * MINUTE
        await until("2026-01-01 03:00")
        assert diary.texts[2:] == ["!"] * 6
        await hw.heartbeats.pause("a")
        await until("2026-01-01 04:00")
        await hw.heartbeats.resume("a")
        await until("2026-01-01 05:00")
        assert len(diary.texts) == 14
        await hw.heartbeats.remove("a")
        await until("2026-01-01 09:00")
        assert len(diary.texts) == 14
        with pytest.raises(InvalidInput, match="heartbeat"):
            await hw.heartbeats.get("a")


@starting("2026-01-01 00:00")
async def test_h1_missed_heartbeats_are_not_made_up_for() -> None:
    diary = Diary()
    clock = a_clock()
    hw = program(diary, clock=clock)
    hw.heartbeat("a", every="1h", prompt="?", target="none")
    async with hw:
        clock.stepped = 3 * DAY
        hw.engine._parts.timekeeper.look()
        await asyncio.sleep(70)
        assert len(diary.began) <= 1
        lines = await beats_log(hw)
        assert sum(line.count for line in lines) == 72
        await asyncio.sleep(3600)
        assert (await beats_log(hw))[-1].kind is Fired.ON_TIME


@starting("2026-01-01 12:00")
async def test_h1_once_a_day_in_narrow_hours_wakes_once_a_day() -> None:
    woken: list[datetime] = []
    hw = Headway("memory://", settings=rarely())

    @hw.agent("early")
    async def early(turn: Turn) -> str:
        woken.append(now())
        return "HEARTBEAT_OK"

    hw.heartbeat("early", every="1d", hours="08:00-10:00", prompt="look")
    async with hw:
        await until("2026-01-11 12:00")
        assert [at.date().day for at in woken] == list(range(2, 12))
        assert all(8 <= at.hour < 10 for at in woken)
