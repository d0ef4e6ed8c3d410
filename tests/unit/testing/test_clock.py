"""Virtual time jumps where nothing works, stands while a thread does, and never hangs."""

import asyncio
import threading
import time
from collections.abc import Coroutine

import pytest

from headway import Headway, Turn
from headway.model.time import HOUR, SECOND
from headway.runtime.clock import clock_for
from headway.testing import TimeStandsStill, VirtualClock, run_virtual, virtual_time
from headway.testing import clock as virtual


def _real_s(main: Coroutine[object, object, object]) -> float:
    began_s = time.monotonic()
    run_virtual(main)
    return time.monotonic() - began_s


def test_a_day_passes_at_once() -> None:
    async def sleep() -> float:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await asyncio.sleep(86_400)
        return loop.time() - began_s

    assert run_virtual(sleep()) == 86_400
    assert _real_s(sleep()) < 5


@virtual_time
async def test_timers_ring_in_order_of_time_then_of_setting() -> None:
    rang: list[str] = []
    loop = asyncio.get_running_loop()
    loop.call_later(2, rang.append, "late")
    loop.call_later(1, rang.append, "first")
    loop.call_later(1, rang.append, "second")
    await asyncio.sleep(3)
    assert rang == ["first", "second", "late"]


@virtual_time
async def test_headway_takes_its_time_from_the_loop() -> None:
    clock = clock_for(asyncio.get_running_loop())
    began_at = clock.now()
    assert began_at == virtual.ORIGIN
    await asyncio.sleep(3600)
    assert clock.now() - began_at == HOUR


def test_nothing_scheduled_fails_loudly() -> None:
    async def wait_for_nobody() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeStandsStill, match="nothing is scheduled"):
        run_virtual(wait_for_nobody())


def test_the_clock_stands_while_a_pool_thread_works() -> None:
    async def work() -> float:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(3600, lambda: None)
        await asyncio.to_thread(time.sleep, 0.02)
        timer.cancel()
        return loop.time()

    assert run_virtual(work()) == 0


def test_an_idle_pool_thread_does_not_stop_the_clock() -> None:
    async def work_then_sleep() -> float:
        await asyncio.to_thread(lambda: None)
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert run_virtual(work_then_sleep()) == 3600


def test_the_clock_stands_for_a_call_that_nobody_waits_for_any_more() -> None:
    release = threading.Event()

    async def leave_behind() -> list[bool]:
        loop = asyncio.get_running_loop()
        begun = asyncio.Event()
        released: list[bool] = []

        def work() -> None:
            loop.call_soon_threadsafe(begun.set)
            release.wait()

        call = loop.run_in_executor(None, work)
        await begun.wait()
        call.cancel()
        loop.call_later(3600, lambda: released.append(release.is_set()))
        threading.Timer(0.05, release.set).start()
        await asyncio.sleep(7200)
        return released

    assert run_virtual(leave_behind()) == [True]


def test_a_thread_that_never_ends_fails_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "_PATIENCE_S", 0.05)
    release = threading.Event()

    async def work() -> None:
        await asyncio.get_running_loop().run_in_executor(None, release.wait)

    timer = threading.Timer(1, release.set)
    timer.start()
    try:
        with pytest.raises(TimeStandsStill, match="a thread has been at work"):
            run_virtual(work())
    finally:
        release.set()
        timer.cancel()


@virtual_time
async def test_the_clock_stands_while_a_plain_agent_works() -> None:
    hw = Headway()

    @hw.agent("slow")
    def slow(turn: Turn) -> str:
        time.sleep(0.02)
        return "done"

    async with hw:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        assert await hw.send("slow", timeout="1s") == "done"
        assert loop.time() == began_s


@virtual_time
async def test_the_clock_goes_on_while_a_plain_agent_waits_for_a_sub_run() -> None:
    hw = Headway()

    @hw.agent("boss")
    def boss(turn: Turn) -> str:
        return turn.wait_for(turn.delegate("worker", "go"))

    @hw.agent("worker")
    async def worker(turn: Turn) -> str:
        await asyncio.sleep(3600)
        return turn.text.upper()

    async with hw:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        assert await hw.send("boss") == "GO"
        assert loop.time() - began_s == pytest.approx(3600)


def test_a_clock_for_the_kernel_moves_only_when_told() -> None:
    clock = VirtualClock(7)
    assert clock.now() == 7
    assert clock.advance(3 * SECOND) == clock.now() == 7 + 3 * SECOND
