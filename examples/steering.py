"""Steering: a message reaches a turn that is already running, with a receipt.

The agent looks into its inbox between two steps. Taking a message there is the receipt: it belongs
to this turn then. One that is not taken becomes a turn of its own; none is lost or handled twice.

Output::

    step 1: blue
    step 2: dark blue
    step 3: dark blue
    the first turn painted: dark blue
    the second message went into the first turn: True
    the third came too late, and got its own turn: red
"""

import asyncio

import headway
from headway import Headway, Turn

hw = Headway()


@hw.agent("painter", steerable=True)
async def painter(turn: Turn) -> str:
    colour = turn.text
    for step in (1, 2, 3):
        while (message := turn.inbox.poll()) is not None:
            colour = message.text
        turn.emit(f"step {step}: {colour}")
        await asyncio.sleep(0.05)
    return colour


async def main() -> None:
    async with hw:
        first = await hw.submit("painter", "blue", session="wall")
        later = []
        async for output in first.stream():
            print(output)
            if "step 1" in output:
                later.append(await hw.submit("painter", "dark blue", session="wall", mode="steer"))
            if "step 3" in output:
                later.append(await hw.submit("painter", "red", session="wall", mode="steer"))
        second, third = later
        print("the first turn painted:", await first.reply())
        taken = second.outcome is not None and second.outcome.into == first.id
        print("the second message went into the first turn:", taken)
        print("the third came too late, and got its own turn:", await third.reply())


headway.run(main())
