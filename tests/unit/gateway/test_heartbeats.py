"""Heartbeats over HTTP: given, woken, paused, and what they look after (H-1, H-2, H-4)."""

import asyncio
from pathlib import Path

from headway import Headway, Turn
from headway.testing import virtual_time
from tests.unit.gateway.asking import asked_by, bearing, refusal
from tests.unit.gateway.calling import opened, served


def headway() -> Headway:
    hw = Headway()

    @hw.agent("support")
    async def support(turn: Turn) -> str:
        return "the printer is on fire"

    @hw.agent("sales")
    async def sales(turn: Turn) -> str:
        return "HEARTBEAT_OK"

    return hw


@virtual_time
async def test_h1_what_is_not_said_is_at_its_default() -> None:
    async with served(headway()) as http:
        body = (await http.put("/heartbeats/support", json={})).json()
        state = body.pop("state")
        assert state["nextRunAt"] is not None
        assert {**body, "id": "", "createdAt": ""} == {
            "agentId": "support",
            "id": "",
            "enabled": True,
            "every": "30m",
            "hours": None,
            "target": "last",
            "checklist": None,
            "prompt": None,
            "session": "main",
            "lane": None,
            "timeout": None,
            "ackMaxChars": 300,
            "createdAt": "",
        }


@virtual_time
async def test_h1_all_of_a_heartbeat_can_be_said_and_reads_the_same() -> None:
    said = {
        "every": "20m",
        "hours": {"hours": "22:00-06:00", "tz": "Europe/Paris"},
        "target": {"channel": "telegram", "to": "42"},
        "prompt": "Look after it.",
        "session": "isolated",
        "lane": "cron",
        "timeout": "5m",
        "ackMaxChars": 10,
        "checklist": None,
    }
    async with served(headway()) as http:
        set_ = (await http.put("/heartbeats/support", json=said)).json()
        assert {name: set_[name] for name in said} == said
        assert (await http.get("/heartbeats/support")).json() == set_


@virtual_time
async def test_h1_malformed_hours_are_refused_by_name() -> None:
    async with served(headway()) as http:
        for hours, field in (
            ({"hours": "9-17"}, "hours.hours"),
            ({"hours": "09:00-09:00"}, "hours.hours"),
            ({"hours": "09:00-17:00", "tz": "Mars/Olympus"}, "tz"),
            ("09:00-17:00", "hours"),
        ):
            refused = await http.put("/heartbeats/support", json={"hours": hours})
            assert refusal(refused)[0] == 400
            assert refused.json()["details"]["field"] == field
        refused = await http.put("/heartbeats/support", json={"every": "0s"})
        assert refused.json()["details"]["field"] == "every"


@virtual_time
async def test_heartbeats_are_listed_by_agent_a_page_at_a_time() -> None:
    async with served(headway()) as http:
        for agent in ("support", "sales", "b/c"):
            assert (await http.put(f"/heartbeats/{agent.replace('/', '%2F')}", json={})).is_success
        first = (await http.get("/heartbeats", params={"limit": 2})).json()
        rest = (await http.get("/heartbeats", params={"cursor": first["cursor"]})).json()
        listed = [one["agentId"] for page in (first, rest) for one in page["heartbeats"]]
        assert (listed, rest["cursor"]) == (["b/c", "sales", "support"], None)


@virtual_time
async def test_h4_a_wake_is_soon_and_its_log_says_what_became_of_it() -> None:
    async with served(headway()) as http:
        await http.put("/heartbeats/support", json={"prompt": "look"})
        woken = (await http.post("/heartbeats/support/wake")).json()
        assert woken["agentId"] == "support"
        assert woken["wakeAt"] is not None
        await asyncio.sleep(5)
        log = (await http.get("/heartbeats/support/log")).json()
        (entry,) = log["entries"]
        assert entry["outcome"]["text"] == "the printer is on fire"


@virtual_time
async def test_h4_a_paused_heartbeat_is_not_woken() -> None:
    async with served(headway()) as http:
        await http.put("/heartbeats/support", json={})
        assert (await http.post("/heartbeats/support/pause")).json()["enabled"] is False
        refused = await http.post("/heartbeats/support/wake", json={"manual": False})
        assert refusal(refused) == (409, "conflict")
        assert (await http.post("/heartbeats/support/resume")).json()["enabled"] is True
        assert (await http.post("/heartbeats/support/wake")).status_code == 200


@virtual_time
async def test_h2_a_checklist_is_kept_in_the_store_or_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "HEARTBEAT.md"
    async with served(headway()) as http:
        place = "/heartbeats/support/checklist"
        assert (await http.get(place)).json() == {"agentId": "support", "checklist": None}
        written = await http.put(place, json={"checklist": "- tickets\n"})
        assert written.json() == {"agentId": "support", "checklist": "- tickets\n"}
        assert (await http.get(place)).json()["checklist"] == "- tickets\n"
        await http.put("/heartbeats/support", json={"checklist": str(file)})
        await http.put(place, json={"checklist": "- printers\n"})
        assert file.read_text() == "- printers\n"
        assert (await http.get(place)).json()["checklist"] == "- printers\n"


@virtual_time
async def test_a_checklist_whose_file_cannot_be_used_is_told(tmp_path: Path) -> None:
    async with served(headway()) as http:
        await http.put("/heartbeats/support", json={"checklist": str(tmp_path / ("x" * 300))})
        refused = await http.put("/heartbeats/support/checklist", json={"checklist": "x"})
        assert refusal(refused) == (409, "conflict")


@virtual_time
async def test_t2_an_agent_without_a_heartbeat_is_404() -> None:
    async with served(headway()) as http:
        await http.put("/heartbeats/support", json={})
        assert (await http.delete("/heartbeats/support")).json() == {"removed": "support"}
        for method, rest in (
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/pause"),
            ("POST", "/resume"),
            ("POST", "/wake"),
            ("GET", "/log"),
        ):
            refused = await http.request(method, f"/heartbeats/support{rest}")
            assert refusal(refused) == (404, "not_found")


@virtual_time
async def test_o4_a_token_for_one_agent_sees_only_its_heartbeat() -> None:
    hw = headway()
    async with opened(hw) as gateway, bearing(gateway, hw, "control", agent="support") as http:
        await hw.heartbeats.set("support")
        await hw.heartbeats.set("sales")
        listed = (await http.get("/heartbeats")).json()["heartbeats"]
        assert [one["agentId"] for one in listed] == ["support"]
        for method, rest in (("GET", ""), ("DELETE", ""), ("POST", "/wake"), ("GET", "/checklist")):
            refused = await http.request(method, f"/heartbeats/sales{rest}")
            assert refusal(refused) == (404, "not_found")
        for place, body in (("sales", {}), ("sales/checklist", {"checklist": "x"})):
            refused = await http.put(f"/heartbeats/{place}", json=body)
            assert refusal(refused) == (403, "forbidden")
        assert (await http.put("/heartbeats/support", json={"every": "1h"})).status_code == 200


@virtual_time
async def test_o4_a_checklist_in_a_file_needs_admin(tmp_path: Path) -> None:
    body = {"checklist": str(tmp_path / "HEARTBEAT.md")}
    async with asked_by(headway(), "control") as http:
        refused = await http.put("/heartbeats/support", json=body)
        assert refusal(refused) == (403, "forbidden")
        kept = await http.put("/heartbeats/support", json={"checklist": ""})
        assert kept.json()["checklist"] is None
    async with asked_by(headway(), "admin") as http:
        assert (await http.put("/heartbeats/support", json=body)).status_code == 200
