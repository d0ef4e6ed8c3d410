"""Stopping: `/stop` ends the running turn, `/stopall` everything in the chat.

Both act at once and answer what they reached. A cancelled turn may tidy up; the next one starts
only when it has really returned.

Output::

    one begins
    > /stop
    one tidies up
    two begins
    < 1 running stopped
    > /stopall
    two tidies up
    < 1 running and 1 waiting stopped
    > /stop
    < nothing to stop
    {'one': 'cancelled/stopped', 'two': 'cancelled/stopped', 'three': 'cancelled/stopped'}
"""

import asyncio

import headway
from headway import Headway, Turn

hw = Headway()
CHAT = "telegram:dm:42"


@hw.agent("support")
async def support(turn: Turn) -> None:
    print(turn.text, "begins")
    try:
        await asyncio.sleep(3600)
    finally:
        print(turn.text, "tidies up")


async def say(command: str) -> None:
    print(">", command)
    reply = await hw.command(CHAT, command)
    await asyncio.sleep(0.05)
    print("<", reply)


async def main() -> None:
    async with hw:
        names = ("one", "two", "three")
        turns = {name: await hw.submit("support", name, session=CHAT) for name in names}
        await asyncio.sleep(0.05)
        await say("/stop")
        await say("/stopall")
        await say("/stop")
        ends = {name: await turn.wait() for name, turn in turns.items()}
        print({name: f"{end.state}/{end.reason}" for name, end in ends.items()})


headway.run(main())
