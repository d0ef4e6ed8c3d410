"""The core and the model stay pure, and the import contracts can fail.

import-linter sees imports. This looks at the rest of what would let the world in: coroutines,
printing, opening files, asking for the time.
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PURE_ROOMS = ("core", "model")

with (ROOT / "pyproject.toml").open("rb") as _file:
    _CONTRACTS = {
        contract["id"]: contract
        for contract in tomllib.load(_file)["tool"]["importlinter"]["contracts"]
    }
FORBIDDEN_MODULES = frozenset(_CONTRACTS["pure"]["forbidden_modules"])
FORBIDDEN_CALLS = frozenset({"__import__", "eval", "exec", "input", "open", "print"})
FORBIDDEN_NAMES = frozenset(
    {
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
    }
)


def impurities(source: str) -> list[str]:
    """What in this source the core may not do, each with its line."""
    tree = ast.parse(source)
    aliases = _aliases(tree)
    return [
        f"line {line}: {what}"
        for node in ast.walk(tree)
        for line, what in _impurities_of(node, aliases)
    ]


def _impurities_of(node: ast.AST, aliases: dict[str, str]) -> Iterator[tuple[int, str]]:
    match node:
        case ast.AsyncFunctionDef():
            yield node.lineno, f"async def {node.name}"
        case ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            yield node.lineno, type(node).__name__.lower()
        case ast.comprehension(is_async=1):
            yield node.target.lineno, "async comprehension"
        case ast.Import():
            for name in node.names:
                if name.name.partition(".")[0] in FORBIDDEN_MODULES:
                    yield node.lineno, f"import {name.name}"
        case ast.ImportFrom(module=str(module), level=0):
            if module.partition(".")[0] in FORBIDDEN_MODULES:
                yield node.lineno, f"from {module} import"
        case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS:
            yield node.lineno, f"{name}()"
        case ast.Attribute():
            if (dotted := _dotted(node, aliases)) in FORBIDDEN_NAMES:
                yield node.lineno, dotted
        case _:
            pass


def _aliases(tree: ast.AST) -> dict[str, str]:
    """The names that imports bind, and what they stand for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                found |= {name.asname: name.name for name in node.names if name.asname}
            case ast.ImportFrom(module=str(module)):
                found |= {name.asname or name.name: f"{module}.{name.name}" for name in node.names}
            case _:
                pass
    return found


def _dotted(node: ast.expr, aliases: dict[str, str]) -> str:
    match node:
        case ast.Name():
            return aliases.get(node.id, node.id)
        case ast.Attribute():
            return f"{_dotted(node.value, aliases)}.{node.attr}"
        case _:
            return ""


def _pure_files() -> list[Path]:
    return [
        path
        for room in PURE_ROOMS
        for path in sorted((ROOT / "src" / "headway" / room).rglob("*.py"))
    ]


@pytest.mark.parametrize("room", PURE_ROOMS)
def test_there_is_a_room_to_watch(room: str) -> None:
    assert any(path.is_relative_to(ROOT / "src" / "headway" / room) for path in _pure_files())


def test_the_core_and_the_model_are_pure() -> None:
    found = [
        f"{path.relative_to(ROOT)} {impurity}"
        for path in _pure_files()
        for impurity in impurities(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "impurity"),
    [
        ("async def go(): pass", "async def go"),
        ("async def go():\n    await thing", "await"),
        ("async def go():\n    async with thing: pass", "asyncwith"),
        ("async def go():\n    async for x in thing: pass", "asyncfor"),
        ("stream = (x async for x in thing)", "async comprehension"),
        ("import asyncio", "import asyncio"),
        ("import os.path", "import os.path"),
        ("import time as clock", "import time"),
        ("from concurrent.futures import Future", "from concurrent.futures import"),
        ("def late():\n    import random", "import random"),
        ("def late():\n    from logging import getLogger", "from logging import"),
        ("print('hello')", "print()"),
        ("def read(p):\n    return open(p)", "open()"),
        ("__import__('time')", "__import__()"),
        ("import datetime\nx = datetime.datetime.now()", "datetime.datetime.now"),
        ("import datetime as dt\nx = dt.datetime.utcnow()", "datetime.datetime.utcnow"),
        ("from datetime import datetime\nx = datetime.now", "datetime.datetime.now"),
        ("from datetime import datetime as d\nx = d.today()", "datetime.datetime.today"),
        ("from datetime import date\nx = date.today()", "datetime.date.today"),
    ],
)
def test_an_impurity_is_seen(source: str, impurity: str) -> None:
    assert any(found.endswith(f": {impurity}") for found in impurities(source))


@pytest.mark.parametrize(
    "source",
    [
        "from datetime import UTC, datetime\nx = datetime(2030, 1, 1, tzinfo=UTC)",
        "def due(event):\n    return event.now",
        "from headway.model.time import Instant",
        "from .time import Instant",
        "class Gate:\n    def open(self): ...\nGate().open()",
    ],
)
def test_what_is_pure_is_left_alone(source: str) -> None:
    assert impurities(source) == []


@pytest.mark.parametrize(
    ("module", "source", "contract"),
    [
        ("core/kernel.py", "import time", "pure"),
        ("core/kernel.py", "from asyncio import Queue", "pure"),
        ("model/run.py", "def late():\n    import uuid", "pure"),
        ("core/kernel.py", "from headway import config", "pure"),
        ("model/run.py", "from headway.core import kernel", "layers"),
        ("core/kernel.py", "from headway import ports", "layers"),
        ("store/memory.py", "from headway.runtime import engine", "layers"),
        ("runtime/engine.py", "from headway.runners import function", "layers"),
        ("facade.py", "from headway import testing", "layers"),
        ("core/kernel.py", "import headway", "layers"),
        ("utils.py", "", "layers"),
    ],
)
def test_a_contract_fails_when_it_is_broken(
    tmp_path: Path, module: str, source: str, contract: str
) -> None:
    sound = _broken_contracts(tmp_path)
    (tmp_path / "headway" / module).write_text(source + "\n", encoding="utf-8")
    assert (sound, _broken_contracts(tmp_path)) == (set(), {contract})


def _broken_contracts(folder: Path) -> set[str]:
    """Lay out a small headway where there is none yet, and name the contracts it breaks."""
    package = folder / "headway"
    if not package.exists():
        for room in ("core", "model", "runners", "runtime", "store", "testing"):
            (package / room).mkdir(parents=True)
            (package / room / "__init__.py").touch()
        for module in (
            "core/kernel.py",
            "model/run.py",
            "runners/function.py",
            "runtime/engine.py",
            "store/memory.py",
            "ports.py",
            "facade.py",
        ):
            (package / module).touch()
        (package / "config.py").write_text("import os\n", encoding="utf-8")
        (package / "__init__.py").write_text("from headway import facade\n", encoding="utf-8")
    return _lint(folder)


def _lint(folder: Path) -> set[str]:
    program = "import sys; sys.path.insert(0, sys.argv.pop()); "
    program += "from importlinter.cli import lint_imports_command; lint_imports_command()"
    options = ["--no-cache", "--config", str(ROOT / "pyproject.toml")]
    ran = subprocess.run(
        [sys.executable, "-c", program, *options, str(folder)],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    names = {contract["name"]: name for name, contract in _CONTRACTS.items()}
    verdicts = dict(re.findall(rf"^({'|'.join(names)}) (KEPT|BROKEN)", ran.stdout, re.MULTILINE))
    assert set(verdicts) == set(names), ran.stdout + ran.stderr
    broken = {names[name] for name, verdict in verdicts.items() if verdict == "BROKEN"}
    assert ran.returncode == bool(broken)
    return broken
