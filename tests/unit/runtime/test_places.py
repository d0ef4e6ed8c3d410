"""The position of a task: how many starts are ahead of it, exact whenever it is asked for (T-5)."""

import asyncio

import pytest

from headway import Handle, Headway, Limits, NotRunning
from headway.core import forecast
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Gate, Recorder, moment, with_agents

ONE = Limits(max_inflight=1)


async def tasks(hw: Headway, agent: str, count: int, **options: object) -> list[Handle]:
    return [
        await hw.submit(agent, f"{agent}{number}", source="task", **options)  # type: ignore[arg-type]
        for number in range(count)
    ]


@virtual_time
async def test_t5_every_position_is_the_number_of_starts_that_come_before() -> None:
    recorders = Recorder(), Recorder(), Recorder()
    hw = with_agents(*recorders, limits=ONE)
    started: list[str] = []
    hw.before(lambda turn: started.append(turn.id))
    async with hw:
        handles = await tasks(hw, "a", 5)
        handles += await tasks(hw, "b", 3, priority=-2)
        handles += await tasks(hw, "c", 2, priority=4)
        told = [await hw.position(handle) for handle in handles]
        for handle in handles:
            await handle.wait()
    assert told[0] == 0
    starts = started[1:]
    assert told[1:] == [starts.index(handle.id) for handle in handles[1:]]


@virtual_time
async def test_t5_the_position_shrinks_with_every_start() -> None:
    recorder = Recorder()
    hw = with_agents(recorder, limits=ONE)
    async with hw:
        *_, last = await tasks(hw, "a", 4)
        seen = []
        for _ in range(5):
            seen.append(await hw.position(last))
            await asyncio.sleep(1.01)
    assert seen == [2, 1, 0, 0, None]


@virtual_time
async def test_t5_a_run_that_has_its_slot_needs_no_forecast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hw = with_agents(Gate())
    async with hw:
        (handle,) = await tasks(hw, "a", 1)
        monkeypatch.setattr(forecast, "place", None)
        assert await hw.position(handle) == 0
        assert await hw.position(handle.id) == 0
        await hw.close(0)


@virtual_time
async def test_t5_of_a_burst_one_look_answers_all(monkeypatch: pytest.MonkeyPatch) -> None:
    plays: list[object] = []
    play = forecast._Play

    def counted(kernel: object) -> object:
        plays.append(kernel)
        return play(kernel)  # type: ignore[arg-type]

    monkeypatch.setattr(forecast, "_Play", counted)
    hw = with_agents(Gate(), Gate(), limits=ONE)
    async with hw:

        async def ask(number: int) -> int | None:
            handle = await hw.submit("ab"[number % 2], "x", source="task")
            return await hw.position(handle)

        told = await asyncio.gather(*(ask(number) for number in range(40)))
        assert sorted(place for place in told if place is not None) == [0, *range(39)]
        assert len(plays) == 1
        await hw.close(0)


@virtual_time
async def test_t5_whoever_gives_up_asking_leaves_the_others_their_answer() -> None:
    hw = with_agents(Gate(), limits=ONE)
    async with hw:
        _, first, second = await tasks(hw, "a", 3)
        asking = [asyncio.create_task(hw.position(handle)) for handle in (first, second)]
        await asyncio.sleep(0)
        asking[0].cancel()
        assert await asking[1] == 1
        await hw.close(0)


@virtual_time
async def test_t5_what_has_ended_or_is_unknown_has_no_position() -> None:
    hw = with_agents(Recorder())
    async with hw:
        handle = await hw.submit("a", "x")
        await handle.wait()
        await moment()
        assert await hw.position(handle) is None
        assert await hw.position("nobody") is None
    with pytest.raises(NotRunning):
        await hw.position("x")
