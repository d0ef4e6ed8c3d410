"""Steering: a message reaches a turn that is already running, with a receipt.

The agent looks into its inbox between two steps. Taking a message there is the receipt: it becomes
part of this turn and not a turn of its own. One that is not taken becomes the next turn.

Output::

    step 1: blue
    step 2: blue
    step 3: dark blue
    step 4: dark blue
    turn 1 answered: dark blue
    the second message was merged into the first: True
    the third came too late, and got a turn of its own: red
"""

import asyncio

import headway
from headway import Headway, Turn

hw = Headway()


@hw.agent("painter", steerable=True)
async def painter(turn: Turn) -> str:
    colour = turn.text
    for step in range(1, 5):
        if colour == "red":
            return colour
        while (message := turn.inbox.poll()) is not None:
            colour = message.text
        print(f"step {step}: {colour}")
        await asyncio.sleep(0.05)
    return colour


async def main() -> None:
    async with hw:
        first = await hw.submit("painter", "blue", session="wall")
        await asyncio.sleep(0.07)
        second = await hw.submit("painter", "dark blue", session="wall", mode="steer")
        await asyncio.sleep(0.1)
        third = await hw.submit("painter", "red", session="wall", mode="steer")

        print("turn 1 answered:", await first.reply())
        await second.wait()
        merged = second.outcome is not None and second.outcome.into == first.id
        print("the second message was merged into the first:", merged)
        print("the third came too late, and got a turn of its own:", await third.reply())


headway.run(main())
