"""The rounds of the courier: what goes out beside what, in which order, and how much is at hand."""

import asyncio
from collections import Counter

import pytest

from headway import Delivery, Headway, Route, Turn
from headway.core.callback_url import CALLBACK
from headway.model.errors import StoreUnavailable
from headway.model.events import DeliveryFailed
from headway.model.task import Task
from headway.model.time import Instant
from headway.testing import virtual_time
from tests.unit.runtime.hooks import Hooks, settings
from tests.unit.runtime.worlds import hear, now_s, only

CLICK = Task("click")


def program(**fields: object) -> Headway:
    hw = Headway(settings=settings(**fields))

    @hw.agent("a", max_inflight=500)
    async def a(turn: Turn) -> str:
        return f"re: {turn.text}"

    return hw


async def ended(hw: Headway, count: int, host: str) -> list[str]:
    """So many tasks have ended that call back there; their ids."""
    requests = [{"task": CLICK, "callback": f"http://{host}/{number}"} for number in range(count)]
    ids: list[str] = []
    for handle in await hw.submit_all("a", requests):
        assert not isinstance(handle, Exception)
        await handle.wait()
        ids.append(handle.id)
    return ids


async def until_told(hooks: Hooks, count: int, within_s: float) -> None:
    give_up_at = now_s() + within_s
    while len(hooks.told) < count:
        assert now_s() < give_up_at, f"{len(hooks.told)} of {count} were told"
        await asyncio.sleep(0.05)


@virtual_time
async def test_t4_a_receiver_that_hangs_holds_up_no_other() -> None:
    hooks = Hooks({"dead.example": 1e6})
    hw = program()
    async with hw:
        hooks.use(hw)
        await ended(hw, 300, "dead.example")
        await asyncio.sleep(1)
        began_s = now_s()
        await ended(hw, 1, "well.example")
        await until_told(hooks, 1, within_s=3)
        assert now_s() - began_s <= 1.5
        assert hooks.notices("well.example")
        assert hooks.most["dead.example"] <= 4
        await hw.close(0)


@virtual_time
async def test_t4_many_dead_receivers_hold_up_no_other() -> None:
    hooks = Hooks({f"dead{number}.example": 1e6 for number in range(10)})
    hw = program()
    async with hw:
        hooks.use(hw)
        for host in hooks.takes_s:
            await ended(hw, 20, host)
        await ended(hw, 1, "well.example")
        await until_told(hooks, 1, within_s=5)
        await hw.close(0)


@virtual_time
async def test_t4_a_slow_receiver_gets_everything_once_and_few_at_a_time() -> None:
    hooks = Hooks({"slow.example": 2.0})
    hw = program()
    async with hw:
        hooks.use(hw)
        ids = await ended(hw, 100, "slow.example")
        await until_told(hooks, 100, within_s=120)
        assert sorted(str(notice["taskId"]) for notice in hooks.notices()) == sorted(ids)
        assert len(hooks.tried) == 100, "nothing was sent twice"
        assert hooks.most["slow.example"] == 4
        assert {delivery.tries for delivery in hooks.tried} == {0}, "to wait is not to be tried"
        assert (await hw.letters(dead=False)).letters == ()


@virtual_time
async def test_t4_a_quick_receiver_waits_for_nothing() -> None:
    hooks = Hooks()
    hw = program()
    async with hw:
        hooks.use(hw)
        await ended(hw, 200, "quick.example")
        await until_told(hooks, 200, within_s=2)


@virtual_time
async def test_a_round_never_holds_more_than_dozens() -> None:
    hooks = Hooks({"slow.example": 5.0})
    hw = program()
    async with hw:
        hooks.use(hw)
        await asyncio.gather(
            ended(hw, 200, "slow.example"),
            *(ended(hw, 5, f"h{number}.example") for number in range(40)),
        )
        most = 0
        while len(hooks.told) < 200:
            await asyncio.sleep(0.01)
            most = max(most, hw.engine._parts.courier.round(CALLBACK).at_hand)
        assert 4 <= most <= 48
        assert hooks.most_in_all <= 48
        await hw.close(0)


@virtual_time
async def test_t4_while_a_receiver_fails_one_at_a_time_tries_it() -> None:
    hooks = Hooks({"down.example": 0.01})
    hooks.failing["down.example"] = ConnectionError("no route")
    hw = program()
    async with hw:
        hooks.use(hw)
        ids = await ended(hw, 50, "down.example")
        await asyncio.sleep(60)
        waiting = (await hw.letters(dead=False)).letters
        assert len(waiting) == 50
        assert all("no route" in letter.error for letter in waiting)
        hooks.failing.clear()
        hooks.most.clear()
        await until_told(hooks, 50, within_s=90)
        assert sorted(str(notice["taskId"]) for notice in hooks.notices()) == sorted(ids)


@virtual_time
async def test_t4_what_waits_for_a_dead_receiver_is_not_looked_for_all_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others would wait for a thousand letters that go back, each time anew."""
    hooks = Hooks()
    hooks.failing["down.example"] = ConnectionError("no route")
    hw = program()
    settled: Counter[float] = Counter()
    async with hw:
        hooks.use(hw)
        settle = hw.engine.store.settle_delivery

        async def settles(
            delivery: Delivery, again_at: Instant | None = None, error: str = ""
        ) -> None:
            settled[now_s() // 1] += 1
            await settle(delivery, again_at, error)

        monkeypatch.setattr(hw.engine.store, "settle_delivery", settles)
        for _ in range(5):
            await ended(hw, 200, "down.example")
        await asyncio.sleep(20)
        settled.clear()
        await asyncio.sleep(600)
        assert settled.total() >= 1_000, "each of them is looked for"
        assert max(settled.values()) < 100
        hooks.failing.clear()
        await until_told(hooks, 1_000, within_s=330)


@virtual_time
async def test_t4_for_a_day_it_is_tried_again_then_it_is_a_dead_letter_that_can_be_replayed() -> (
    None
):
    hooks = Hooks()
    hooks.failing["down.example"] = ConnectionError("no route")
    hw = program()
    async with hw:
        hooks.use(hw)
        heard = hear(hw)
        (task,) = await ended(hw, 1, "down.example")
        began_s = now_s()
        await asyncio.sleep(23.9 * 3600)
        assert (await hw.letters()).letters == ()
        assert hooks.tried[-1].tries > 100
        waits = [
            event.again_at - event.at for event in only(heard, DeliveryFailed) if event.again_at
        ]
        assert [wait / 1e6 for wait in waits[:5]] == [2, 4, 8, 16, 30]
        await asyncio.sleep(0.2 * 3600)
        (dead,) = (await hw.letters()).letters
        assert dead.id == f"{task}.callback"
        assert only(heard, DeliveryFailed)[-1].again_at is None
        assert now_s() - began_s < 24.2 * 3600
        tries = len(hooks.tried)
        await asyncio.sleep(3600)
        assert len(hooks.tried) == tries, "nobody tries it any more"
        hooks.failing.clear()
        assert await hw.retry_letter(dead.id)
        await until_told(hooks, 1, within_s=10)
        assert hooks.told[0].id == dead.id
        assert (await hw.letters()).letters == (await hw.letters(dead=False)).letters == ()


@virtual_time
async def test_t4_what_was_sent_and_not_settled_comes_again_under_the_same_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A crash between the two: at least once, and the id tells."""
    hooks = Hooks()
    hw = program()
    async with hw:
        hooks.use(hw)
        store = hw.engine.store
        settle = store.settle_delivery
        away = [True]

        async def settles(
            delivery: Delivery, again_at: Instant | None = None, error: str = ""
        ) -> None:
            if away:
                away.clear()
                raise StoreUnavailable("memory://", "gone")
            await settle(delivery, again_at, error)

        monkeypatch.setattr(store, "settle_delivery", settles)
        (task,) = await ended(hw, 1, "well.example")
        await until_told(hooks, 2, within_s=70)
        assert [delivery.id for delivery in hooks.told] == [f"{task}.callback"] * 2
        await asyncio.sleep(300)
        assert len(hooks.told) == 2


@virtual_time
async def test_what_comes_while_another_conversation_is_slow_goes_out_at_once() -> None:
    """A window that slides: nothing waits for the slowest of those that were taken with it."""
    said: list[tuple[str, float]] = []
    hw = program()

    @hw.channel("chat")
    async def chat(delivery: Delivery) -> None:
        await asyncio.sleep(15 if delivery.text == "re: slow" else 0)
        said.append((delivery.text, now_s()))

    async with hw:
        began_s = now_s()
        await hw.send("a", "slow", route=Route("chat", peer="1"), debounce=0)
        await asyncio.sleep(1)
        await hw.send("a", "quick", route=Route("chat", peer="2"), debounce=0)
        await asyncio.sleep(0.5)
        assert said == [("re: quick", began_s + 1)]
        await hw.send("a", "behind", route=Route("chat", peer="1"), debounce=0)
        await asyncio.sleep(20)
        assert [text for text, _ in said] == ["re: quick", "re: slow", "re: behind"], "in its order"


@virtual_time
async def test_after_a_failure_the_rest_of_its_conversation_waits_with_it() -> None:
    tried: list[str] = []
    hw = program()

    @hw.channel("chat")
    async def chat(delivery: Delivery) -> None:
        await asyncio.sleep(0.1)
        tried.append(delivery.text)
        if delivery.text == "one" and not delivery.tries:
            raise ConnectionError("offline")

    @hw.agent("talker")
    async def talker(turn: Turn) -> str:
        turn.say("one")
        turn.say("two")
        return "three"

    async with hw:
        await hw.send("talker", "x", route=Route("chat", peer="1"), debounce=0)
        await asyncio.sleep(10)
        assert tried == ["one", "one", "two", "three"]
