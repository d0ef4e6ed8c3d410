"""Jobs that run commands, from the job to the outcome, in real time."""

import asyncio
import sys
import time
from collections.abc import Coroutine
from pathlib import Path

from headway import Delivery, Handle, Headway, Route, Settings
from headway.model.events import AttemptAbandoned, JobPassed, OutputEmitted
from headway.model.time import MILLISECOND
from tests.unit.runners.processes import alive
from tests.unit.runtime.worlds import ending, hear, only


def play(main: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 20))


async def fire(hw: Headway, command: list[str], **fields: object) -> Handle:
    await hw.jobs.add("tool", "command", every="1h", command=command, **fields)  # type: ignore[arg-type]
    handle = await hw.jobs.run("command/tool")
    assert handle is not None
    return handle


def test_w1_a_job_runs_its_command_and_its_outcome_has_the_output() -> None:
    async def main() -> None:
        hw = Headway()
        hw.commands()
        async with hw:
            heard = hear(hw)
            outcome = await (await fire(hw, ["sh", "-c", "echo for $HEADWAY_JOB_ID"])).wait()
            job = await hw.jobs.get("command/tool")
            assert ending(outcome) == "done"
            assert outcome.reply is not None
            assert (outcome.text, outcome.reply.data) == (f"for {job.job.id}", {"exit": 0})
            assert [event.text for event in only(heard, OutputEmitted)] == [f"for {job.job.id}\n"]

    play(main())


def test_w1_the_exit_code_and_the_tail_are_in_the_outcome_that_is_an_error() -> None:
    async def main() -> None:
        hw = Headway()
        hw.commands()
        async with hw:
            command = ["sh", "-c", "echo the disk is full >&2; exit 28"]
            outcome = await (await fire(hw, command, retries=0)).wait()
            assert ending(outcome) == "failed/error"
            assert outcome.error == "CommandFailed: exit code 28: the disk is full"

    play(main())


def test_c9_a_command_that_does_not_exist_fails_at_once() -> None:
    async def main() -> None:
        hw = Headway()
        hw.commands()
        async with hw:
            outcome = await (await fire(hw, ["no-such-program"], retries=3)).wait()
            assert ending(outcome) == "failed/error"
            assert "'no-such-program' cannot be run: No such file" in outcome.error

    play(main())


def test_w1_a_command_that_is_over_its_time_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    async def main() -> None:
        hw = Headway()
        hw.commands()
        async with hw:
            command = ["sh", "-c", f"echo $$ >{pid}; sleep 60; true"]
            outcome = await (await fire(hw, command, timeout="300ms", retries=0)).wait()
            assert ending(outcome) == "failed/timed_out"
            assert not alive(int(pid.read_text()))

    play(main())


def test_w1_a_stopped_command_is_gone_when_its_run_has_ended() -> None:
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"

    async def main() -> None:
        hw = Headway()
        hw.commands()
        async with hw:
            heard = hear(hw)
            handle = await fire(hw, [sys.executable, "-c", program])
            pid = int(await anext(handle.stream()))
            await handle.cancel()
            assert ending(await handle.wait()) == "cancelled/stopped"
            assert not alive(pid)
            assert only(heard, AttemptAbandoned) == []

    play(main())


def test_l5_a_node_that_closes_leaves_no_command_behind() -> None:
    program = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), flush=True); time.sleep(60)"
    )

    async def main() -> int:
        hw = Headway(settings=Settings(cancel_grace=100 * MILLISECOND))
        hw.commands()
        async with hw:
            handle = await fire(hw, [sys.executable, "-c", program])
            pid = int(await anext(handle.stream()))
            await hw.close(0)
        return pid

    pid = asyncio.run(main())
    while alive(pid):
        time.sleep(0.001)


def test_x7_a_command_can_be_the_gate(tmp_path: Path) -> None:
    sign = tmp_path / "something-to-do"

    async def main() -> None:
        said: asyncio.Queue[str] = asyncio.Queue()
        hw = Headway()
        hw.commands()

        @hw.channel("chat")
        async def chat(delivery: Delivery) -> None:
            said.put_nowait(delivery.text)

        async with hw:
            with hw.events() as listener:
                await hw.jobs.add(
                    "gated",
                    "command",
                    every="1s",
                    command=["echo", "done"],
                    gate={"command": ["test", "-e", str(sign)]},
                    deliver=Route("chat"),
                )
                while not isinstance(passed := await anext(listener), JobPassed):
                    pass
            assert passed.reason == "the gate said no"
            assert said.empty()
            sign.touch()
            assert await said.get() == "done"

    play(main())
