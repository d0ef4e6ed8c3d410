"""Fair tasks: a busy agent starves no other, priorities order its own, and nobody has to guess.

The lane has one slot. Alice asks for four tasks, then Bob for one: his starts after one of hers. A
lower priority number goes first among the tasks of one agent.

Output::

    why does alice/later wait? lane_full, 3 start before it
    why does bob/only wait? lane_full, 0 start before it
    started: alice/first
    started: bob/only
    started: alice/urgent
    started: alice/second
    started: alice/later
"""

import asyncio

import headway
from headway import Headway, Turn

hw = Headway("memory://", lanes={"main": 1})


@hw.agent("alice")
@hw.agent("bob")
async def work(turn: Turn) -> None:
    print(f"started: {turn.agent}/{turn.text}")
    await asyncio.sleep(0.02)


async def main() -> None:
    async with hw:
        tasks = {
            f"{agent}/{text}": await hw.submit(agent, text, source="task", priority=priority)
            for agent, text, priority in (
                ("alice", "first", 0),
                ("alice", "later", 5),
                ("alice", "second", 0),
                ("alice", "urgent", -5),
                ("bob", "only", 0),
            )
        }
        for name in ("alice/later", "bob/only"):
            why = await hw.why(tasks[name])
            print(f"why does {name} wait? {why.rule}, {why.place} start before it")
        for task in tasks.values():
            await task.wait()


headway.run(main())
