"""Many requests at once: each taken by itself, or all or none (T-2, T-5)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from headway import (
    Draining,
    Handle,
    Headway,
    HeadwayError,
    InvalidInput,
    Limits,
    NotRunning,
    QueueFull,
    Settings,
    State,
    Task,
    Turn,
)
from headway.model.errors import UnknownName
from headway.model.settings import DEFAULT_LANES
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Gate, Recorder, hear, moment, with_agents

SMALL = Limits(max_queue_per_agent=4, max_inflight=1)


def asked(*actions: str, **options: object) -> list[Mapping[str, object]]:
    return [{"task": {"action": action}, **options} for action in actions]


async def all_runs(hw: Headway) -> list[str]:
    return [view.id for view in (await hw.runs()).runs]


def in_order(answers: tuple[Handle | HeadwayError, ...]) -> list[Handle]:
    handles = [answer for answer in answers if isinstance(answer, Handle)]
    assert len(handles) == len(answers)
    return handles


async def on_both(tmp_path: Path, test: Callable[[Headway], Awaitable[None]]) -> None:
    """In memory and in a file: the same behaviour (D-2)."""
    for store in ("memory://", f"sqlite:///{tmp_path / 'headway.db'}"):
        hw = Headway(store, settings=Settings(limits=SMALL))
        gate = Gate()
        hw.agent("a")(gate)
        async with hw:
            await test(hw)
            gate.open()


@virtual_time
async def test_t5_each_is_taken_by_itself_and_an_error_stands_in_its_place() -> None:
    recorder = Recorder()
    hw = with_agents(recorder)
    async with hw:
        answers = await hw.submit_all(
            "a",
            [
                {"task": {"action": "click"}, "text": "one"},
                {"task": {"action": "click"}, "deadline": "soon"},
                {"text": "a message", "session": "s"},
                {"task": Task("type"), "prioritee": 1},
            ],
        )
        assert [type(answer) for answer in answers[::2]] == [Handle, Handle]
        wrong = [answer for answer in answers if isinstance(answer, InvalidInput)]
        assert [error.field for error in wrong] == ["tasks[1].deadline", "tasks[3].prioritee"]
        assert "did you mean 'priority'" in str(wrong[1])
        for answer in answers[::2]:
            assert isinstance(answer, Handle)
            assert (await answer.wait()).ok
        assert recorder.started == ["one", "a message"]
        task = recorder.turns[0].task
        assert task == Task("click")
        assert recorder.turns[1].task is None


def test_t2_what_does_not_fit_is_refused_by_itself(tmp_path: Path) -> None:
    async def check(hw: Headway) -> None:
        await hw.submit_all("a", asked("runs"))
        answers = await hw.submit_all("a", asked(*"12345678"))
        refused = [index for index, each in enumerate(answers) if isinstance(each, QueueFull)]
        assert refused == [4, 5, 6, 7], "one runs, four wait"
        assert all(isinstance(each, Handle) for each in answers[:4])

    asyncio.run(on_both(tmp_path, check))


def test_t5_all_are_taken_in_their_order(tmp_path: Path) -> None:
    async def check(hw: Headway) -> None:
        handles = in_order(await hw.submit_all("a", asked(*"1234"), atomic=True))
        views = [await hw.run(handle) for handle in handles]
        assert [view.run.task for view in views] == [Task(action) for action in "1234"]
        assert [await hw.position(handle) for handle in handles] == [0, 0, 1, 2]

    asyncio.run(on_both(tmp_path, check))


def test_t5_if_one_does_not_fit_none_is_kept(tmp_path: Path) -> None:
    async def check(hw: Headway) -> None:
        await hw.submit_all("a", asked("runs"))
        before = await all_runs(hw)
        with pytest.raises(QueueFull):
            await hw.submit_all("a", asked(*"12345"), atomic=True)
        assert await all_runs(hw) == before
        assert hw.stats().queued == 0
        assert len(in_order(await hw.submit_all("a", asked(*"1234"), atomic=True))) == 4

    asyncio.run(on_both(tmp_path, check))


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"task": {"action": "x"}, "deadline": "soon"}, "tasks[2].deadline"),
        ({"task": {"action": "x"}, "deadline": 0}, "tasks[2].deadline"),
        ({"task": {"acton": "x"}}, "tasks[2].task.acton"),
        ({"text": "no task"}, "tasks[2].source"),
    ],
)
def test_t5_all_are_looked_at_before_one_is_kept(
    tmp_path: Path, wrong: dict[str, object], field: str
) -> None:
    async def check(hw: Headway) -> None:
        with pytest.raises(InvalidInput) as refused:
            await hw.submit_all("a", [*asked("1", "2"), wrong], atomic=True)
        assert refused.value.field == field
        assert await all_runs(hw) == []

    asyncio.run(on_both(tmp_path, check))


def test_d6_those_asked_for_before_are_the_same_again_and_take_no_room(tmp_path: Path) -> None:
    async def check(hw: Headway) -> None:
        keyed = [{"task": {"action": key}, "idempotency_key": key} for key in "1234"]
        first = in_order(await hw.submit_all("a", keyed, atomic=True))
        again = in_order(await hw.submit_all("a", keyed, atomic=True))
        assert [handle.id for handle in again] == [handle.id for handle in first]
        twice = in_order(await hw.submit_all("a", [keyed[0], keyed[0]], atomic=True))
        assert [handle.id for handle in twice] == [first[0].id] * 2
        assert len(await all_runs(hw)) == 4

    asyncio.run(on_both(tmp_path, check))


@pytest.mark.parametrize("atomic", [False, True])
def test_t5_none_is_nothing_and_what_is_no_list_is_refused(atomic: bool) -> None:
    @virtual_time
    async def check() -> None:
        hw = with_agents(Gate())
        with pytest.raises(NotRunning):
            await hw.submit_all("a", [], atomic=atomic)
        async with hw:
            assert await hw.submit_all("a", [], atomic=atomic) == ()
            bad: object
            for bad in ("text", ["text"], {"task": {}}, 5):
                with pytest.raises(InvalidInput, match="tasks"):
                    await hw.submit_all("a", bad, atomic=atomic)  # type: ignore[arg-type]
            with pytest.raises(UnknownName, match="agent"):
                await hw.submit_all("nobody", asked("x"), atomic=atomic)

    check()


@virtual_time
async def test_l5_nothing_is_taken_while_draining() -> None:
    gate = Gate()
    hw = with_agents(gate)
    async with hw:
        await hw.submit("a", "busy")
        await moment()
        draining = asyncio.create_task(hw.drain("5s"))
        await moment()
        with pytest.raises(Draining):
            await hw.submit_all("a", asked("x"), atomic=True)
        (answer,) = await hw.submit_all("a", asked("x"))
        assert isinstance(answer, Draining)
        await draining


def test_d1_whoever_gives_up_waiting_takes_nothing_back(tmp_path: Path) -> None:
    async def main() -> None:
        hw = Headway(f"sqlite:///{tmp_path / 'headway.db'}")
        started: list[Turn] = []
        all_ran = asyncio.Event()

        @hw.agent("a")
        async def agent(turn: Turn) -> None:
            started.append(turn)
            if len(started) == 3:
                all_ran.set()

        async with hw:
            asking = asyncio.create_task(hw.submit_all("a", asked(*"123"), atomic=True))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await all_ran.wait()
        assert sorted(turn.task.action for turn in started if turn.task) == ["1", "2", "3"]

    asyncio.run(main())


@virtual_time
async def test_o3_every_one_of_them_is_told_of() -> None:
    hw = with_agents(Recorder(), lanes=DEFAULT_LANES)
    async with hw:
        heard = hear(hw)
        handles = in_order(await hw.submit_all("a", asked("1", "2", lane="nowhere"), atomic=True))
        for handle in handles:
            assert (await handle.wait()).state is State.DONE
        names = [type(event).__name__ for event in heard]
        assert names.count("RunSubmitted") == names.count("RunFinished") == 2
        assert hw.stats().unknown_lanes == 2
