"""Testing your agents: in virtual time a day passes in milliseconds, and always in the same way.

`virtual_time` makes a plain test of an async one; every sleep and every timer of Headway follows
its clock. Run the file, or let pytest find the test in it.

Output::

    a morning of 4 hours passed; the report came first, then the reminder
"""

import asyncio
from datetime import timedelta

from headway import Headway, Turn
from headway.testing import virtual_time


def build() -> tuple[Headway, list[str]]:
    """The program under test: an agent that is slow, and what it said."""
    hw = Headway("memory://")
    said: list[str] = []

    @hw.agent("assistant")
    async def assistant(turn: Turn) -> None:
        await asyncio.sleep(3600)
        said.append(turn.text)

    return hw, said


@virtual_time
async def test_the_reminder_comes_after_the_report() -> None:
    hw, said = build()
    async with hw:
        began = asyncio.get_running_loop().time()
        reminder = await hw.submit("assistant", "reminder", due=timedelta(hours=3))
        await hw.submit("assistant", "report")
        await reminder.wait()
        assert asyncio.get_running_loop().time() - began == timedelta(hours=4).total_seconds()
    assert said == ["report", "reminder"]


if __name__ == "__main__":
    test_the_reminder_comes_after_the_report()
    print("a morning of 4 hours passed; the report came first, then the reminder")
