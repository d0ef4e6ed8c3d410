"""A session that comes with workers of a dead node: they are found, or they are gone (W-2). In virtual time."""

import msgspec
import pytest

from headway import Reason, State
from headway.core.request import Composer
from headway.model import events
from headway.model.places import Holding, Place
from headway.model.run import RunId
from headway.model.settings import AgentSettings
from headway.model.time import SECOND
from headway.runtime.engine import Engine
from headway.testing import virtual_time
from tests.unit.runtime.keeping import FieldRunner
from tests.unit.runtime.test_watch import AGENT, World
from tests.unit.runtime.worlds import moment


class Refused(FieldRunner):
    """A machine that lets nobody look."""

    def has(self, run_id: RunId, attempt: int) -> bool:
        raise PermissionError("it belongs to somebody else")


def take_in(engine: Engine, run_id: str, host: str) -> None:
    """A session of a dead node in which one attempt was running."""
    now = engine._clock.now()
    run = Composer(AGENT, AgentSettings()).compose(
        RunId(run_id), "work", {"session": "s"}, now, None
    )
    run = msgspec.structs.replace(run, max_attempts=1)
    place = Place(run, 1, 1, orphaned=True, started_at=now - SECOND, host=host)
    engine._parts.ownership.take_in(Holding(run.session, 7, 1, None, (place,), ()))


@pytest.mark.parametrize(("host", "adopted"), [("here", 1), ("elsewhere", 0), ("", 0)])
@virtual_time
async def test_w2_only_workers_of_this_machine_are_adopted(host: str, adopted: int) -> None:
    async with World() as world:
        world.field.add("1-1", 1)
        take_in(world.engine, "1-1", host)
        await moment()
        found = [event for event in world.heard if isinstance(event, events.WorkerAdopted)]
        assert len(found) == adopted


@virtual_time
async def test_w2_that_an_attempt_goes_on_is_told_when_it_does_and_as_no_new_start() -> None:
    async with World() as world:
        world.field.add("1-1", 1)
        take_in(world.engine, "1-1", "here")
        await moment()
        (started,) = [each for each in world.heard if isinstance(each, events.RunStarted)]
        assert (started.adopted, started.at, started.attempt) == (
            True,
            world.engine._clock.now(),
            1,
        )
        handle, _ = await world.begin()
        (_, fresh) = [each for each in world.heard if isinstance(each, events.RunStarted)]
        assert (fresh.run_id, fresh.adopted) == (handle.id, False)


@virtual_time
async def test_d7_a_machine_that_cannot_be_looked_at_costs_the_run_and_not_the_node() -> None:
    async with World() as world:
        world.engine.register(AGENT, Refused(world.field), AgentSettings())
        take_in(world.engine, "1-1", "here")
        await moment()
        (failed,) = [each for each in world.heard if isinstance(each, events.CallbackFailed)]
        assert "PermissionError" in failed.error
        (ended,) = [each for each in world.heard if isinstance(each, events.RunFinished)]
        assert (ended.state, ended.reason) == (State.FAILED, Reason.ORPHANED)
