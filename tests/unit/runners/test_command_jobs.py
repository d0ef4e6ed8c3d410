"""Jobs that run commands, from the job to the outcome, in real time."""

import asyncio
import sys
import time
from collections.abc import Coroutine
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from headway import Delivery, Handle, Headway, Route, Settings
from headway.model.events import AttemptAbandoned, JobPassed, OutputEmitted, RunFinished, RunStarted
from headway.model.time import MILLISECOND, SECOND
from headway.wiring import store_digest
from tests.unit.runners.processes import alive
from tests.unit.runtime.worlds import ending, hear, moment, only


def play(main: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 60))


async def fire(hw: Headway, command: list[str], name: str = "tool", **fields: object) -> Handle:
    await hw.jobs.add(name, "command", every="1h", command=command, **fields)  # type: ignore[arg-type]
    handle = await hw.jobs.run(f"command/{name}")
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
            assert outcome.error == "exit code 28: the disk is full"
            assert outcome.code == "command_failed"
            assert outcome.details == {"exit": 28, "output": "the disk is full"}

    play(main())


def test_w1_twenty_commands_in_a_lane_of_five_are_all_done() -> None:
    async def main() -> None:
        hw = Headway(lanes={"five": 5})
        hw.command_agent("quick", ["true"])
        async with hw:
            heard = hear(hw)
            handles = [await hw.submit("quick", session=f"s-{n}", lane="five") for n in range(20)]
            outcomes = [await handle.wait() for handle in handles]
            assert [ending(outcome) for outcome in outcomes] == ["done"] * 20
            assert [outcome.reply and outcome.reply.data for outcome in outcomes] == [
                {"exit": 0}
            ] * 20
            running = most = 0
            for event in heard:
                running += isinstance(event, RunStarted) - isinstance(event, RunFinished)
                most = max(most, running)
            assert most == 5

    play(main())


def test_c5_a_recurring_command_that_fails_fires_on_time() -> None:
    async def main() -> None:
        hw = Headway()
        hw.commands()
        async with hw:
            with hw.events() as listener:
                job = await hw.jobs.add(
                    "fails",
                    "command",
                    every="1s",
                    command=["sh", "-c", "echo x; exit 3"],
                    retries=0,
                )
                ended = 0
                while ended < 3:
                    ended += isinstance(await anext(listener), RunFinished)
            entries = (await hw.jobs.log(job.job.id)).entries[-3:]
            for entry in entries:
                assert entry.outcome is not None
                assert ending(entry.outcome) == "failed/error"
                assert entry.outcome.code == "command_failed"
                assert entry.outcome.details == {"exit": 3, "output": "x"}
                assert entry.lateness is not None
                assert entry.lateness < 10 * SECOND
            due = sorted(entry.due_at for entry in entries)
            # A machine that stands still may miss a second: there is none between two of them.
            gaps = [after - before for before, after in pairwise(due)]
            assert all(gap % SECOND == 0 and gap <= 10 * SECOND for gap in gaps), gaps

    play(main())


def test_w1_much_output_costs_little_memory_however_slow_a_listener_is() -> None:
    """The server itself, with a listener and a stream that nobody reads."""

    async def main() -> None:
        hw = Headway()
        hw.commands()
        async with hw:
            await (await fire(hw, ["true"])).wait()
            me = psutil.Process()
            with hw.events():
                before = me.memory_info().rss
                handle = await fire(
                    hw, ["sh", "-c", "echo ready; head -c 100000000 /dev/zero"], name="loud"
                )
                stream = handle.stream()
                await anext(stream)
                outcome = await handle.wait()
                grown = me.memory_info().rss - before
            assert ending(outcome) == "done"
            assert len(outcome.text) == 64 * 1024
            assert grown < 20_000_000, f"{grown:,} bytes"

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
            outcome = await (await fire(hw, command, timeout="2s", retries=0)).wait()
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


def test_w2_stores_of_the_same_name_in_two_folders_do_not_know_each_others_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the orphan scan of one would end the commands of the other."""
    digests = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        digests.append(store_digest("sqlite:///headway.db"))
        assert store_digest(f"sqlite:///{tmp_path / name}/headway.db") == digests[-1]
    assert digests[0] != digests[1]
    with_password = store_digest("postgresql://me:secret@host/db")
    assert with_password == store_digest("postgresql://me:changed@host/db")


def test_w2_a_durable_store_has_a_home_for_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing of a worker stays when its run has ended and is stored."""
    monkeypatch.setenv("HEADWAY_STATE", str(tmp_path / "state"))
    store = f"sqlite:///{tmp_path / 'headway.db'}"
    home = tmp_path / "state" / "workers" / store_digest(store) / "tool"

    async def main() -> None:
        hw = Headway(store)
        hw.command_agent("tool", ["ls", str(home)])
        async with hw:
            handle = await hw.submit("tool")
            assert (await handle.wait()).text == f"{handle.id}.1"
            while list(home.iterdir()):
                await moment()

    play(main())
