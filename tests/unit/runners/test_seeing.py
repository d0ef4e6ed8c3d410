"""Looking at commands: who is there, does it answer, does it do anything (D-8)."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from headway.model.errors import WorkerLost
from headway.model.payload import Execute
from headway.model.words import WorkerKind
from headway.model.worker import MAX_LINE, MAX_LINES
from headway.runners.command import CommandRunner
from headway.runners.keeper import process
from headway.turn import KeepsWorkers, Sight
from tests.unit.runners.commands import (
    RUN,
    freeze,
    keeper_of,
    none_alive,
    play,
    python,
    quick,
    runner_at,
    turn_of,
    wait_until,
)
from tests.unit.runners.turns import Ears


async def only(runner: CommandRunner) -> Sight:
    (sight,) = await runner.look()
    return sight


TALKS = """
import os, sys, time
print("pid", os.getpid(), flush=True)
for line in sys.stdin:
    pass
while True:
    time.sleep(60)
"""


def test_d8_a_worker_is_seen_by_every_process_that_knows_its_home(home: Path) -> None:
    async def main() -> None:
        ears = Ears()
        assert await runner_at(home).look() == []
        task = asyncio.create_task(quick(home).run(turn_of(python(TALKS), ears)))
        pid = int((await ears.until(r"pid (\d+)\n"))[1])
        await asyncio.to_thread(keeper_of, home)
        other: KeepsWorkers = runner_at(home)
        (sight,) = await other.look()
        found = process(pid)
        assert found is not None
        assert sight == Sight(
            run_id=RUN,
            attempt=2,
            kind=WorkerKind.COMMAND,
            pid=pid,
            born=found.born,
            started_at=1_000_000,
            answers=True,
            lines=(f"pid {pid}",),
        )
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await other.look() == []

    play(main())


WORKS = """
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"said something\\n"))
def compute(*_):
    until = time.process_time() + 0.15
    while time.process_time() < until:
        pass
    sys.stderr.flush()
    open(sys.argv[1], "a").write("computed")
signal.signal(signal.SIGUSR2, compute)
print("pid", os.getpid(), flush=True)
while True:
    signal.pause()
"""


async def rests(runner: CommandRunner) -> None:
    """Until it did nothing between two looks: what it has to do before it waits may be counted late."""
    while (await only(runner)).busy is not False:
        pass


def test_d8_a_worker_is_busy_when_it_wrote_or_computed_since_the_last_look(
    home: Path, tmp_path: Path
) -> None:
    computed = tmp_path / "computed"

    async def main() -> None:
        ears = Ears()
        runner = quick(home)
        task = asyncio.create_task(runner.run(turn_of(python(WORKS, str(computed)), ears)))
        pid = int((await ears.until(r"pid (\d+)\n"))[1])
        await asyncio.to_thread(keeper_of, home)
        assert (await only(runner)).busy is None, "nobody has looked before"
        await rests(runner)
        os.kill(pid, signal.SIGUSR1)
        await ears.until("said something")
        assert (await only(runner)).busy is True
        await rests(runner)
        os.kill(pid, signal.SIGUSR2)
        await asyncio.to_thread(wait_until, computed.exists)
        assert (await only(runner)).busy is True
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(main())


def test_d8_the_last_lines_are_seen_within_bounds(home: Path) -> None:
    async def main() -> None:
        ears = Ears()
        runner = quick(home)
        program = "import time\nfor n in range(99): print(n, 'x' * 999)\nprint('last', flush=True); time.sleep(60)"
        task = asyncio.create_task(runner.run(turn_of(python(program), ears)))
        await ears.until("last")
        await asyncio.to_thread(keeper_of, home)
        lines = (await only(runner)).lines
        assert len(lines) <= MAX_LINES
        assert lines[-1] == "last"
        assert lines[-2] == f"98 {'x' * 999}"[:MAX_LINE]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(main())


def test_d8_one_that_has_ended_is_over_until_it_is_forgotten(home: Path) -> None:
    async def main() -> None:
        runner = runner_at(home)
        await runner.run(turn_of(Execute(("echo", "bye"))))
        sight = await only(runner)
        assert (sight.over, sight.answers, sight.exit_code) == (True, False, 0)
        assert sight.lines == ("bye",)
        runner.forget(RUN, 2)
        assert await runner.look() == []

    play(main())


def test_d8_a_frozen_keeper_does_not_answer_and_delays_nobody_long(home: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        runner = quick(home)
        tasks = []
        for n in range(3):
            turn = turn_of(Execute(("sleep", "60")), run_id=f"{RUN}-{n}")
            tasks.append(asyncio.create_task(runner.run(turn)))
        keepers = [await asyncio.to_thread(keeper_of, home, f"{RUN}-{n}") for n in range(3)]
        freeze(keepers[0])
        freeze(keepers[1])
        began = loop.time()
        sights = await runner.look()
        assert loop.time() - began < 20
        while not sights[2].answers:
            sights = await runner.look()
        assert [sight.answers for sight in sights] == [False, False, True]
        assert not any(sight.over for sight in sights)
        assert all(sight.pid for sight in sights)
        await asyncio.gather(*(runner.end(sight.run_id, sight.attempt) for sight in sights))
        for task in tasks:
            with pytest.raises(WorkerLost):
                await task
        assert none_alive(*keepers)

    play(main())
