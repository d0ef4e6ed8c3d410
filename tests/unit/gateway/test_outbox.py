"""The outbox over HTTP: what waits to be said, and what was given up."""

import asyncio

from headway import Headway, Route, Turn
from headway.model.errors import Permanent
from headway.model.places import Delivery
from headway.testing import virtual_time
from tests.unit.gateway.asking import asked_by, path, refusal
from tests.unit.gateway.calling import served


def headway(delivered: list[str], broken: list[bool]) -> Headway:
    """An agent whose replies cannot be delivered while it is broken."""
    hw = Headway()

    @hw.agent("support")
    async def support(turn: Turn) -> str:
        return f"reply to {turn.text}"

    @hw.channel("web")
    async def web(delivery: Delivery) -> None:
        if broken:
            raise Permanent("blocked")
        if delivery.text:
            delivered.append(delivery.text)

    return hw


async def say(hw: Headway, text: str) -> None:
    await hw.send("support", text, route=Route("web", peer=text))
    await asyncio.sleep(1)


@virtual_time
async def test_what_was_given_up_is_shown_and_can_be_tried_again() -> None:
    delivered: list[str] = []
    broken = [True]
    hw = headway(delivered, broken)
    async with served(hw) as http:
        await say(hw, "one")
        body = (await http.get("/outbox")).json()
        (letter,) = body["letters"]
        assert (letter["state"], letter["text"]) == ("dead", "reply to one")
        assert letter["route"] == {"channel": "web", "to": "one"}
        assert "blocked" in letter["error"]
        assert (await http.get("/outbox", params={"state": "waiting"})).json()["letters"] == []
        broken.clear()
        again = await http.post(path("outbox", letter["id"], "retry"))
        assert again.json() == {"id": letter["id"], "retried": True}
        await asyncio.sleep(10)
        assert delivered == ["reply to one"]
        assert (await http.get("/outbox")).json() == {"letters": [], "cursor": None}
        refused = await http.post(path("outbox", letter["id"], "retry"))
        assert refusal(refused) == (404, "not_found")


@virtual_time
async def test_t4_what_waits_is_shown_with_its_next_try_beside_what_was_given_up() -> None:
    hw = headway([], [True])

    @hw.channel("mail")
    async def mail(delivery: Delivery) -> None:
        raise OSError("no network")

    async with served(hw) as http:
        await say(hw, "one")
        await hw.send("support", "two", route=Route("mail", peer="two"))
        await asyncio.sleep(1)
        body = (await http.get("/outbox", params={"state": "all"})).json()
        given_up, waits = body["letters"]
        assert (given_up["state"], given_up["nextAt"]) == ("dead", None)
        assert (waits["state"], waits["text"]) == ("waiting", "reply to two")
        assert "no network" in waits["error"]
        assert waits["tries"] > 0
        assert waits["nextAt"] > waits["firstAt"]
        only = (await http.get("/outbox", params={"state": "waiting"})).json()
        assert [letter["id"] for letter in only["letters"]] == [waits["id"]]


@virtual_time
async def test_letters_are_paged_the_oldest_first() -> None:
    hw = headway([], [True])
    async with served(hw) as http:
        for number in range(3):
            await say(hw, str(number))
        first = (await http.get("/outbox", params={"limit": 2})).json()
        rest = (await http.get("/outbox", params={"cursor": first["cursor"]})).json()
        texts = [letter["text"] for page in (first, rest) for letter in page["letters"]]
        assert texts == ["reply to 0", "reply to 1", "reply to 2"]
        other = (await http.get("/outbox", params={"channel": "mail"})).json()
        assert other["letters"] == []
        wrong = await http.get("/outbox", params={"state": "alive"})
        assert refusal(wrong)[0] == 400
        assert "one of: all, dead, waiting" in wrong.json()["error"]


@virtual_time
async def test_o4_letters_of_all_agents_are_not_for_a_token_of_one() -> None:
    async with asked_by(Headway(), "admin", agent="support") as http:
        assert refusal(await http.get("/outbox")) == (403, "forbidden")
        assert refusal(await http.post("/outbox/x/retry")) == (403, "forbidden")
    async with asked_by(Headway(), "read") as http:
        assert (await http.get("/outbox")).status_code == 200
        assert refusal(await http.post("/outbox/x/retry")) == (403, "forbidden")
