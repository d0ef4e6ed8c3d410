r"""Bursts: people write one thought in three messages. Two ways to make one turn of them.

Debounce waits a moment for more before a turn begins. Collect lets the first message start at once,
and makes one turn of all that came while it ran. Every message gets the reply of its turn.

Output::

    with debounce:
      turn: 'hi / my order / where is it?'
      3 messages got 1 reply
    with collect:
      turn: 'hi'
      turn: 'my order / where is it?'
      3 messages got 2 replies
"""

import asyncio

import headway
from headway import Headway, Route, Turn

hw = Headway()


@hw.agent("support")
async def support(turn: Turn) -> str:
    text = turn.text.replace("\n", " / ")
    print(f"  turn: {text!r}")
    await asyncio.sleep(0.1)
    return text


async def burst(chat: str, *, mode: str, debounce: str) -> None:
    print(f"with {chat}:")
    route = Route("telegram", peer=chat)
    sent = [
        await hw.submit("support", text, route=route, mode=mode, debounce=debounce)
        for text in ("hi", "my order", "where is it?")
    ]
    replies = {await message.reply() for message in sent}
    print(
        f"  {len(sent)} messages got {len(replies)} {'reply' if len(replies) == 1 else 'replies'}"
    )


async def main() -> None:
    async with hw:
        await burst("debounce", mode="queue", debounce="200ms")
        await burst("collect", mode="collect", debounce="0")


headway.run(main())
