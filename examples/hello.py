"""The first minute: register an agent, send it messages, get its replies.

A session orders its runs. Both messages below go out at once, yet the second turn starts only when
the first has ended, because they belong to the same chat.

Output::

    You said: hello
    1 started
    1 ended
    2 started
    2 ended
    one after the other: ['You said: 1', 'You said: 2']
"""

import asyncio

import headway
from headway import Headway, Turn

hw = Headway()


@hw.agent("support")
async def support(turn: Turn) -> str:
    if turn.text.isdigit():
        print(turn.text, "started")
        await asyncio.sleep(0.05)
        print(turn.text, "ended")
    return f"You said: {turn.text}"


async def main() -> None:
    async with hw:
        print(await hw.send("support", "hello", session="telegram:dm:42"))
        replies = await asyncio.gather(
            hw.send("support", "1", session="telegram:dm:42"),
            hw.send("support", "2", session="telegram:dm:42"),
        )
        print("one after the other:", replies)


headway.run(main())
