"""`callbackUrl` of tasks and batches over HTTP (T-1, T-2, T-4)."""

import asyncio
import socket
from collections.abc import Sequence

import httpx
import pytest

from headway import Headway, Settings, Turn
from headway.channels.callback import CallbackChannel
from headway.testing import virtual_time
from tests.unit.gateway.asking import refusal
from tests.unit.gateway.calling import served
from tests.unit.runtime.hooks import Hooks, settings

CLICK = {"agentId": "browser", "action": "click"}


def headway(fields: Settings | None = None) -> Headway:
    hw = Headway(settings=settings() if fields is None else fields)

    @hw.agent("browser")
    async def browser(turn: Turn) -> str:
        await asyncio.sleep(1)
        return "clicked"

    return hw


async def names(host: str, port: int) -> Sequence[str]:
    if host != "localhost":
        raise socket.gaierror(f"{host}:{port}")
    return ["127.0.0.1"]


async def posted(http: httpx.AsyncClient, path: str, **fields: object) -> httpx.Response:
    return await http.post(path, json={"agentId": "browser", **fields})


@virtual_time
async def test_t4_a_task_and_a_batch_call_back() -> None:
    hooks, hw = Hooks(), headway()
    async with served(hw) as http:
        hooks.use(hw)
        first = await posted(http, "/tasks", action="click", callbackUrl="https://one.example/a")
        assert first.status_code == 202, first.text
        tasks = [{"action": "a"}, {"action": "b", "callbackUrl": "https://own.example/b"}]
        many = {"tasks": tasks, "callbackUrl": "https://batch.example/c"}
        batch = await posted(http, "/tasks/batch", **many)
        assert batch.status_code == 202, batch.text
        together = await posted(http, "/tasks/batch", **many, atomic=True)
        assert together.status_code == 202, together.text
        await asyncio.sleep(10)
        assert len(hooks.notices("one.example")) == 1
        assert [notice["action"] for notice in hooks.notices("batch.example")] == ["a", "a"]
        assert [notice["action"] for notice in hooks.notices("own.example")] == ["b", "b"]
        (notice,) = hooks.notices("one.example")
        assert (notice["taskId"], notice["text"]) == (first.json()["taskId"], "clicked")


@virtual_time
async def test_t4_without_a_secret_the_answer_says_what_to_set() -> None:
    async with served(headway(Settings())) as http:
        refused = await posted(http, "/tasks", action="x", callbackUrl="https://one.example/?k=s3")
        assert refusal(refused) == (400, "invalid_input")
        body = refused.json()
        assert body["details"]["field"] == "callbackUrl"
        assert body["error"].startswith("callbackUrl: ")
        assert "HEADWAY_CALLBACKS_SECRET" in body["error"]
        assert "k=s3" not in refused.text
        assert (await http.get("/tasks")).json()["tasks"] == []


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:9/", "http://[::1]/", "http://169.254.169.254/latest/meta-data/"),
        *(
            "http://2130706433/",
            "http://0x7f.1/",
            "http://user:pw@example.com/",
            "ftp://x.example/",
        ),
        *("https://", "http://localhost/", "http://no-such-host.invalid/", "http://a b/", "", 7),
    ],
)
def test_t4_an_address_that_may_not_be_told_is_a_400(url: object) -> None:
    async def main() -> None:
        hw = headway()
        async with served(hw) as http:
            telling = CallbackChannel(hw.settings.callbacks, resolve=names)
            hw.engine.set_callbacks(telling, telling.check)
            for path, fields in (
                ("/tasks", {"action": "x", "callbackUrl": url}),
                ("/tasks/batch", {"tasks": [{"action": "x"}], "callbackUrl": url}),
                ("/tasks/batch", {"tasks": [{"action": "x", "callbackUrl": url}], "atomic": True}),
            ):
                refused = await posted(http, path, **fields)
                assert refused.status_code == 400, (path, refused.text)
                assert "callbackUrl" in refused.text
            assert (await http.get("/tasks")).json()["tasks"] == []

    asyncio.run(asyncio.wait_for(main(), 60))


@virtual_time
async def test_t4_a_dead_callback_is_listed_without_its_query_and_replayed() -> None:
    hooks, hw = Hooks(), headway()
    hooks.failing["down.example"] = ConnectionError("no route")
    async with served(hw) as http:
        hooks.use(hw)
        url = "https://down.example/hook?token=s3cret"
        task = (await posted(http, "/tasks", action="x", callbackUrl=url)).json()["taskId"]
        await asyncio.sleep(25 * 3600)
        listed = await http.get("/outbox", params={"channel": "headway.callback"})
        assert "s3cret" not in listed.text
        (letter,) = listed.json()["letters"]
        assert letter["id"] == f"{task}.callback"
        assert letter["route"] == {"channel": "headway.callback", "to": "https://down.example/hook"}
        assert letter["tries"] > 100
        assert "no route" in letter["error"]
        hooks.failing.clear()
        assert (await http.post(f"/outbox/{letter['id']}/retry")).status_code == 200
        await asyncio.sleep(10)
        assert [notice["taskId"] for notice in hooks.notices()] == [task]
