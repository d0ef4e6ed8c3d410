"""Nodes over HTTP: who shares the work of a store (D-2)."""

import asyncio
from pathlib import Path

from headway import Headway
from headway.testing import virtual_time
from tests.unit.gateway.asking import asked_by
from tests.unit.gateway.calling import served


@virtual_time
async def test_a_node_shows_itself() -> None:
    hw = Headway(name="here")
    async with served(hw) as http:
        body = (await http.get("/nodes")).json()
        (node,) = body["nodes"]
        assert (node["name"], node["state"], node["lease"]) == ("here", "alive", "30s")
        assert (node["node"], body["cursor"]) == (hw.node, None)


def test_nodes_that_have_ended_are_listed_when_asked_for_the_latest_first(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/nodes.db"

    def node(name: str) -> Headway:
        hw = Headway(store, name=name)
        hw.commands()
        return hw

    async def live(name: str) -> None:
        async with node(name):
            pass

    async def ask() -> None:
        async with served(node("last")) as http:
            alive = (await http.get("/nodes")).json()["nodes"]
            assert [each["name"] for each in alive] == ["last"]
            seen: list[tuple[str, str]] = []
            params: dict[str, str | int] = {"all": "true", "limit": 2}
            while True:
                page = (await http.get("/nodes", params=params)).json()
                seen += [(each["name"], each["state"]) for each in page["nodes"]]
                if page["cursor"] is None:
                    break
                params["cursor"] = page["cursor"]
            assert seen[0] == ("last", "alive")
            assert seen[1:] == [("two", "retired"), ("one", "retired")]

    for name in ("one", "two"):
        asyncio.run(live(name))
    asyncio.run(ask())


@virtual_time
async def test_o4_a_token_for_one_agent_sees_the_nodes() -> None:
    async with asked_by(Headway(), "read", agent="support") as http:
        assert (await http.get("/nodes")).status_code == 200
