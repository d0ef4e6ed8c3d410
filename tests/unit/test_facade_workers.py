"""Workers and machines as a program reads them (D-8)."""

import asyncio

import pytest

from headway import Headway, InvalidInput, NotRunning, WorkerState
from headway.testing import virtual_time
from tests.unit.runtime.keeping import Field, FieldRunner


@virtual_time
async def test_d8_a_program_sees_its_workers_their_beats_and_its_machine() -> None:
    field, hw = Field(), Headway()
    hw.add_agent("coder", FieldRunner(field))
    async with hw:
        handle = await hw.submit("coder", "work")
        await asyncio.sleep(70)
        (worker,) = (await hw.workers(agent="coder", state="alive")).workers
        assert (worker.run_id, worker.node) == (handle.id, hw.node)
        assert await hw.worker(worker.id) == worker
        assert [beat.state for beat in await hw.beats(worker.id)] == [WorkerState.ALIVE] * 2
        (machine,) = await hw.machines()
        assert (await hw.snapshots(limit=1)).snapshots == (machine,)
        assert (await hw.workers(host="elsewhere")).workers == ()
        assert await hw.worker("none.1") is None
        assert await hw.worker("\0") is None
        field.bodies[handle.id, 1].ended.set_result(0)
        assert await handle.reply() == "exit 0"


@virtual_time
@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"state": "tired"}, "state"),
        ({"state": ["busy"]}, "state"),
        ({"limit": 0}, "limit"),
        ({"limit": "9"}, "limit"),
        ({"agent": 5}, "agent"),
        ({"host": "\ud800"}, "host"),
        ({"cursor": "nonsense"}, "cursor"),
    ],
)
async def test_what_cannot_be_asked_is_refused_by_its_name(
    asked: dict[str, object], field: str
) -> None:
    async with Headway() as hw:
        with pytest.raises(InvalidInput) as refused:
            await hw.workers(**asked)  # type: ignore[arg-type]
        assert refused.value.field == field
        if field in {"limit", "host", "cursor"}:
            with pytest.raises(InvalidInput):
                await hw.snapshots(**asked)  # type: ignore[arg-type]


@virtual_time
async def test_a_worker_and_its_beats_are_asked_for_by_a_text() -> None:
    async with Headway() as hw:
        with pytest.raises(InvalidInput):
            await hw.worker(5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            await hw.beats("x.1", limit=0)
        assert await hw.beats("x.1") == ()


@virtual_time
async def test_nothing_can_be_read_before_the_start() -> None:
    with pytest.raises(NotRunning):
        await Headway().machines()
