"""A chat that survives its process: killed in the middle of a turn, the next start goes on.

The program starts itself twice on the same file. The first process is killed with SIGKILL while it
answers, so it can tidy up nothing. The second one finds the turn that was cut and tries it again (a
message has two attempts unless it says otherwise), then the one that waited behind it, in order. Its own
message comes last, and the same message delivered twice is taken once.

Output::

    first process: answering 'good morning', attempt 1
    killed: True
    second process: answering 'good morning', attempt 2
    second process: answering 'what is new?', attempt 1
    second process: answering 'are you there?', attempt 1
    the same message again: the same run
    nothing is left to do: True
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import headway
from headway import Headway, Route, Turn

CHAT = Route(channel="telegram", peer="42")


def desk(process: str) -> Headway:
    hw = Headway("sqlite:///chat.db", name=process)

    @hw.agent("support")
    async def support(turn: Turn) -> str:
        print(f"{process} process: answering {turn.text!r}, attempt {turn.attempt}", flush=True)
        if process == "first":
            os.kill(os.getpid(), signal.SIGKILL)
        return f"You said: {turn.text}"

    return hw


async def first() -> None:
    async with desk("first") as hw:
        # Acknowledged means stored: from here on neither message can be lost.
        await asyncio.gather(
            hw.submit("support", "good morning", route=CHAT, message_id="1", debounce=0),
            hw.submit("support", "what is new?", route=CHAT, message_id="2", debounce=0),
        )
        await asyncio.Event().wait()


async def second() -> None:
    async with desk("second") as hw:
        run = await hw.submit("support", "are you there?", route=CHAT, message_id="3", debounce=0)
        await run.reply()
        again = await hw.submit("support", "are you there?", route=CHAT, message_id="3", debounce=0)
        print("the same message again:", "the same run" if again.id == run.id else "another run")
        runs = (await hw.runs()).runs
        print("nothing is left to do:", [run.state for run in runs] == ["done"] * 3)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, str(Path(__file__).resolve())]
        killed = subprocess.run([*program, "first"], cwd=folder, check=False)
        print("killed:", killed.returncode == -signal.SIGKILL, flush=True)
        subprocess.run([*program, "second"], cwd=folder, check=True)


if sys.argv[1:] == ["first"]:
    headway.run(first())
elif sys.argv[1:] == ["second"]:
    headway.run(second())
else:
    main()
