"""The task API over HTTP (T-1, T-2, T-5), in memory and on SQLite."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from headway import Headway, Settings, Turn
from headway.model.settings import Limits
from tests.unit.gateway.calling import client, opened, served

CLICK = {"agentId": "browser", "action": "click"}


class Browser:
    """An agent that does tasks, each once it is let go."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.turns: list[Turn] = []
        self.began = asyncio.Event()

    async def __call__(self, turn: Turn) -> str:
        self.turns.append(turn)
        self.began.set()
        await self.go_on.wait()
        assert turn.task is not None
        return f"did {turn.task.action}"


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., tuple[Headway, Browser]]:
    """A Headway on one of the stores, with the agents `browser` and `other`."""
    store = None if request.param == "memory" else f"sqlite:///{tmp_path}/headway.db"

    def made(**limits: int) -> tuple[Headway, Browser]:
        hw = Headway(store, settings=Settings(limits=Limits(**limits)))
        browser = Browser()
        hw.agent("browser")(browser)
        hw.agent("other")(browser)
        return hw, browser

    return made


Make = Callable[..., tuple[Headway, Browser]]


async def accepted(http: httpx.AsyncClient, **fields: object) -> dict[str, object]:
    answer = await http.post("/tasks", json={**CLICK, **fields})
    assert answer.status_code == 202, answer.text
    told: dict[str, object] = answer.json()
    assert answer.headers["location"] == f"/tasks/{told['taskId']}"
    return told


async def until(http: httpx.AsyncClient, task_id: object, state: str) -> dict[str, object]:
    """The task once it is in this state."""
    while True:
        told: dict[str, object] = (await http.get(f"/tasks/{task_id}")).json()
        if told["state"] == state:
            return told
        await asyncio.sleep(0)


def test_t1_a_task_from_submission_to_result(make: Make) -> None:
    async def main() -> None:
        hw, browser = make()
        async with served(hw) as http:
            sent = {"tabId": "t", "selector": "#a", "ref": "e1", "params": {"x": [1, {"y": None}]}}
            told = await accepted(http, **sent, priority=3, deadline="90s")
            assert set(told) == {"taskId", "state", "position", "createdAt"}
            assert told["position"] == 0
            await browser.began.wait()
            running = await until(http, told["taskId"], "running")
            assert {key: running[key] for key in sent} == sent
            assert running["priority"] == 3
            assert running["position"] == 0
            browser.go_on.set()
            done = await until(http, told["taskId"], "done")
            assert done["outcome"]["text"] == "did click"  # type: ignore[index]
            assert done["position"] is None

    asyncio.run(main())


def test_t5_position_is_the_number_of_starts_ahead(make: Make) -> None:
    async def main() -> None:
        hw, browser = make(max_inflight=1)
        async with served(hw) as http:
            first = await accepted(http)
            await until(http, first["taskId"], "running")
            waiting = [await accepted(http) for _ in range(3)]
            assert [told["position"] for told in waiting] == [0, 1, 2]
            urgent = await accepted(http, priority=-5)
            assert urgent["position"] == 0
            listed = (await http.get("/tasks", params={"state": "queued"})).json()["tasks"]
            by_id = {told["taskId"]: told["position"] for told in listed}
            assert [by_id[told["taskId"]] for told in waiting] == [1, 2, 3]
            browser.go_on.set()

    asyncio.run(main())


def test_t5_the_places_of_a_page_are_those_of_one_moment() -> None:
    """A page is looked up at once: a server with much to do would else look again for each of its tasks."""

    async def main() -> None:
        hw = Headway(settings=Settings(limits=Limits(max_inflight=1)))
        browser = Browser()
        hw.agent("browser")(browser)
        hw.agent("other")(browser)
        async with served(hw) as http:
            for _ in range(40):
                await hw.submit("browser", task={"action": "x"})
            known = [(await hw.submit("other", task={"action": "x"})).id for _ in range(40)]

            async def hurry() -> None:
                for _ in range(60):
                    await hw.submit("other", task={"action": "x"}, priority=-5)
                    await asyncio.sleep(0)

            hurrying = asyncio.create_task(hurry())
            listed = (await http.get("/tasks", params={"agentId": "other"})).json()["tasks"]
            hurrying.cancel()
            places = [task["position"] for task in listed if task["taskId"] in known]
            assert len(places) == 40
            assert len(set(places)) == 40
            browser.go_on.set()

    asyncio.run(main())


def test_f1_t2_a_full_queue_says_when_to_come_back(make: Make) -> None:
    async def main() -> None:
        hw, browser = make(max_inflight=1, max_queue_per_agent=2)
        async with served(hw) as http:
            first = await accepted(http)
            await until(http, first["taskId"], "running")
            for _ in range(2):
                await accepted(http)
            full = await http.post("/tasks", json=CLICK)
            assert full.status_code == 429
            assert int(full.headers["retry-after"]) >= 1
            assert (full.json()["code"], full.json()["retryable"]) == ("queue_full", True)
            await until(http, full.json()["details"]["run"], "rejected")
            refused = (await http.get("/tasks", params={"state": "rejected"})).json()["tasks"]
            assert [told["taskId"] for told in refused] == [full.json()["details"]["run"]]
            browser.go_on.set()

    asyncio.run(main())


def test_t2_a_batch_counts_only_the_admitted_and_tells_of_each(make: Make) -> None:
    async def main() -> None:
        hw, browser = make(max_inflight=1, max_queue_per_agent=2)
        async with served(hw) as http:
            first = await accepted(http)
            await until(http, first["taskId"], "running")
            batch = {"agentId": "browser", "tasks": [{"action": f"a{n}"} for n in range(3)]}
            partly = await http.post("/tasks/batch", json=batch)
            assert partly.status_code == 202
            assert partly.json()["submitted"] == 2
            items = partly.json()["items"]
            assert [item["position"] for item in items] == [0, 1, None]
            assert items[0]["error"] is None
            assert items[2]["error"]["code"] == "queue_full"
            none = await http.post("/tasks/batch", json=batch)
            assert none.status_code == 429
            assert int(none.headers["retry-after"]) >= 1
            assert none.json()["details"]["submitted"] == 0
            assert len(none.json()["details"]["items"]) == 3
            browser.go_on.set()

    asyncio.run(main())


def test_t5_an_atomic_batch_is_taken_whole_or_not_at_all(make: Make) -> None:
    async def main() -> None:
        hw, browser = make(max_inflight=1, max_queue_per_agent=2)
        async with served(hw) as http:
            first = await accepted(http)
            await until(http, first["taskId"], "running")
            batch = {"agentId": "browser", "atomic": True, "tasks": [{"action": "a"}] * 3}
            refused = await http.post("/tasks/batch", json=batch)
            assert (refused.status_code, refused.json()["code"]) == (429, "queue_full")
            assert (await http.get("/tasks", params={"state": "queued"})).json()["tasks"] == []
            wrong = {**batch, "tasks": [{"action": "a"}, {"action": "b", "deadline": "1x"}]}
            named = await http.post("/tasks/batch", json=wrong)
            assert named.status_code == 400
            assert named.json()["details"]["field"] == "tasks[1].deadline"
            taken = await http.post("/tasks/batch", json={**batch, "tasks": [{"action": "a"}] * 2})
            assert (taken.status_code, taken.json()["submitted"]) == (202, 2)
            browser.go_on.set()

    asyncio.run(main())


def test_t5_cancelling_answers_at_once_and_tells_the_truth(make: Make) -> None:
    async def main() -> None:
        hw, browser = make(max_inflight=1)
        deaf = asyncio.Event()

        @hw.agent("deaf")
        async def slow_to_end(turn: Turn) -> str:
            try:
                await browser.go_on.wait()
            except asyncio.CancelledError:
                await deaf.wait()
                raise
            return ""

        async with served(hw) as http:
            running = await accepted(http, agentId="deaf")
            await until(http, running["taskId"], "running")
            waiting = await accepted(http)
            ended = await http.post(f"/tasks/{waiting['taskId']}/cancel")
            assert (ended.status_code, ended.json()["state"]) == (200, "cancelled")
            asked = await http.post(f"/tasks/{running['taskId']}/cancel")
            assert asked.status_code == 200
            assert (asked.json()["state"], asked.json()["cancelling"]) == ("running", True)
            deaf.set()
            over = await until(http, running["taskId"], "cancelled")
            assert over["cancelling"] is False
            again = await http.post(f"/tasks/{running['taskId']}/cancel")
            assert (again.status_code, again.json()["code"]) == (409, "already_over")
            assert (await http.post("/tasks/nobody-1/cancel")).status_code == 404

    asyncio.run(main())


def test_d6_a_key_in_the_body_or_the_header_is_the_same_task(make: Make) -> None:
    async def main() -> None:
        hw, browser = make()
        async with served(hw) as http:
            first = await accepted(http, idempotencyKey="k1")
            by_header = await http.post("/tasks", json=CLICK, headers={"idempotency-key": "k1"})
            assert by_header.json()["taskId"] == first["taskId"]
            both = {**CLICK, "idempotencyKey": "k2"}
            differ = await http.post("/tasks", json=both, headers={"idempotency-key": "k3"})
            assert differ.status_code == 409
            assert differ.json()["details"]["field"] == "Idempotency-Key"
            browser.go_on.set()

    asyncio.run(main())


def test_f5_a_deadline_that_has_passed_ends_the_task_at_once(make: Make) -> None:
    async def main() -> None:
        hw, browser = make()
        async with served(hw) as http:
            told = await accepted(http, deadline="2020-01-01T00:00:00Z")
            over = await until(http, told["taskId"], "failed")
            assert over["outcome"]["reason"] == "deadline_queued"  # type: ignore[index]
            assert browser.turns == []

    asyncio.run(main())


def test_o4_a_token_of_one_agent_sees_and_cancels_only_what_is_its_own(make: Make) -> None:
    async def main() -> None:
        hw, browser = make()
        async with opened(hw) as gateway:
            _, bound = await hw.tokens.create("bound", ["submit"], agent="browser")
            _, free = await hw.tokens.create("free", ["submit"])
            async with client(gateway, token=bound) as http, client(gateway, token=free) as all_of:
                own = await accepted(http)
                foreign = await accepted(all_of, agentId="other")
                assert (await http.get(f"/tasks/{own['taskId']}")).status_code == 200
                for answer in (
                    await http.get(f"/tasks/{foreign['taskId']}"),
                    await http.post(f"/tasks/{foreign['taskId']}/cancel"),
                    await http.get(f"/runs/{foreign['taskId']}"),
                    await http.get(f"/runs/{foreign['taskId']}/why"),
                    await http.post(f"/runs/{foreign['taskId']}/cancel"),
                ):
                    assert answer.status_code == 404
                    text = answer.json()["error"].replace(str(foreign["taskId"]), "nobody-1")
                    resource = answer.request.url.path.split("/")[1]
                    unknown = await http.get(f"/{resource}/nobody-1")
                    assert text == unknown.json()["error"]
                    assert text.startswith(f"{resource[:-1]} 'nobody-1' is not known")
                asked = await http.post("/tasks", json={**CLICK, "agentId": "other"})
                assert asked.status_code == 403
                assert (await http.get("/tasks?agentId=other")).status_code == 403
                listed = (await http.get("/tasks")).json()["tasks"]
                assert [told["taskId"] for told in listed] == [own["taskId"]]
            browser.go_on.set()

    asyncio.run(main())


def test_lists_are_paged_the_newest_first(make: Make) -> None:
    async def main() -> None:
        hw, browser = make()
        async with served(hw) as http:
            made = [(await accepted(http))["taskId"] for _ in range(5)]
            await hw.submit("browser", "no task", session="s")
            pages: list[list[str]] = []
            cursor = None
            while cursor is not None or not pages:
                params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
                page = (await http.get("/tasks", params=params)).json()
                pages.append([told["taskId"] for told in page["tasks"]])
                cursor = page["cursor"]
            assert [task for page in pages for task in page] == made[::-1]
            assert all(len(page) <= 2 for page in pages)
            browser.go_on.set()

    asyncio.run(main())


def test_o3_the_callers_trace_is_continued(make: Make) -> None:
    async def main() -> None:
        hw, browser = make()
        browser.go_on.set()
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        async with served(hw) as http:
            sent = await http.post("/tasks", json=CLICK, headers={"traceparent": parent})
            assert (await hw.run(sent.json()["taskId"])).run.traceparent == parent
            odd = await http.post("/tasks", json=CLICK, headers={"traceparent": "nonsense"})
            assert (await hw.run(odd.json()["taskId"])).run.traceparent == ""

    asyncio.run(main())
