"""`headway bench`: what a server refuses ends it in good order."""

import pytest

from headway import Headway, Turn
from headway.cli.bench.load import Load
from headway.model.errors import InvalidInput
from headway.runtime.clock import SystemClock
from headway.testing import virtual_time
from tests.unit.client.calling import client_of


def hw_with_echo() -> Headway:
    hw = Headway()

    @hw.agent("echo")
    async def echo(turn: Turn) -> str:
        return turn.text

    return hw


@virtual_time
async def test_as_many_tasks_as_were_asked_for_are_taken_and_done() -> None:
    async with client_of(hw_with_echo()) as client:
        measured = await Load(client, SystemClock(), "echo", 20, 8).run(wait=True)
    assert (len(measured.latencies), measured.done) == (20, 20)


@virtual_time
async def test_an_agent_that_is_not_there_is_one_error_and_no_group_of_them() -> None:
    async with client_of(hw_with_echo()) as client:
        with pytest.raises(InvalidInput, match="agentId: 'nobody'"):
            await Load(client, SystemClock(), "nobody", 20, 8).run(wait=True)
