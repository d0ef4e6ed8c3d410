"""`/healthz` and `/readyz` tell the truth."""

from headway import Headway
from headway.gateway import build_app
from headway.testing import virtual_time
from tests.unit.gateway.calling import client


@virtual_time
async def test_a_server_is_ready_only_while_its_headway_runs() -> None:
    hw = Headway()
    gateway = build_app(hw)
    async with client(gateway, host="10.0.0.9") as http:
        assert (await http.get("/healthz")).json() == {"status": "ok"}
        before = await http.get("/readyz")
        assert (before.status_code, before.json()["reasons"]) == (503, ["not started"])
        async with hw, gateway:
            ready = await http.get("/readyz")
            assert (ready.status_code, ready.json()) == (200, {"ready": True, "reasons": []})
        assert (await http.get("/readyz")).status_code == 503


@virtual_time
async def test_before_the_start_everything_else_is_told_to_come_later() -> None:
    async with client(build_app(Headway())) as http:
        answer = await http.get("/tasks")
        assert (answer.status_code, answer.json()["code"]) == (503, "not_running")
        assert answer.headers["retry-after"] == "1"
