"""Lanes over HTTP: seen, resized, paused, cleared (L-1, L-2, L-5)."""

import asyncio

from headway import Headway, Turn
from headway.testing import virtual_time
from tests.unit.gateway.asking import asked_by, path, refusal
from tests.unit.gateway.calling import served


def waiting(gate: asyncio.Event) -> Headway:
    """A Headway whose agent works until the gate opens."""
    hw = Headway(lanes={"main": 1})

    @hw.agent("worker")
    async def worker(turn: Turn) -> str:
        await gate.wait()
        return turn.text

    return hw


@virtual_time
async def test_l1_the_lanes_of_a_node_are_listed_by_name() -> None:
    async with served(Headway()) as http:
        body = (await http.get("/lanes")).json()
        assert [lane["name"] for lane in body["lanes"]] == ["cron", "main", "subagent", "team"]
        assert body["cursor"] is None
        main = (await http.get("/lanes/main")).json()
        assert main == {
            "name": "main",
            "width": 30,
            "reserve": 0,
            "clusterLimit": None,
            "runsPerMinute": None,
            "tokensPerMinute": None,
            "paused": False,
            "running": 0,
            "waiting": 0,
            "started": 0,
        }


@virtual_time
async def test_lanes_are_paged() -> None:
    async with served(Headway()) as http:
        first = (await http.get("/lanes", params={"limit": 3})).json()
        rest = (await http.get("/lanes", params={"limit": 3, "cursor": first["cursor"]})).json()
        names = [lane["name"] for page in (first, rest) for lane in page["lanes"]]
        assert names == ["cron", "main", "subagent", "team"]
        assert rest["cursor"] is None


@virtual_time
async def test_l1_delegate_is_another_name_of_team() -> None:
    async with served(Headway()) as http:
        assert (await http.get("/lanes/delegate")).json()["name"] == "team"
        assert (await http.put("/lanes/delegate", json={"width": 7})).json()["name"] == "team"
        assert (await http.get("/lanes/team")).json()["width"] == 7


@virtual_time
async def test_l2_a_wider_lane_starts_what_waits_at_once() -> None:
    gate = asyncio.Event()
    hw = waiting(gate)
    async with served(hw) as http:
        handles = [await hw.submit("worker", str(number)) for number in range(3)]
        await asyncio.sleep(0.01)
        assert (await http.get("/lanes/main")).json()["running"] == 1
        assert (await http.put("/lanes/main", json={"width": 2})).json()["width"] == 2
        await asyncio.sleep(0.01)
        lane = (await http.get("/lanes/main")).json()
        assert (lane["running"], lane["waiting"]) == (2, 1)
        gate.set()
        assert [await handle.reply() for handle in handles] == ["0", "1", "2"]


@virtual_time
async def test_what_is_not_said_of_a_lane_stays() -> None:
    async with served(Headway()) as http:
        whole = {
            "width": 20,
            "reserve": 4,
            "clusterLimit": 50,
            "runsPerMinute": 600,
            "tokensPerMinute": 9000,
        }
        assert (await http.put("/lanes/main", json=whole)).status_code == 200
        narrow = (await http.put("/lanes/main", json={"width": 10})).json()
        assert {name: narrow[name] for name in whole} == {**whole, "width": 10}
        freed = (await http.put("/lanes/main", json={"reserve": 1, "clusterLimit": None})).json()
        assert (freed["width"], freed["reserve"], freed["clusterLimit"]) == (10, 1, None)
        assert (freed["runsPerMinute"], freed["tokensPerMinute"]) == (600, 9000)


@virtual_time
async def test_a_new_lane_needs_a_width() -> None:
    async with served(Headway()) as http:
        refused = await http.put(path("lanes", "night/shift"), json={"reserve": 1})
        assert refusal(refused) == (404, "not_found")
        made = await http.put(path("lanes", "night/shift"), json={"width": 2, "reserve": 1})
        assert made.status_code == 200
        assert (await http.get(path("lanes", "night/shift"))).json()["reserve"] == 1


@virtual_time
async def test_a_reserve_over_the_width_cannot_be() -> None:
    async with served(Headway()) as http:
        refused = await http.put("/lanes/main", json={"width": 2, "reserve": 3})
        assert refusal(refused) == (409, "conflict")
        assert refused.json()["details"] == {"field": "reserve"}
        assert (await http.get("/lanes/main")).json()["width"] == 30


@virtual_time
async def test_a_paused_lane_starts_nothing_and_goes_on_as_wide_as_before() -> None:
    gate = asyncio.Event()
    gate.set()
    hw = waiting(gate)
    async with served(hw) as http:
        paused = (await http.post("/lanes/main/pause")).json()
        assert paused["paused"] is True
        handle = await hw.submit("worker", "later")
        await asyncio.sleep(1)
        assert (await http.get("/lanes/main")).json()["waiting"] == 1
        resumed = (await http.post("/lanes/main/resume")).json()
        assert (resumed["paused"], resumed["width"]) == (False, 1)
        assert await handle.reply() == "later"


@virtual_time
async def test_l5_clearing_a_lane_ends_what_waits_and_nothing_else() -> None:
    gate = asyncio.Event()
    hw = waiting(gate)
    async with served(hw) as http:
        handles = [await hw.submit("worker", str(number)) for number in range(3)]
        await asyncio.sleep(0.01)
        answer = await http.post("/lanes/main/clear")
        assert answer.json() == {"name": "main", "cleared": 2}
        gate.set()
        outcomes = [await handle.wait() for handle in handles]
        assert [outcome.reason for outcome in outcomes] == [None, "lane_cleared", "lane_cleared"]


@virtual_time
async def test_t2_a_lane_that_there_is_not_is_404() -> None:
    async with served(Headway()) as http:
        for method, place in (
            ("GET", "/lanes/mian"),
            ("POST", "/lanes/mian/clear"),
            ("POST", "/lanes/mian/pause"),
            ("POST", "/lanes/mian/resume"),
        ):
            assert refusal(await http.request(method, place)) == (404, "not_found")


@virtual_time
async def test_o4_lanes_are_read_by_whoever_may_read_and_changed_by_who_has_all_agents() -> None:
    async with asked_by(Headway(), "read") as http:
        assert (await http.get("/lanes")).status_code == 200
        assert refusal(await http.put("/lanes/main", json={"width": 1})) == (403, "forbidden")
    async with asked_by(Headway(), "admin", agent="support") as http:
        assert (await http.get("/lanes/main")).status_code == 200
        for method, place in (("PUT", "/lanes/main"), ("POST", "/lanes/main/clear")):
            refused = await http.request(method, place, json={} if method == "PUT" else None)
            assert refusal(refused) == (403, "forbidden")
