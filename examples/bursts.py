r"""Bursts: people write one thought in four messages. Two ways to make one turn of them.

Debounce waits a moment for more before a turn begins. Collect lets the first message start at once,
and makes one turn of all that came while it ran. Every sender gets the reply that includes them.

Output::

    debounce
      turn: 'hi / my order / where is it?'
      replies: 1 for 3 messages
    collect
      turn: 'hi'
      turn: 'my order / where is it?'
      replies: 2 for 3 messages
"""

import asyncio

import headway
from headway import Headway, Route, Turn

hw = Headway()
BURST = ("hi", "my order", "where is it?")


@hw.agent("support")
async def support(turn: Turn) -> str:
    text = turn.text.replace("\n", " / ")
    print(f"  turn: {text!r}")
    await asyncio.sleep(0.15)
    return text


async def show(mode: str, debounce: str, chat: str) -> None:
    print(chat)
    sent = []
    for text in BURST:
        route = Route("telegram", peer=chat)
        sent.append(
            await hw.submit("support", text, route=route, mode=mode, debounce=debounce)
        )
        await asyncio.sleep(0.02)
    replies = [await message.reply() for message in sent]
    print(f"  replies: {len(set(replies))} for {len(replies)} messages")


async def main() -> None:
    async with hw:
        await show("queue", "100ms", "debounce")
        await show("collect", "0", "collect")


headway.run(main())
