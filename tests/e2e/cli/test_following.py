"""Who waits for a run at a real terminal: through the death of the server, and without reading a thing twice."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.cli.shell import Shell, serving_again
from tests.e2e.cli.terminal import Terminal, at_terminal
from tests.e2e.gateway.cast import gate
from tests.e2e.gateway.servers import serving
from tests.e2e.processes import Process
from tests.e2e.serve.asking import until

COMMANDS = "tests.e2e.cli.commands:hw"


@pytest.mark.parametrize("dies", [Process.kill, Process.end], ids=["killed", "stopped"])
def test_d1_what_waits_is_waited_for_while_the_server_is_away(
    tmp_path: Path, dies: Callable[[Process], int]
) -> None:
    """Whether it was queued or ran; each run is done once, and its exit code is that of the command."""
    with serving(tmp_path, None, "--grace", "1s") as first, ExitStack() as terminals:
        shell = Shell(first)
        assert shell("run", "steady", "hold door", "--session", "s", "--no-wait").code == 0
        hold = ("-p", "gate=door", "--session", "t")
        assert shell("tasks", "submit", "modest", "wait", *hold).code == 0
        waiting: dict[str, Terminal] = {}
        for line, reply in (
            ("run steady one --session s", "steady: one"),
            ("send steady two --session s", "steady: two"),
            ("tasks submit modest click --ref e1 --session t --wait", "click e1"),
            ("run steady hold alone", "steady held alone; told []"),
        ):
            waiting[reply] = terminals.enter_context(at_terminal(line.split(), shell.environment))
        ids = {reply: _run_id(terminal) for reply, terminal in waiting.items()}
        waiting["steady held alone; told []"].wait_for("holding alone")
        dies(first.process)
        for reply, terminal in waiting.items():
            terminal.wait_for(f"the server is away; waiting for run {ids[reply]}")
        gate("door", tmp_path).touch()
        gate("alone", tmp_path).touch()
        with serving_again(tmp_path, first) as second:
            for reply, terminal in waiting.items():
                terminal.wait_for("the server is back")
                terminal.wait_for(reply)
                assert terminal.end() == 0
            assert len(second.http.get("/runs").json()["runs"]) == 6


def _run_id(terminal: Terminal) -> str:
    terminal.wait_for("(run ")
    return terminal.wait_for(")")


def test_through_a_pipe_only_the_reply_is_on_stdout_and_the_absence_on_stderr(
    tmp_path: Path,
) -> None:
    with serving(tmp_path) as first:
        shell = Shell(first)
        held = shell.json("run", "steady", "hold door", "--no-wait")
        watching = subprocess.Popen(
            [sys.executable, "-m", "headway", "runs", "watch", str(held["runId"])],
            env=shell.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        until(lambda: "headway_streams 1" in first.http.get("/metrics").text, "it is watched")
        first.process.kill()
        gate("door", tmp_path).touch()
        with serving_again(tmp_path, first):
            out, err = watching.communicate(timeout=120)
        assert (watching.returncode, out) == (0, "steady held door; told []\n")
        assert "the server is away" in err


def test_w1_what_a_command_wrote_is_shown_once(tmp_path: Path) -> None:
    with serving(tmp_path, agents=COMMANDS) as server:
        environment = Shell(server).environment
        with at_terminal(("run", "sh", "echo fi'rs't; echo la'st'"), environment) as done:
            done.wait_for(")")
            assert done.end() == 0
            assert done.rest == "\r\nfirst\r\nlast\r\n"
        with at_terminal(("run", "sh", "echo br'oken'; exit 7"), environment) as failed:
            run_id = _run_id(failed)
            assert failed.end() == 4
            told = f"headway: run {run_id} ended failed/error: exit code 7"
            assert failed.rest == f"\r\nbroken\r\n{told}\r\n"


def test_w1_through_a_pipe_the_reply_and_the_error_are_whole(tmp_path: Path) -> None:
    with serving(tmp_path, agents=COMMANDS) as server:
        shell = Shell(server)
        done = shell("run", "sh", "echo first; echo last")
        assert (done.code, done.out, done.err) == (0, "first\nlast\n", "")
        failed = shell("run", "sh", "echo broken; exit 7")
        assert (failed.code, failed.out) == (4, "")
        assert failed.err.endswith(" ended failed/error: exit code 7: broken\n")
