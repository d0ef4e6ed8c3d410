"""Events over RPC: subscribed, resumed, narrowed, ended."""

import asyncio

from headway import Headway, Turn
from headway.model.server import ServerSettings
from headway.model.words import Scope
from headway.testing import virtual_time
from tests.unit.gateway.calling import opened
from tests.unit.gateway.rpc.lines import called, connected


def quick() -> Headway:
    hw = Headway()

    @hw.agent("a")
    async def a(turn: Turn) -> str:
        return ""

    hw.agent("b")(a)
    return hw


@virtual_time
async def test_events_come_as_frames_after_the_answer() -> None:
    async with called(quick()) as line:
        after = (await line.call("events.subscribe", events=["RunFinished"]))["after"]
        await line.call("tasks.submit", agentId="a", action="x")
        frame = await line.event("RunFinished")
        assert set(frame) == {"event", "id", "data"}
        assert frame["data"]["agent"] == "a"  # type: ignore[index]
        assert frame["id"] != after


@virtual_time
async def test_a_second_subscription_takes_the_place_of_the_first_and_none_ends_it() -> None:
    async with called(quick()) as line:
        await line.call("events.subscribe", events=["RunStarted"])
        await line.call("events.subscribe", events=["LaneChanged"])
        await line.call("tasks.submit", agentId="a", action="x")
        await line.call("lanes.set", name="main", width=3)
        assert (await line.event("LaneChanged"))["data"]["width"] == 3  # type: ignore[index]
        assert (await line.call("events.unsubscribe"))["subscribed"] is True
        assert (await line.call("events.unsubscribe"))["subscribed"] is False
        await line.call("lanes.set", name="main", width=4)
        await asyncio.sleep(1)
        assert line.events == []
        assert line.out.empty()


@virtual_time
async def test_who_comes_back_goes_on_without_a_gap() -> None:
    async with opened(quick()) as gateway:
        async with connected(gateway.desk) as line:
            await line.call("events.subscribe", events=["RunFinished"])
            first = await line.call("tasks.submit", agentId="a", action="x")
            seen = (await line.event("RunFinished"))["id"]
        async with connected(gateway.desk) as line:
            others = [
                (await line.call("tasks.submit", agentId="a", action="x"))["taskId"]
                for _ in range(3)
            ]
            await asyncio.sleep(1)
            await line.call("events.subscribe", events=["RunFinished"], after=seen)
            heard = [(await line.event("RunFinished"))["data"]["runId"] for _ in range(3)]  # type: ignore[index]
            assert heard == others
            assert first["taskId"] not in heard


@virtual_time
async def test_a_gap_that_cannot_be_closed_is_told() -> None:
    async with (
        opened(quick(), ServerSettings(event_memory=5)) as gateway,
        connected(gateway.desk) as line,
    ):
        after = (await line.call("events.subscribe"))["after"]
        for _ in range(10):
            await line.call("tasks.submit", agentId="a", action="x")
        await asyncio.sleep(1)
        line.events.clear()
        while not line.out.empty():
            line.out.get_nowait()
        await line.call("events.subscribe", after=after)
        frame = await line.event("EventsMissed")
        assert frame["data"]["count"] == gateway.desk.journal.first - 1  # type: ignore[index]


@virtual_time
async def test_o4_a_token_of_one_agent_hears_only_of_it() -> None:
    hw = quick()
    async with opened(hw) as gateway:
        _, secret = await hw.tokens.create("bs", [Scope.SUBMIT], agent="b")
        await asyncio.sleep(5)
        async with connected(gateway.desk, token=secret) as line:
            assert (await line.refused("events.subscribe", agentId="a"))["code"] == "forbidden"
            await line.call("events.subscribe")
            await hw.submit("a", "x")
            hw.set_lane("main", 7)
            await line.call("tasks.submit", agentId="b", action="x")
            await asyncio.sleep(1)
            frames = [await line.hear() for _ in range(line.out.qsize())]
            agents = {frame["data"]["agent"] for frame in [*line.events, *frames]}  # type: ignore[index]
            assert agents == {"b"}


@virtual_time
async def test_bad_subscriptions_are_refused() -> None:
    async with called(quick()) as line:
        wrong = await line.refused("events.subscribe", events=["RunFinishd"])
        assert wrong["details"]["suggestion"] == "RunFinished"  # type: ignore[index]
        assert (await line.refused("events.subscribe", after="yesterday"))[
            "code"
        ] == "invalid_input"
