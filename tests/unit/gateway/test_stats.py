"""What a node is at, over HTTP (T-1, F-1)."""

import asyncio

from headway import Headway, Turn
from headway.testing import virtual_time
from tests.unit.gateway.asking import bearing
from tests.unit.gateway.calling import opened, served


def headway() -> Headway:
    hw = Headway(name="here")

    @hw.agent("browser", max_inflight=1)
    async def browser(turn: Turn) -> str:
        await asyncio.Event().wait()
        return ""

    @hw.agent("support")
    async def support(turn: Turn) -> str:
        return ""

    return hw


@virtual_time
async def test_t1_the_stats_count_tasks_agents_lanes_and_sessions() -> None:
    hw = headway()
    async with served(hw) as http:
        for _ in range(3):
            await hw.submit("browser", "x", source="task", deadline="1h")
        await asyncio.sleep(0.01)
        stats = (await http.get("/scheduler/stats")).json()
        assert (stats["name"], stats["node"], stats["draining"]) == ("here", hw.node, False)
        assert (stats["queued"], stats["inflight"], stats["sessions"]) == (2, 1, 3)
        assert stats["limits"] == {
            "maxQueue": 1000,
            "maxQueuePerAgent": 100,
            "maxInflight": 20,
            "maxInflightPerAgent": 10,
        }
        loads = {load.pop("agentId"): load for load in stats["agents"]}
        assert loads["browser"] == {"queued": 2, "inflight": 1, "waiting": 2, "running": 1}
        (main,) = [lane for lane in stats["lanes"] if lane["name"] == "main"]
        assert (main["running"], main["waiting"]) == (1, 2)


@virtual_time
async def test_o4_a_token_for_one_agent_sees_the_load_of_that_one() -> None:
    hw = headway()
    async with opened(hw) as gateway, bearing(gateway, hw, "read", agent="support") as http:
        await hw.submit("browser", "x")
        await asyncio.sleep(0.01)
        stats = (await http.get("/scheduler/stats")).json()
        assert {load["agentId"] for load in stats["agents"]} <= {"support"}
