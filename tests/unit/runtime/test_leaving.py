"""What is under way when somebody gives up or a node closes is neither lost nor done twice (D-1, L-5, R-2)."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headway import Headway, NotRunning, State, Turn
from headway.ports import RunQuery
from tests.postgres import fresh_url

STORES: list[Callable[[Path], str]] = [
    lambda folder: f"sqlite:///{folder / 'agents.db'}",
    lambda folder: fresh_url(),
]
both = pytest.mark.parametrize("address", STORES, ids=["sqlite", "postgres"])


def _run(test: Callable[[str], Awaitable[None]], url: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await test(url)

    asyncio.run(main())


@both
def test_l5_a_close_without_grace_keeps_the_outcome_of_what_has_just_ended(
    address: Callable[[Path], str], tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        begun: list[int] = []
        for _ in range(5):
            ended = asyncio.Event()

            def counting(hw: Headway, ended: asyncio.Event = ended) -> Headway:
                @hw.agent("a")
                async def a(turn: Turn) -> str:
                    begun.append(turn.attempt)
                    ended.set()
                    return "ok"

                return hw

            hw = counting(Headway(url))
            await hw.start()
            handle = await hw.submit("a", "x", session="s")
            await ended.wait()
            await asyncio.sleep(0)
            await hw.close(0)
            async with counting(Headway(url)) as again:
                view = await again.run(handle.id)
                assert (view.state, view.attempt) == (State.DONE, 1)
        assert begun == [1] * 5

    _run(test, address(tmp_path))


@both
def test_r2_who_waits_for_an_order_of_another_node_is_told_when_this_one_closes(
    address: Callable[[Path], str], tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        hw = Headway(url)
        hw.remote_agent("elsewhere")
        await hw.start()
        handle = await hw.submit("elsewhere", "x", session="s")
        hw.engine._claims.open = False
        cancelling = asyncio.get_running_loop().create_task(handle.cancel())
        await asyncio.sleep(0.05)
        await hw.close(0)
        with pytest.raises(NotRunning):
            await cancelling

    _run(test, address(tmp_path))


@both
def test_d1_n7_a_run_whose_caller_gave_up_while_it_was_stored_still_runs(
    address: Callable[[Path], str], tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        hw = Headway(url)

        @hw.agent("a")
        async def a(turn: Turn) -> str:
            return "ok"

        async with hw:
            for number in range(40):
                asking = asyncio.get_running_loop().create_task(
                    hw.submit("a", "x", session=f"s{number}")
                )
                await asyncio.sleep(number % 8 / 4000)
                asking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asking
            states: set[State] = set()
            for _ in range(200):
                states = {view.state for view in (await hw.engine.runs(RunQuery(limit=100))).runs}
                if states == {State.DONE}:
                    break
                await asyncio.sleep(0.02)
            assert states == {State.DONE}

    _run(test, address(tmp_path))


@pytest.mark.parametrize("url", ["sqlite", "postgres"])
def test_f5_d10_a_deadline_and_a_cancel_reach_runs_of_agents_that_no_node_has(
    url: str, tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        hw = Headway(url)
        hw.remote_agent("nobody")

        @hw.agent("other")
        async def other(turn: Turn) -> str:
            return "ok"

        async with hw:
            late = await hw.submit("nobody", "x", session="s", deadline="300ms")
            unwanted = await hw.submit("nobody", "x", session="t")
            assert (await late.wait()).reason == "deadline_queued"
            assert str(await unwanted.cancel()) == "1 waiting stopped"
            assert (await unwanted.wait()).reason == "stopped"

    _run(test, STORES[url == "postgres"](tmp_path))


@pytest.mark.parametrize("url", ["memory", "sqlite", "postgres"])
def test_x3_n14_a_sub_run_may_start_others_after_the_turn_above_it_has_ended(
    url: str, tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        hw = Headway(url)
        low: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        @hw.agent("top")
        async def top(turn: Turn) -> str:
            await turn.submit("middle", "x")
            return "ended"

        @hw.agent("middle")
        async def middle(turn: Turn) -> str:
            await above.wait()
            low.set_result(await turn.delegate("bottom", "x"))
            return "ended"

        @hw.agent("bottom")
        async def bottom(turn: Turn) -> str:
            return "reached"

        above: asyncio.Event = asyncio.Event()
        async with hw:
            handle = await hw.submit("top", "x", session="s")
            await handle.wait()
            above.set()
            assert await low == "reached"

    urls = {"memory": "memory://"} | dict(
        zip(("sqlite", "postgres"), (make(tmp_path) for make in STORES), strict=True)
    )
    _run(test, urls[url])


@both
def test_n15_a_reply_that_is_too_large_fails_its_own_run_only(
    address: Callable[[Path], str], tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        hw = Headway(url)

        @hw.agent("a")
        async def a(turn: Turn) -> str:
            return "x" * int(turn.text)

        async with hw:
            sizes = (10, 5_000_000, 900_000)
            handles = [await hw.submit("a", str(size), session=str(size)) for size in sizes]
            outcomes = [await handle.wait() for handle in handles]
            assert [len(outcome.text) for outcome in outcomes] == [10, 0, 900_000]
            assert "5,000,0" in outcomes[1].error
            assert "result_size" in outcomes[1].error

    _run(test, address(tmp_path))
