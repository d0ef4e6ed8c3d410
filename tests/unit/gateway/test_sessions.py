"""Sessions over HTTP: what they are at, their queue, their end (S-5, S-9)."""

import asyncio

import httpx

from headway import Headway, Turn
from headway.testing import virtual_time
from tests.unit.gateway.asking import asked_by, bearing, path, refusal
from tests.unit.gateway.calling import opened, served

ODD = "agent:support:web:dm:a/b c%2F?ü"


def headway(gate: asyncio.Event) -> Headway:
    """Two agents that work until the gate opens."""
    hw = Headway()

    @hw.agent("support")
    async def support(turn: Turn) -> str:
        await gate.wait()
        return turn.text

    @hw.agent("sales")
    async def sales(turn: Turn) -> str:
        await gate.wait()
        return turn.text

    return hw


async def settle() -> None:
    await asyncio.sleep(0.01)


@virtual_time
async def test_s1_a_session_shows_what_runs_and_what_waits_in_its_order() -> None:
    hw = headway(asyncio.Event())
    async with served(hw) as http:
        handles = [await hw.submit("support", str(number), session=ODD) for number in range(3)]
        await settle()
        body = (await http.get(path("sessions", ODD))).json()
        assert body["key"] == ODD
        assert body["running"] == [handles[0].id]
        assert body["waiting"] == [handles[1].id, handles[2].id]
        assert (body["runningCount"], body["waitingCount"], body["debouncingCount"]) == (1, 2, 0)
        assert body["agents"] == ["support"]
        assert set(body["queue"].values()) == {None}


@virtual_time
async def test_s4_a_session_that_nothing_is_known_of_is_idle() -> None:
    async with served(Headway()) as http:
        body = (await http.get("/sessions/nobody")).json()
        assert (body["running"], body["waiting"], body["agents"]) == ([], [], [])
        assert (await http.get("/sessions")).json() == {"sessions": [], "cursor": None}


@virtual_time
async def test_busy_sessions_are_listed_by_key_a_page_at_a_time() -> None:
    hw = headway(asyncio.Event())
    async with served(hw) as http:
        for name in ("delta", "alpha", "charlie", "bravo", "echo"):
            await hw.submit("sales" if name == "echo" else "support", "x", session=name)
        await settle()
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            params: dict[str, str | int] = {"limit": 2, **({"cursor": cursor} if cursor else {})}
            page = (await http.get("/sessions", params=params)).json()
            seen += [session["key"] for session in page["sessions"]]
            cursor = page["cursor"]
        assert seen == ["alpha", "bravo", "charlie", "delta", "echo"]
        of_sales = (await http.get("/sessions", params={"agentId": "sales"})).json()
        assert [session["key"] for session in of_sales["sessions"]] == ["echo"]


@virtual_time
async def test_s5_a_session_gets_queue_options_of_its_own_and_loses_them_again() -> None:
    async with served(Headway()) as http:
        queue = path("sessions", ODD, "queue")
        first = await http.patch(queue, json={"mode": "collect", "debounce": "2s"})
        assert first.json()["queue"]["mode"] == "collect"
        second = (await http.patch(queue, json={"cap": 25, "steerFallback": "followup"})).json()
        assert second["queue"] == {
            "mode": "collect",
            "cap": 25,
            "drop": None,
            "debounce": "2s",
            "steerFallback": "followup",
            "maxConcurrent": None,
        }
        reset = (await http.delete(queue)).json()
        assert set(reset["queue"].values()) == {None}


@virtual_time
async def test_t2_an_unknown_queue_option_and_a_bad_one_are_named() -> None:
    async with served(Headway()) as http:
        for body, field in (
            ({"mod": "collect"}, "mod"),
            ({"mode": "colect"}, "mode"),
            ({"cap": 0}, "cap"),
            ({"debounce": "soon"}, "debounce"),
        ):
            refused = await http.patch("/sessions/one/queue", json=body)
            assert refusal(refused)[0] == 400
            assert refused.json()["details"]["field"] == field


@virtual_time
async def test_s9_stop_ends_the_running_turn_and_says_so() -> None:
    hw = headway(asyncio.Event())
    async with served(hw) as http:
        handle = await hw.submit("support", "x", session="one")
        await settle()
        answer = await http.post("/sessions/one/stop")
        assert answer.json() == {
            "key": "one",
            "running": 1,
            "waiting": 0,
            "text": "1 running stopped",
        }
        assert (await handle.wait()).reason == "stopped"
        again = (await http.post("/sessions/one/stop")).json()
        assert again["text"] == "nothing to stop"


@virtual_time
async def test_s9_stopall_ends_what_runs_and_what_waits() -> None:
    hw = headway(asyncio.Event())
    async with served(hw) as http:
        handles = [await hw.submit("support", str(number), session=ODD) for number in range(3)]
        await settle()
        answer = (await http.post(path("sessions", ODD, "stopall"))).json()
        assert (answer["running"], answer["waiting"]) == (1, 2)
        assert {(await handle.wait()).reason for handle in handles} == {"stopped"}


@virtual_time
async def test_s5_clear_ends_what_waits_and_lets_run_what_runs() -> None:
    gate = asyncio.Event()
    hw = headway(gate)
    async with served(hw) as http:
        handles = [await hw.submit("support", str(number), session="one") for number in range(3)]
        await settle()
        assert (await http.post("/sessions/one/clear")).json() == {"key": "one", "cleared": 2}
        gate.set()
        assert [(await handle.wait()).reason for handle in handles] == [None, "cleared", "cleared"]


EVERYTHING_OF_A_SESSION = (
    ("GET", ""),
    ("PATCH", "/queue"),
    ("DELETE", "/queue"),
    ("POST", "/clear"),
    ("POST", "/stop"),
    ("POST", "/stopall"),
)


async def everything(http: httpx.AsyncClient, key: str) -> list[int]:
    """The statuses of all that can be asked of a session."""
    return [
        (await http.request(method, path("sessions", key) + rest)).status_code
        for method, rest in EVERYTHING_OF_A_SESSION
    ]


@virtual_time
async def test_o4_a_token_for_one_agent_sees_only_sessions_with_that_agents_runs() -> None:
    hw = headway(asyncio.Event())
    async with opened(hw) as gateway, bearing(gateway, hw, "admin", agent="support") as http:
        mine = await hw.submit("support", "x", session="mine")
        theirs = await hw.submit("sales", "x", session="theirs")
        await hw.submit("support", "x", session="shared")
        await hw.submit("sales", "x", session="shared")
        await settle()
        listed = (await http.get("/sessions")).json()
        assert [session["key"] for session in listed["sessions"]] == ["mine"]
        assert await everything(http, "theirs") == [404] * 6
        assert await everything(http, "unheard of") == [404] * 6
        assert await everything(http, "shared") == [403] * 6
        assert refusal(await http.get("/sessions", params={"agentId": "sales"}))[0] == 403
        assert (await hw.run(theirs)).state == "running"
        assert await everything(http, "mine") == [200] * 6
        assert (await mine.wait()).reason == "stopped"


@virtual_time
async def test_o4_an_idle_session_is_its_last_agents_or_by_its_key() -> None:
    gate = asyncio.Event()
    gate.set()
    hw = headway(gate)
    async with opened(hw) as gateway, bearing(gateway, hw, "control", agent="support") as http:
        await hw.send("support", "x", session="was mine")
        await hw.send("sales", "x", session="was theirs")
        assert (await http.get("/sessions/was%20mine")).status_code == 200
        assert refusal(await http.get("/sessions/was%20theirs")) == (404, "not_found")
        fresh = path("sessions", "agent:support:web:dm:7", "queue")
        assert (await http.patch(fresh, json={"cap": 3})).json()["queue"]["cap"] == 3
        others = path("sessions", "agent:support2:web:dm:7", "queue")
        assert refusal(await http.patch(others, json={"cap": 3})) == (404, "not_found")


@virtual_time
async def test_o4_who_may_only_submit_stops_and_does_not_set_options() -> None:
    async with asked_by(Headway(), "submit") as http:
        assert (await http.post("/sessions/one/stop")).status_code == 200
        refused = await http.patch("/sessions/one/queue", json={"cap": 3})
        assert refusal(refused) == (403, "forbidden")
    async with asked_by(Headway(), "read") as http:
        assert (await http.get("/sessions/one")).status_code == 200
        assert refusal(await http.post("/sessions/one/stop")) == (403, "forbidden")
