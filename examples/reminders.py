"""Reminders: an agent that keeps its own appointments, and speaks up by itself only if there is something to say.

It sets a reminder in its turn and gives a brief every morning. Every half hour its heartbeat wakes it to look into
the inbox; HEARTBEAT_OK means that nobody is told. `run_virtual` makes a moment of the day that all this takes.

Output::

    Sun 15:06 assistant: I will remind you.
    Sun 15:26 assistant: Take the cake out!
    Sun 21:15 assistant: New mail: the rent is due
    Mon 08:00 assistant: Good morning, Ada! You have three meetings today.
    the heartbeat woke the assistant 48 times
"""

import asyncio
from datetime import UTC, datetime

from headway import Delivery, Headway, Route, Turn
from headway.testing import run_virtual

hw = Headway("memory://")
ADA = Route("telegram", peer="ada")
inbox: list[str] = []


@hw.agent("assistant")
async def assistant(turn: Turn) -> str:
    if turn.is_heartbeat:
        return f"New mail: {inbox.pop()}" if inbox else "HEARTBEAT_OK"
    if turn.job is not None:
        return turn.text
    await hw.jobs.add("oven", "assistant", at="in 20m", text="Take the cake out!", deliver=ADA)
    return "I will remind you."


@hw.cron("0 8 * * *", agent="assistant", deliver=ADA)
async def brief() -> str:
    return "Good morning, Ada! You have three meetings today."


hw.heartbeat("assistant", every="30m", prompt="Look into the inbox. Nothing new? HEARTBEAT_OK.")


@hw.channel("telegram")
async def telegram(delivery: Delivery) -> None:
    when = datetime.fromtimestamp(delivery.first_at / 1e6, UTC)
    print(f"{when:%a %H:%M} assistant: {delivery.text}")


async def main() -> None:
    async with hw:
        await hw.submit("assistant", "Remind me of the cake", route=ADA, debounce=0)
        await asyncio.sleep(6 * 3600)
        inbox.append("the rent is due")
        await asyncio.sleep(18 * 3600)
        woken = len((await hw.heartbeats.log("assistant")).entries)
        print(f"the heartbeat woke the assistant {woken} times")


run_virtual(main())
