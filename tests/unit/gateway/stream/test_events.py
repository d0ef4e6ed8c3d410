"""`GET /events`: what can be asked for, and what is refused (O-3, O-4)."""

import asyncio

import httpx
import msgspec
import pytest

from headway import Headway, Turn
from headway.model.server import ServerSettings
from headway.model.words import Scope
from headway.testing import virtual_time
from tests.unit.gateway.calling import client, opened, served


def quick() -> Headway:
    hw = Headway()

    @hw.agent("a")
    async def a(turn: Turn) -> str:
        return ""

    hw.agent("b")(a)
    return hw


def told(answer: httpx.Response) -> list[tuple[str, dict[str, object]]]:
    """The ids and the data of all events of a stream that has ended."""
    assert answer.status_code == httpx.codes.OK, answer.text
    events = []
    for block in answer.text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "data" in lines:
            events.append((lines["id"], msgspec.json.decode(lines["data"])))
    return events


async def happened(
    http: httpx.AsyncClient, **params: object
) -> list[tuple[str, dict[str, object]]]:
    """What has happened by now."""
    asked = {"follow": "false", **params}
    return told(await http.get("/events", params=asked))  # type: ignore[arg-type]


@virtual_time
async def test_all_that_is_remembered_without_following() -> None:
    hw = quick()
    async with served(hw) as http:
        run = await hw.submit("a", "x")
        await run.wait()
        kinds = [data["event"] for _, data in await happened(http)]
        assert kinds == ["RunSubmitted", "RunStarted", "RunFinished"]


@virtual_time
async def test_each_word_narrows_it() -> None:
    hw = quick()
    async with served(hw) as http:
        first = await hw.submit("a", "x", session="s")
        await first.wait()
        await (await hw.submit("b", "y", session="t")).wait()
        assert {data["agent"] for _, data in await happened(http, agentId="b")} == {"b"}
        assert {data["session"] for _, data in await happened(http, session="s")} == {"s"}
        assert {data["runId"] for _, data in await happened(http, runId=first.id)} == {first.id}
        names = ["RunStarted", "RunFinished"]
        repeated = await happened(http, event=names)
        assert repeated == await happened(http, event=",".join(names))
        assert {data["event"] for _, data in repeated} == set(names)


@virtual_time
async def test_the_latest_and_those_behind_an_id() -> None:
    hw = quick()
    async with served(hw) as http:
        for _ in range(5):
            await (await hw.submit("a", "x")).wait()
        finished = await happened(http, event="RunFinished")
        assert await happened(http, event="RunFinished", last=2) == finished[-2:]
        assert await happened(http, event="RunFinished", after=finished[1][0]) == finished[2:]


@virtual_time
async def test_who_comes_back_is_believed_before_its_address() -> None:
    """A browser that reconnects repeats its address, `after` and all, and adds what it saw last."""
    hw = quick()
    async with served(hw) as http:
        for _ in range(5):
            await (await hw.submit("a", "x")).wait()
        finished = await happened(http, event="RunFinished")
        answer = await http.get(
            "/events",
            params={"follow": "false", "event": "RunFinished", "after": finished[0][0]},
            headers={"Last-Event-ID": finished[3][0]},
        )
        assert told(answer) == finished[4:]


@virtual_time
async def test_a_gap_is_told() -> None:
    hw = quick()
    async with served(hw, ServerSettings(event_memory=4)) as http:
        for _ in range(5):
            await (await hw.submit("a", "x")).wait()
        (last_id, _), *_ = await happened(http, last=1)
        boot = last_id.partition("-")[0]
        (gap_id, gap), *rest = await happened(http, after=f"{boot}-3")
        assert (gap["event"], gap["count"]) == ("EventsMissed", 8)
        assert (gap_id, len(rest)) == (f"{boot}-11", 4)
        (_, gap), *rest = await happened(http, after="earlier-3")
        assert (gap["event"], len(rest)) == ("EventsMissed", 4)


@virtual_time
async def test_o4_a_token_of_one_agent_sees_only_what_names_it() -> None:
    hw = quick()
    async with opened(hw) as gateway:
        _, secret = await hw.tokens.create("bs", [Scope.READ], agent="b")
        await (await hw.submit("a", "x")).wait()
        await (await hw.submit("b", "x")).wait()
        hw.set_lane("main", 3)
        await asyncio.sleep(5)
        async with client(gateway, token=secret) as http:
            seen = await happened(http)
            assert {data["agent"] for _, data in seen} == {"b"}
            other = await http.get("/events", params={"agentId": "a", "follow": "false"})
            assert other.status_code == httpx.codes.FORBIDDEN
        async with client(gateway) as nobody:
            asked = {"follow": "false"}
            assert (await nobody.get("/events", params=asked)).status_code == 401
            asked["access_token"] = secret
            assert told(await nobody.get("/events", params=asked)) == seen


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"event": "RunFinishd"}, "event"),
        ({"event": ","}, "event"),
        ({"after": "yesterday"}, "after"),
        ({"last": "-1"}, "last"),
        ({"last": "many"}, "last"),
        ({"follow": "perhaps"}, "follow"),
        ({"lastEventId": "x-1"}, "lastEventId"),
        ({"wanted": "all"}, "wanted"),
    ],
)
def test_t2_what_cannot_be_understood_is_refused_by_name(
    params: dict[str, str], field: str
) -> None:
    @virtual_time
    async def refused() -> None:
        async with served(quick()) as http:
            answer = await http.get("/events", params=params)
            assert answer.status_code == httpx.codes.BAD_REQUEST
            assert answer.json()["details"]["field"] == field

    refused()


@virtual_time
async def test_a_last_event_id_of_another_stream_is_told_as_a_gap() -> None:
    async with served(quick()) as http:
        answer = await http.get(
            "/events", params={"follow": "false"}, headers={"Last-Event-ID": "yesterday"}
        )
        assert answer.status_code == httpx.codes.OK
        assert "event: EventsMissed" in answer.text
