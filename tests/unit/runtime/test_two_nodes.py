"""Two nodes on one PostgreSQL, in one process: what a stop, a takeover and a newer version mean to both."""

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from headway import (
    Delivery,
    Handle,
    Headway,
    LaneSettings,
    Reason,
    Route,
    RunView,
    Sender,
    Settings,
    State,
    Turn,
)
from headway.model.time import SECOND
from headway.model.words import Rule
from headway.store.postgres.address import address_of
from tests.postgres import fresh_url

QUICK = Settings(lease=6 * SECOND, renew_every=SECOND // 4, poll_every=SECOND // 2)


def _run(test: Callable[[str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(100):
            await test(fresh_url())

    asyncio.run(main())


async def _until(hw: Headway, run: str, state: State) -> RunView:
    for _ in range(6_000):
        view = await hw.run(run)
        if view.state is state:
            return view
        await asyncio.sleep(0.01)
    raise AssertionError(f"{run} did not become {state}")


@pytest.mark.parametrize("parent_ended", [False, True], ids=["parent waits", "parent ended"])
def test_x3_n14_a_stop_of_all_reaches_sub_runs_on_other_nodes(parent_ended: bool) -> None:
    async def test(url: str) -> None:
        here, there = Headway(url, settings=QUICK), Headway(url, settings=QUICK)
        begun, cut = asyncio.Event(), asyncio.Event()

        @here.agent("parent", retries=3)
        async def parent(turn: Turn) -> str:
            await turn.submit("child", "work", session="child")
            if not parent_ended:
                raise ConnectionError
            return "ok"

        here.remote_agent("child")
        there.remote_agent("parent")

        @there.agent("child")
        async def child(turn: Turn) -> str:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cut.set()
                raise
            return "ended by itself"

        async with here, there:
            handle = await here.submit("parent", "x", session="root")
            await begun.wait()
            expected = State.DONE if parent_ended else State.PENDING
            await _until(here, handle.id, expected)
            await here.stop_all("root")
            await cut.wait()

    _run(test)


def test_d7_n12_a_careful_run_behind_a_thousand_others_is_not_begun_twice() -> None:
    async def test(url: str) -> None:
        first, second = Headway(url, settings=QUICK), Headway(url, settings=QUICK)
        begun: list[str] = []
        working = asyncio.Event()

        @first.agent("a", max_attempts=1)
        async def works(turn: Turn) -> str:
            begun.append("first")
            working.set()
            await asyncio.sleep(60)
            return "ok"

        @second.agent("a", max_attempts=1)
        async def works_again(turn: Turn) -> str:
            begun.append("second")
            return "ok"

        await first.start()
        later = (
            first.submit("a", "later", session="s", due="5h", source="firing") for _ in range(1_050)
        )
        await asyncio.gather(*later)
        handle = await first.submit("a", "now", session="s", source="firing")
        await working.wait()
        first.engine._fail(RuntimeError("as if it was killed"))
        async with second:
            view = await _until(second, handle.id, State.FAILED)
        assert view.outcome is not None
        assert view.outcome.reason is Reason.ORPHANED
        assert begun == ["first"]
        await first.close(0)

    _run(test)


async def _window(hw: Headway) -> list[Handle]:
    """The second message extends the window of the first."""
    chat = Route("web", peer="1")
    return [
        await hw.submit("a", text, session="window", route=chat, debounce="60s") for text in "xy"
    ]


async def _collect(hw: Headway) -> list[Handle]:
    """Two people write while a turn runs."""
    await hw.submit("a", "work", session="collect")
    return [
        await hw.submit(
            "a", "more", session="collect", mode="collect", debounce="60s", sender=Sender(who)
        )
        for who in ("ann", "zoe")
    ]


async def _retry(hw: Headway) -> list[Handle]:
    failing = await hw.submit("a", "fail", session="retry", retries=9)
    return [failing, await hw.submit("a", "more", session="retry")]


async def _width(hw: Headway) -> list[Handle]:
    """What runs wants its session alone, what comes next does not."""
    await hw.submit("a", "work", session="width")
    return [await hw.submit("a", "more", session="width", max_concurrent=3)]


async def _heartbeat(hw: Headway) -> list[Handle]:
    """A message that comes later goes before it."""
    await hw.submit("a", "work", session="heart")
    beat = await hw.submit("a", "beat", session="heart", source="heartbeat")
    return [beat, await hw.submit("a", "more", session="heart")]


async def _later(hw: Headway) -> list[Handle]:
    await hw.submit("a", "work", session="later")
    behind = [await hw.submit("a", "more", session="later") for _ in range(2)]
    return [*behind, await hw.submit("a", "late", session="later", due="5h")]


async def _agreed(owner: Headway, other: Headway, run: str) -> int | None:
    """Until both say the same; answers who decides, as the other one tells it."""
    for _ in range(3_000):
        here, there = await owner.why(run), await other.why(run)
        same = (here.rule, here.until, here.by) == (there.rule, there.until, there.by)
        if here.rule is not None and same:
            return there.node
        # What the owner has decided is stored a moment later.
        await asyncio.sleep(0.01)
    raise AssertionError(f"{run}: {await owner.why(run)}; {await other.why(run)}")


@pytest.mark.parametrize("play", [_window, _collect, _retry, _width, _heartbeat, _later])
def test_x1_a_node_tells_why_a_run_waits_that_another_one_decides_for(
    play: Callable[[Headway], Awaitable[list[Handle]]],
) -> None:
    async def test(url: str) -> None:
        owner, other = Headway(url, settings=QUICK), Headway(url, settings=QUICK)
        over = asyncio.Event()

        @owner.agent("a")
        async def works(turn: Turn) -> str:
            if turn.text == "fail":
                raise ConnectionError
            await over.wait()
            return "ok"

        other.remote_agent("a")
        async with owner, other:
            handles = await play(owner)
            for handle in handles:
                assert await _agreed(owner, other, handle.id) == owner.engine.number
            over.set()
            for handle in handles:
                await handle.cancel()

    _run(test)


def test_x1_of_what_nobody_has_taken_a_node_tells_why_it_does_not() -> None:
    async def test(url: str) -> None:
        lanes = {"coding": LaneSettings(1)}
        nodes = [Headway(url, settings=QUICK, lanes=lanes) for _ in range(2)]
        running, over = asyncio.Semaphore(0), asyncio.Event()

        async def works(turn: Turn) -> str:
            running.release()
            await over.wait()
            return "ok"

        for node in nodes:
            node.agent("coder", lane="coding")(works)
        async with nodes[0], nodes[1]:
            handles = [await nodes[0].submit("coder", "x", session=f"s{n}") for n in range(8)]
            for _ in nodes:
                await running.acquire()
            waiting = [h for h in handles if (await nodes[0].run(h.id)).state is State.QUEUED]
            assert len(waiting) == 6
            for handle in waiting:
                for node in nodes:
                    why = await node.why(handle.id)
                    owned = why.node is not None
                    assert why.rule is (Rule.ELSEWHERE if owned else Rule.LANE_FULL), str(why)
            over.set()

    _run(test)


def test_n20_what_a_newer_version_wrote_is_left_for_it() -> None:
    async def test(url: str) -> None:
        asking = Headway(url, settings=QUICK)
        asking.remote_agent("a")
        async with asking:
            strange = await asking.submit("a", "x", session="newer")
            plain = await asking.submit("a", "y", session="plain")
        address = address_of(url)
        connection = await asyncpg.connect(address.url)
        await connection.execute(
            f'update {address.schema}.runs set body = replace(body, \'"source":"message"\', '
            "'\"source\":\"carrier_pigeon\"') where session = 'newer'"
        )
        node = Headway(url, settings=QUICK)

        @node.agent("a")
        async def works(turn: Turn) -> str:
            return "ok"

        async with node:
            await _until(node, plain.id, State.DONE)
            await asyncio.sleep(1)
            owner = f"select owner from {address.schema}.sessions where key = 'newer'"
            waits = f"select count(*) from {address.schema}.queue where run = $1"
            assert await connection.fetchval(waits, strange.id) == 1
        assert await connection.fetchval(owner) is None
        await connection.close()

    _run(test)


def test_d5_a_reply_reaches_the_node_with_the_channel_without_waiting_for_its_poll() -> None:
    async def test(url: str) -> None:
        slow = Settings(poll_every=50 * SECOND)
        working, talking = Headway(url, settings=slow), Headway(url, settings=slow)
        said: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()

        @working.agent("a")
        async def works(turn: Turn) -> str:
            return turn.text.upper()

        working.remote_channel("chat")
        talking.remote_agent("a")

        @talking.channel("chat")
        async def send(delivery: Delivery) -> None:
            said.set_result(delivery)

        async with working, talking:
            route = Route("chat", peer="7")
            texts = ("one", "two")
            handles = [await talking.submit("a", t, route=route, debounce="3s") for t in texts]
            async with asyncio.timeout(40):
                assert (await said).text == "ONE\nTWO"
                assert await handles[1].reply() == "ONE\nTWO"

    _run(test)
