"""A process that runs one turn in a pane, and is killed meanwhile: `python -m … SOCKET STATE PROGRAM STORE`."""

import asyncio
import sys
from pathlib import Path

from headway.model.runner import PaneSpec
from headway.runners.tmux import PaneRunner
from tests.e2e.processes import say
from tests.unit.runners.turns import Ears, turn_with


async def main(socket: str, state: str, program: str, store: str) -> None:
    spec = PaneSpec(command=(sys.executable, "-c", program), socket=socket)
    runner = PaneRunner(spec, "coder", store, Path(state), outlives=store != "memory")
    ears = Ears()
    running = asyncio.create_task(runner.run(turn_with(desk=ears)))
    await ears.until("ready")
    say("ready")
    await running


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
