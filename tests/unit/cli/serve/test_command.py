"""`headway serve` on the command line: what it says before it begins."""

import importlib.util
import sys
from importlib.machinery import ModuleSpec

import pytest
from typer.testing import CliRunner

from headway.cli import app


def test_without_the_server_packages_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec

    def find_without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in {"litestar", "uvicorn"} else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_without)
    ran = CliRunner().invoke(app, ["serve"])
    assert ran.exit_code == 2
    assert ran.stderr == (
        "headway: litestar, uvicorn not installed: pip install 'headway[server]'\n"
    )


@pytest.mark.parametrize("line", [("top",), ("chat", "echo"), ("send", "echo", "hi")])
def test_without_the_client_packages_it_is_said_too(
    line: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is imported that needs them."""
    find = importlib.util.find_spec

    def find_without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "httpx" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_without)
    for name in [*sys.modules]:
        if name == "httpx" or name.startswith(("headway.client", "headway.cli.top.watcher")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)
    ran = CliRunner().invoke(app, line)
    assert (ran.exit_code, ran.stderr) == (
        2,
        "headway: httpx not installed: pip install 'headway[server]'\n",
    )


def test_what_it_can_be_told_is_in_its_help() -> None:
    ran = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"})
    assert ran.exit_code == 0
    for option in (
        *("--agents", "--commands", "--no-commands", "--demo", "--store", "--database", "--host"),
        *("--port", "--config", "--name", "--grace", "--log-file", "--log-level"),
    ):
        assert option in ran.stdout
