"""A process that looks after one worker, as a server does: it prints what it hears and how it ended.

`python -m tests.e2e.workers.serving HOME EPOCH [word…] -- ARGV…`. SIGUSR1 cancels. `adopt`: it attaches to the
worker that is there; `die`: it kills itself right after it has started one; `freeze`: that one stops before its
first step; `alone`: the worker shall not outlive it; `patient`: the worker has some seconds to end.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from headway.model.errors import HeadwayError, WorkFailed
from headway.model.payload import Execute
from headway.model.runner import CommandSpec
from headway.model.time import MILLISECOND
from headway.runners import command, keeper
from headway.runners.command import CommandRunner
from headway.runners.home import WorkerHome
from headway.runners.starting import Started, start
from tests.e2e.processes import say
from tests.unit.runners.commands import RUN, turn_of
from tests.unit.runners.turns import Ears


class Prints(Ears):
    def emit(self, ticket: int, text: str) -> None:
        say(f"heard {json.dumps(text)}")


def start_and_die(task: bytes, folder: Path, lock: int) -> Started:
    """Between the start of a worker and any word of it."""
    started = start(task, folder, lock)
    say(f"started {started.popen.pid}")
    os.kill(os.getpid(), signal.SIGKILL)
    return started


def freeze_keepers(folder: Path) -> None:
    """A keeper stops itself first: whoever stops it from outside may come too late."""
    frozen = folder / "keeper.py"
    frozen.write_text(
        "import os, runpy, signal\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\n"
        f"runpy.run_path({keeper.__file__!r}, run_name='__main__')\n"
    )
    keeper.__file__ = str(frozen)


async def serve(home: str, epoch: int, words: list[str], argv: list[str]) -> None:
    runner = CommandRunner(
        CommandSpec(grace=(5000 if "patient" in words else 300) * MILLISECOND),
        WorkerHome(Path(home)),
        "shell",
        outlives="alone" not in words,
    )
    turn = turn_of(Execute(tuple(argv)), Prints(), epoch=epoch, adopts="adopt" in words)
    say(f"has {runner.has(RUN, 2)}")
    task = asyncio.create_task(runner.run(turn))
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, task.cancel)
    say("serves")
    try:
        reply = await task
    except WorkFailed as failed:
        say(f"failed {failed.code} {json.dumps(failed.details)} {failed}")
    except HeadwayError as error:
        say(f"raised {type(error).__name__} {error}")
    except asyncio.CancelledError:
        say("cancelled")
    else:
        say(f"replied {json.dumps(reply.text)} {json.dumps(reply.data)}")


def main() -> None:
    at = sys.argv.index("--")
    home, epoch, *words = sys.argv[1:at]
    if "die" in words:
        vars(command)["start"] = start_and_die
    if "freeze" in words:
        freeze_keepers(Path(home).parent)
    asyncio.run(serve(home, int(epoch), words, sys.argv[at + 1 :]))


if __name__ == "__main__":
    main()
