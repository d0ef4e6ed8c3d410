"""Calls `headway` in this process: quick, and for commands that end by themselves."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headway.cli import app

NO_SERVER = "http://127.0.0.1:1"


@dataclass(frozen=True)
class Called:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Shell:
    """A shell with a store: every command that needs one uses it."""

    def __init__(self, store: str) -> None:
        self.store = store

    def __call__(self, *arguments: str, stdin: str | None = None, **environment: str) -> Called:
        """Run a command, however it ends."""
        settings = {
            "HEADWAY_STORE": self.store,
            # Never the server that may run on this machine: nothing listens there.
            "HEADWAY_SERVER": "" if self.store else NO_SERVER,
            "COLUMNS": "200",
            "HEADWAY_TZ": "",
            **environment,
        }
        result = CliRunner().invoke(app, arguments, input=stdin, env=settings)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Called(result.exit_code, result.stdout, result.stderr)

    def ok(self, *arguments: str, stdin: str | None = None, **environment: str) -> Called:
        """Run a command that must go well."""
        called = self(*arguments, stdin=stdin, **environment)
        assert (called.code, called.err) == (0, ""), called
        return called

    def json(self, *arguments: str, stdin: str | None = None) -> object:
        return json.loads(self.ok(*arguments, "--json", stdin=stdin).out)

    def refused(self, *arguments: str, stdin: str | None = None) -> str:
        """Run a command that must be refused in one line; answers the line."""
        called = self(*arguments, stdin=stdin)
        assert (called.code, called.out) == (2, ""), called
        assert called.err.startswith("headway: ")
        assert called.err.count("\n") == 1
        return called.err


def sqlite_shell(folder: Path) -> Shell:
    return Shell(f"sqlite:///{folder}/work.db")


def fields_of(called: Called) -> dict[str, str]:
    """What `show` and its like print, by the names on the left."""
    rows = [re.split(r"  +", line, maxsplit=1) for line in called.lines if line[:1] != " "]
    return dict(row for row in rows)


def part(data: object, *path: str | int) -> object:
    """What is at a place in JSON."""
    for step in path:
        assert isinstance(data, dict | list)
        data = data[step]  # type: ignore[index]
    return data


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return sqlite_shell(tmp_path)
