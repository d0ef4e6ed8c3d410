"""L-4: whoever waits inside a turn waits as that turn, however the run was started."""

import pytest

from headway import Headway, Turn, WouldDeadlock
from headway.testing import virtual_time


def narrow() -> Headway:
    hw = Headway(lanes={"main": 1})

    @hw.agent("leaf")
    async def leaf(turn: Turn) -> str:
        return f"leaf: {turn.text}"

    return hw


@virtual_time
async def test_l4_a_plain_send_inside_a_turn_runs_on_its_slot() -> None:
    hw = narrow()

    @hw.agent("root")
    async def root(turn: Turn) -> str:
        return await hw.send("leaf", turn.text, session="another")

    async with hw:
        assert await hw.send("root", "hello") == "leaf: hello"
        assert hw.lanes()["main"].running == 0


@virtual_time
async def test_l4_a_delegation_that_would_deadlock_leaves_nothing_behind() -> None:
    hw = narrow()

    @hw.agent("root")
    async def root(turn: Turn) -> str:
        with pytest.raises(WouldDeadlock):
            await turn.delegate("leaf", "me?", session=turn.session)
        return "not now"

    async with hw:
        handle = await hw.submit("root", "hello", session="one")
        assert await handle.reply() == "not now"
        states = {view.run.agent: view.state for view in (await hw.runs()).runs}
        assert states == {"root": "done", "leaf": "cancelled"}
