"""`headway attach`, where there is nothing to attach to: each reason in one line (W-1)."""

import asyncio
import importlib.util
import os
import sys
from pathlib import Path

import msgspec
import pytest

from headway.cli.attach import Seen, Spot, _spot
from headway.facade import Headway
from headway.model.errors import Refused
from headway.model.run import AgentName, RunId, SessionKey
from headway.model.words import State, WorkerKind, WorkerState
from headway.model.worker import Worker
from tests.unit.cli.calling import NO_SERVER, Shell, sqlite_shell

pytest.importorskip("libtmux")
NOWHERE = f"headway-nobody-{os.getpid()}"
WORKER = Worker(
    "r-1.1",
    RunId("r-1"),
    1,
    AgentName("coder"),
    SessionKey("chat"),
    WorkerKind.TMUX,
    "here",
    1,
    4711,
    1.5,
    0,
    WorkerState.BUSY,
    0,
    pane="of:one:hw-r-1-1",
)


@pytest.fixture(autouse=True)
def on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_MACHINE", "here")


def spot(state: State = State.RUNNING, worker: Worker | None = WORKER) -> Spot:
    return _spot("r-1", Seen(state, "", "coder", worker))


def test_a_pane_on_this_machine_is_found() -> None:
    assert spot() == Spot("of:one", "hw-r-1-1")


@pytest.mark.parametrize(
    ("state", "worker", "reason"),
    [
        (State.DONE, WORKER, "r-1 has ended: done"),
        (State.QUEUED, None, "r-1 is queued: it has no pane before it runs"),
        (State.RUNNING, None, "no worker that was seen yet"),
        (
            State.RUNNING,
            msgspec.structs.replace(WORKER, kind=WorkerKind.COMMAND, pane=""),
            "is a command, which has no pane; `headway runs watch r-1` shows",
        ),
        (
            State.RUNNING,
            msgspec.structs.replace(WORKER, host="there"),
            "is on there, not on this machine: run `headway attach r-1` there",
        ),
    ],
)
def test_why_there_is_none(state: State, worker: Worker | None, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        spot(state, worker)


def test_a_store_can_be_asked(tmp_path: Path) -> None:
    shell = sqlite_shell(tmp_path)
    headway = Headway(shell.store)
    headway.remote_agent("elsewhere")

    @headway.agent("echo")
    async def echo(turn: object) -> str:
        return "done"

    async def fill() -> tuple[str, str]:
        async with headway:
            done, waits = await headway.submit("echo"), await headway.submit("elsewhere")
            await done.wait()
            return done.id, waits.id

    done, waits = asyncio.run(fill())
    attach = ("attach", "--socket", NOWHERE)
    assert f"run {done} has ended: done\n" in shell.refused(*attach, done)
    assert f"run {waits} is queued" in shell.refused(*attach, waits)
    assert "there is no run 'nobody'" in shell.refused(*attach, "nobody")


def test_without_libtmux_a_run_that_has_no_pane_is_still_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = sqlite_shell(tmp_path)
    headway = Headway(shell.store)
    headway.remote_agent("elsewhere")

    async def fill() -> str:
        async with headway:
            return (await headway.submit("elsewhere")).id

    waits = asyncio.run(fill())
    find = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "libtmux", None)
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, package=None: None if name == "libtmux" else find(name, package),
    )
    told = shell.refused("attach", waits)
    assert f"run {waits} is queued: it has no pane before it runs" in told


def test_without_a_server_that_is_said() -> None:
    told = Shell("")("attach", "--socket", NOWHERE, "r-1", "--print")
    assert (told.code, NO_SERVER in told.err) == (3, True)
