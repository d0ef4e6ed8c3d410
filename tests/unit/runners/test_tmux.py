"""Panes, as far as that needs no tmux; `tests/e2e/workers/test_tmux.py` has the rest."""

import asyncio
import sys
from pathlib import Path

import pytest

from headway.model.errors import Permanent, Refused, WorkFailed
from headway.model.run import AgentName, RunId
from headway.model.runner import PaneSpec
from headway.runners.pane import Label, attach_command, escaped, unescaped
from headway.runners.pane_work import history_of
from headway.runners.tmux import PaneRunner
from headway.turn import KeepsWorkers
from tests.unit.runners.turns import turn_with

pytest.importorskip("libtmux")


def test_a_session_is_named_after_its_run_and_attempt() -> None:
    label = Label(RunId("1k3f9a2xq-42"), 2, AgentName("coder"), "")
    assert label.name == "hw-1k3f9a2xq-42-2"


@pytest.mark.parametrize("text", ["1k3-42", "a.b:c", "ü #{x} %d ~", "", "|;", "~2e~"])
def test_names_are_what_tmux_takes_and_lead_back(text: str) -> None:
    name = escaped(text)
    assert not set(name) & set(".:#%|; {}")
    assert unescaped(name) == text


def test_different_ids_never_have_one_name() -> None:
    assert len({escaped(text) for text in ("a.b", "a_b", "a:b", "a~2e~b", "a-b")}) == 5


def test_a_person_is_told_how_to_look() -> None:
    assert attach_command("headway", "hw-1-1") == [
        *("tmux", "-L", "headway", "attach-session", "-t", "=hw-1-1")
    ]
    assert "-r" in attach_command("headway", "hw-1-1", read_only=True)


@pytest.mark.parametrize(("output", "lines"), [(64 * 1024, 4096), (10, 50), (10**9, 100_000)])
def test_the_history_of_a_pane_is_bounded(output: int, lines: int) -> None:
    assert history_of(PaneSpec(command=("true",), output=output)) == lines


def test_w2_its_runner_keeps_workers(tmp_path: Path) -> None:
    runner = PaneRunner(PaneSpec(command=("true",), socket="headway-nobody"), "coder", "", tmp_path)
    assert isinstance(runner, KeepsWorkers)
    assert runner.outlives
    assert not runner.has(RunId("run-1"), 1)


def test_without_libtmux_it_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libtmux", None)
    with pytest.raises(Refused, match=r"pip install 'headway\[tmux\]'"):
        PaneRunner(PaneSpec(command=("true",)), "coder")


def test_without_tmux_a_run_fails_for_good(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """R: the reason names what is missing, and what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))
    runner = PaneRunner(PaneSpec(command=("true",)), "coder", "", tmp_path)

    async def main() -> None:
        await runner.run(turn_with())

    with pytest.raises(WorkFailed, match="tmux is not installed here: install it") as failure:
        asyncio.run(main())
    assert failure.value.permanent
    assert failure.value.code == "tmux_missing"
    assert not list(tmp_path.rglob("*.json")), "nothing secret is left"


def test_without_a_python_for_its_first_process_a_run_fails_for_good(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A program that has Python inside does not always say where that is."""
    monkeypatch.setattr(sys, "executable", "")
    runner = PaneRunner(PaneSpec(command=("true",)), "coder", "", tmp_path)

    async def main() -> None:
        await runner.run(turn_with())

    with pytest.raises(Permanent, match="need a Python to be started with"):
        asyncio.run(main())
