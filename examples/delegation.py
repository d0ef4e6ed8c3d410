"""Delegation: an agent asks another and waits, even in a lane with a single slot.

A turn that waits for a sub-run does no work meanwhile, so it lends its slot to it. Else this would
be a deadlock: the parent holds the only slot and waits for a child that waits for a slot.

Output::

    planner: trip to Paris
      researcher: trains to Paris
        reader: timetable of trains to Paris
      researcher: weather in Paris
    plan: 10:17 from platform 4, and it will be sunny
"""

import headway
from headway import Headway, Turn

hw = Headway(lanes={"main": 1})


@hw.agent("planner")
async def planner(turn: Turn) -> str:
    print(f"planner: trip to {turn.text}")
    train = await turn.delegate("researcher", f"trains to {turn.text}", lane="main")
    weather = await turn.delegate("researcher", f"weather in {turn.text}", lane="main")
    return f"{train}, and it will be {weather}"


@hw.agent("researcher")
async def researcher(turn: Turn) -> str:
    print(f"  researcher: {turn.text}")
    if turn.text.startswith("weather"):
        return "sunny"
    return await turn.delegate("reader", f"timetable of {turn.text}", lane="main")


@hw.agent("reader")
async def reader(turn: Turn) -> str:
    print(f"    reader: {turn.text}")
    return "10:17 from platform 4"


async def main() -> None:
    async with hw:
        print("plan:", await hw.send("planner", "Paris"))


headway.run(main())
