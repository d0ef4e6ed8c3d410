"""The door of a server (O-4): over HTTP, with tokens and without."""

import httpx

from headway import Headway
from headway.gateway import Gateway
from headway.gateway.access.book import FRESH
from headway.model.server import ServerSettings
from headway.model.time import SECOND
from headway.testing import virtual_time
from tests.unit.gateway.calling import client, opened, passes


async def status(gateway: Gateway, token: str = "", **options: str) -> int:
    async with client(gateway, token=token, **options) as http:
        answer = await http.get("/tasks")
        if answer.status_code == 401:
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["code"] == "unauthorized"
        return answer.status_code


@virtual_time
async def test_o4_without_tokens_only_this_machine_may_ask() -> None:
    async with opened(Headway()) as gateway:
        assert await status(gateway) == 200
        assert await status(gateway, host="10.0.0.7") == 401
        async with client(gateway) as http:
            for headers in (
                {"host": "evil.example"},
                {"origin": "https://evil.example"},
                {"x-forwarded-for": "10.0.0.7"},
            ):
                assert (await http.get("/tasks", headers=headers)).status_code == 401


@virtual_time
async def test_o4_with_tokens_everybody_needs_one() -> None:
    hw = Headway()
    async with opened(hw) as gateway:
        _, shown = await hw.tokens.create("ci", ["read"])
        assert await status(gateway, shown) == 200
        assert await status(gateway) == 401
        assert await status(gateway, shown[:-1]) == 401
        assert await status(gateway, shown, host="10.0.0.7") == 200
        async with client(gateway) as http:
            basic = await http.get("/tasks", headers={"authorization": "Basic YTpi"})
            assert basic.status_code == 401
            in_query = await http.get("/tasks", params={"access_token": shown})
            assert in_query.status_code == 401
            assert (await http.get("/healthz")).status_code == 200


@virtual_time
async def test_o4_a_revoked_token_is_refused_within_seconds() -> None:
    hw = Headway()
    async with opened(hw) as gateway:
        await hw.tokens.create("other", ["read"])
        _, shown = await hw.tokens.create("ci", ["read"], expires="1h")
        assert await status(gateway, shown) == 200
        assert await hw.tokens.revoke("ci")
        await passes(FRESH)
        assert await status(gateway, shown) == 401


@virtual_time
async def test_o4_scopes_are_asked_before_anything_is_read() -> None:
    hw = Headway()
    async with opened(hw) as gateway:
        _, shown = await hw.tokens.create("reader", ["read"])
        async with client(gateway, token=shown) as http:
            refused = await http.post("/tasks", content=b"not even json")
            assert refused.status_code == 403
            assert refused.json()["details"] == {"scope": "submit"}


@virtual_time
async def test_each_token_may_ask_so_often_and_is_told_when_again() -> None:
    hw = Headway()
    async with opened(hw, ServerSettings(requests_per_minute=2)) as gateway:
        _, one = await hw.tokens.create("one", ["read"])
        _, two = await hw.tokens.create("two", ["read"])
        answers: list[httpx.Response] = []
        async with client(gateway, token=one) as http:
            answers = [await http.get("/tasks") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[2].json()["retryable"] is True
        wait_s = int(answers[2].headers["retry-after"])
        assert await status(gateway, two) == 200
        await passes(wait_s * SECOND)
        assert await status(gateway, one) == 200
