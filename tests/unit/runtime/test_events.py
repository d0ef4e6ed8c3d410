"""The one catalogue of events: each can be heard, and a slow listener is told what it missed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from headway import (
    AgentSettings,
    Delivery,
    Headway,
    InvalidInput,
    LaneSettings,
    NotRunning,
    RateLimited,
    Reply,
    RunFailed,
    Turn,
    WorkerLost,
)
from headway.model import events
from headway.model.events import (
    CATALOGUE,
    Event,
    EventsMissed,
    OutputEmitted,
    RunFinished,
    RunStarted,
    RunSubmitted,
)
from headway.model.time import MINUTE
from headway.runners.function import FunctionRunner
from headway.testing import virtual_time
from tests.unit.runtime.keeping import Field, FieldRunner
from tests.unit.runtime.worlds import CHAT, Recorder, each, endings, hear, moment, only, with_agents

Scenario = Callable[[Headway], Awaitable[None]]


async def one_run(hw: Headway) -> None:
    await hw.send("a", "x")


async def a_retry(hw: Headway) -> None:
    await hw.submit("troubled", "x", retries=1)
    await asyncio.sleep(1)


async def a_merge(hw: Headway) -> None:
    await hw.submit("a", "x", session="s", debounce="1s")
    await (await hw.submit("a", "y", session="s", debounce="1s")).wait()


async def a_long_wait(hw: Headway) -> None:
    await hw.submit("a", "x", session="s")
    await hw.submit("a", "y", session="s")
    await (await hw.submit("a", "z", session="s")).wait()
    await asyncio.sleep(1)
    await hw.submit("deaf", "x", session="s")
    await (await hw.submit("a", "y", session="s")).wait()


async def a_stop(hw: Headway) -> None:
    await hw.submit("a", "x", session="s")
    await asyncio.sleep(0.5)
    await hw.stop("s")
    await moment()


async def an_abandoned_attempt(hw: Headway) -> None:
    await hw.submit("deaf", "x", session="s")
    await asyncio.sleep(0.5)
    await hw.stop("s")
    await asyncio.sleep(100)


async def a_steered_message(hw: Headway) -> None:
    await hw.submit("listener", "x", session="s")
    await moment()
    await hw.submit("listener", "y", session="s", mode="steer")
    await asyncio.sleep(1)


async def a_rate_limit(hw: Headway) -> None:
    await hw.submit("limited", "x")
    await asyncio.sleep(1)


async def an_agent_that_raises(hw: Headway) -> None:
    @hw.agent("raises")
    async def raises(turn: Turn) -> str:
        raise LookupError(f"no {turn.text}")

    await (await hw.submit("raises", "luck")).wait()


async def new_settings(hw: Headway) -> None:
    hw.set_lane("main", 3)
    hw.clear_lane("main")
    hw.set_limits(max_queue=5)


async def a_restart(hw: Headway) -> None:
    await hw.restart()


async def a_broken_callback(hw: Headway) -> None:
    *_, last = [await hw.submit("a", text, session="g", max_concurrent=2) for text in each(2)]
    await last.wait()


async def a_deaf_channel(hw: Headway) -> None:
    @hw.channel("telegram")
    async def send(delivery: Delivery) -> None:
        raise ConnectionError(delivery.route.channel)

    await hw.send("a", "x", route=CHAT)
    await asyncio.sleep(1)


async def a_firing(hw: Headway) -> None:
    await hw.jobs.add("tick", "a", at="in 1m", text="x")
    await asyncio.sleep(61)


async def a_closed_gate(hw: Headway) -> None:
    hw.function("no")(lambda: False)
    await hw.jobs.add("tick", "a", at="in 1m", text="x", gate={"function": "no"})
    await asyncio.sleep(61)


async def ten_failures(hw: Headway) -> None:
    await hw.jobs.add("tick", "troubled", every="1m", text="x", retries=0)
    await asyncio.sleep(601)


async def a_quiet_heartbeat(hw: Headway) -> None:
    @hw.agent("calm")
    async def calm(turn: Turn) -> str:
        return "HEARTBEAT_OK"

    await hw.heartbeats.set("calm", every="1m", prompt="?", target="none")
    await asyncio.sleep(61)


async def a_dead_worker(hw: Headway) -> None:
    async def lost(turn: Turn) -> str:
        raise WorkerLost("it is gone")

    hw.add_agent("lost", FunctionRunner(lost), AgentSettings(max_attempts=1, resume_after=MINUTE))
    await (await hw.submit("lost", "x")).wait()


async def a_worker_that_nobody_wants(hw: Headway) -> None:
    field = Field()
    field.add("long gone", 1, age_s=3_600)
    hw.add_agent("keeps", FieldRunner(field))
    await asyncio.sleep(5)


def break_at_the_end(event: Event) -> None:
    """A bug of ours, as a tap that raises where taps must not."""
    if isinstance(event, RunFinished):
        raise ZeroDivisionError("a bug")


async def a_bug(hw: Headway) -> None:
    hw.engine.bus.tap(break_at_the_end)
    await (await hw.submit("a", "x")).wait()
    await moment()


SCENARIOS: dict[type[Event], Scenario] = {
    events.AttemptFailed: an_agent_that_raises,
    events.RunSubmitted: one_run,
    events.RunStarted: one_run,
    events.RunFinished: one_run,
    events.RunQueuedAgain: a_retry,
    events.RunsMerged: a_merge,
    events.RunWaited: a_long_wait,
    events.AttemptCancelled: a_stop,
    events.AttemptAbandoned: an_abandoned_attempt,
    events.LateResult: an_abandoned_attempt,
    events.MessageSteered: a_steered_message,
    events.OutputEmitted: a_steered_message,
    events.OutboundEmpty: a_stop,
    events.TokensUsed: a_steered_message,
    events.ProviderHeld: a_rate_limit,
    events.SessionStopped: a_stop,
    events.LaneChanged: new_settings,
    events.LaneCleared: new_settings,
    events.LimitsChanged: new_settings,
    events.NodeDraining: a_restart,
    events.NodeRestarted: a_restart,
    events.NodeBroken: a_bug,
    events.CallbackFailed: a_broken_callback,
    events.DeliveryFailed: a_deaf_channel,
    events.JobsChanged: a_firing,
    events.JobFired: a_firing,
    events.JobPassed: a_closed_gate,
    events.JobPaused: ten_failures,
    events.HeartbeatQuiet: a_quiet_heartbeat,
    events.WorkerDied: a_dead_worker,
    events.ResumeExhausted: a_dead_worker,
    events.OrphanEnded: a_worker_that_nobody_wants,
}


NAMES: dict[type[Event], str] = {events.JobsChanged: "cache:cron"}
"""Where an event is not written as what it is called here."""

AMONG_NODES = {
    events.NodeDead,
    events.NodeFenced,
    events.NodeDied,
    events.SessionsLost,
    events.StoreAway,
    events.StoreBack,
    events.WorkerAdopted,
}
"""Heard in `test_membership.py` and `test_adoption.py`, which have the stores for them."""


def _world() -> Headway:
    hw = with_agents(Recorder(takes=1))
    hw.agent("deaf")(Recorder(takes=5, deaf=60))

    @hw.agent("troubled")
    async def troubled(turn: Turn) -> str:
        raise ValueError

    @hw.agent("limited", provider="acme")
    async def limited(turn: Turn) -> str:
        if turn.attempt:
            raise RateLimited("5m")
        return ""

    @hw.agent("listener", steerable=True)
    async def listener(turn: Turn) -> str:
        turn.emit("listening")
        turn.usage(input=3, output=4)
        return (await turn.inbox.get()).text

    @hw.token_estimate
    async def estimate(session: str) -> object:
        raise ValueError

    return hw


def test_every_event_of_the_catalogue_has_its_scenario() -> None:
    assert set(CATALOGUE) == {*SCENARIOS, *AMONG_NODES, EventsMissed}


@pytest.mark.parametrize("kind", list(SCENARIOS), ids=lambda kind: kind.__name__)
def test_every_event_of_the_catalogue_can_be_heard_and_written_as_json(kind: type[Event]) -> None:
    @virtual_time
    async def main() -> None:
        async with _world() as hw:
            with hw.events() as listener:
                await SCENARIOS[kind](hw)
                listener.close()
                heard = [event async for event in listener]
            found = [event for event in heard if type(event) is kind]
            assert found
            written = msgspec.json.decode(msgspec.json.encode(found[0]))["event"]
            assert written == NAMES.get(kind, kind.__name__)
            assert [event.at for event in heard] == sorted(event.at for event in heard)
            await hw.close(0)

    main()


@virtual_time
async def test_one_run_is_heard_from_its_submission_to_its_end() -> None:
    async with with_agents(Recorder()) as hw:
        heard = hear(hw)
        handle = await hw.submit("a", "x", session="s", lane="cron")
        await handle.wait()
        assert [type(event) for event in heard] == [RunSubmitted, RunStarted, RunFinished]
        for event in heard:
            assert isinstance(event, RunSubmitted | RunStarted | RunFinished)
            assert (event.run_id, event.agent, event.session, event.lane) == (
                handle.id,
                "a",
                "s",
                "cron",
            )


@virtual_time
async def test_l1_events_name_the_lane_a_run_is_really_in() -> None:
    async with with_agents(Recorder()) as hw:
        heard = hear(hw)
        for lane in ("delegate", "nowhere"):
            await hw.send("a", "x", lane=lane)
        assert [event.lane for event in only(heard, RunStarted)] == ["team", "main"]


@virtual_time
async def test_a_slow_listener_is_told_how_many_events_it_missed() -> None:
    async with with_agents(Recorder(takes=0)) as hw:
        with hw.events(keep=5) as slow, hw.events() as quick:
            for number in each(10):
                await hw.send("a", number)
            slow.close()
            quick.close()
            everything = [event async for event in quick]
            seen = [event async for event in slow]
        assert len(everything) == 30
        assert isinstance(seen[0], EventsMissed)
        assert seen[0].count == 25
        assert seen[1:] == everything[-5:]


@virtual_time
async def test_a_listener_waits_for_the_next_event_and_ends_with_the_engine() -> None:
    hw = with_agents(Recorder(takes=1))
    await hw.start()
    heard: list[Event] = []

    async def listen() -> None:
        heard.extend([event async for event in hw.events()])

    async with asyncio.TaskGroup() as group:
        group.create_task(listen())
        await moment()
        await hw.send("a", "x")
        await hw.close()
    assert [type(event).__name__ for event in heard] == [
        "RunSubmitted",
        "RunStarted",
        "RunFinished",
        "NodeDraining",
    ]


@virtual_time
async def test_a_closed_listener_hears_no_more() -> None:
    async with with_agents(Recorder(takes=0)) as hw:
        with hw.events() as listener:
            await hw.send("a", "x")
        await hw.send("a", "y")
        assert len([event async for event in listener]) == 3
        assert not hw.engine.bus.heard, "events nobody hears are not made"


@pytest.mark.parametrize("keep", [0, -1, "many", None, 1.5])
def test_a_listener_that_could_keep_nothing_is_refused(keep: object) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder(takes=0)) as hw:
            with pytest.raises(InvalidInput, match="keep"):
                hw.events(keep)  # type: ignore[arg-type]
            assert await hw.send("a", "x") == "re: x"

    main()


@virtual_time
async def test_notable_events_are_logged_although_nobody_listens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with with_agents(Recorder(takes=3)) as hw:
        with caplog.at_level(logging.DEBUG, logger="headway"):
            *_, last = [await hw.submit("a", text, session="s") for text in each(2)]
            await last.wait()
        logged = [record.message for record in caplog.records if record.name == "headway"]
        assert [msgspec.json.decode(line)["event"] for line in logged] == ["RunWaited"]


@virtual_time
async def test_x6_a_provider_that_asks_for_a_pause_is_heard_once_per_pause() -> None:
    async with _world() as hw:
        heard = hear(hw)
        hw.set_lane("main", 1)
        for text in each(3):
            await hw.submit("limited", text)
        await asyncio.sleep(1)
        assert len(only(heard, events.ProviderHeld)) == 1
        assert len(only(heard, RunStarted)) == 1
        await hw.close(0)


@virtual_time
async def test_r2_when_the_engine_itself_breaks_every_caller_is_told() -> None:
    async with _world() as hw:
        handles = [await hw.submit("a", text, session="s") for text in each(3)]
        hw.engine.bus.tap(break_at_the_end)
        assert await endings(*handles) == ["done", "failed/error", "failed/error"]
        with pytest.raises(RunFailed, match="a bug"):
            await handles[2].reply()
        with pytest.raises(NotRunning):
            await hw.submit("a", "more")


@virtual_time
async def test_lane_changes_say_what_is_now() -> None:
    async with with_agents(Recorder()) as hw:
        heard = hear(hw)
        hw.set_lane("gpu", LaneSettings(4, reserve=1))
        hw.set_limits(max_queue=7)
        (lane,) = only(heard, events.LaneChanged)
        (limits,) = only(heard, events.LimitsChanged)
        assert (lane.lane, lane.width, lane.reserve) == ("gpu", 4, 1)
        assert (limits.max_queue, limits.max_queue_per_agent, limits.max_inflight) == (7, 100, 20)


@virtual_time
async def test_r2_half_a_character_neither_loses_an_outcome_nor_ends_a_stream() -> None:
    """UTF-8 has none, so neither a wire nor a log could tell it: a mark stands in its place from the start."""
    hw = with_agents(Recorder())

    @hw.agent("says")
    async def says(turn: Turn) -> str:
        turn.emit("out \ud83d")
        return "reply \ud83d"

    @hw.agent("replies")
    async def replies(turn: Turn) -> Reply:
        return Reply("reply \ud83d", data=1)

    @hw.agent("raises")
    async def raises(turn: Turn) -> str:
        raise ValueError("error \ud83d")

    async with hw:
        heard = hear(hw)
        assert await hw.send("says") == "reply \ufffd"
        assert await hw.send("replies") == "reply \ufffd"
        handle = await hw.submit("raises")
        outcome = await handle.wait()
        assert outcome.error == "ValueError: error \ufffd"
        assert [event.text for event in only(heard, OutputEmitted)] == ["out \ufffd"]
