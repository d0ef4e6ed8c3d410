"""The page of commands, from the command line itself."""

import inspect
from collections.abc import Iterator, Sequence
from enum import Enum
from types import NoneType
from typing import Annotated, Protocol, cast, get_args, get_origin

import typer.main

from headway.cli import app
from headway.cli.exits import EXIT_CODES
from tools.reference.schemas import anchor
from tools.reference.tables import NOTE, cell, code, table

_INTRO = """\
All commands of `headway`. Each has `--help`. What shows something has `--json`, for programs: the same words as
over HTTP, on stdout, and nothing else there. What is refused is told in one line on stderr (a command line that
cannot be read, with its usage), and ends with an exit code:"""

_PREFORMATTED = "\b"


class Parameter(Protocol):
    """What is read of an option or an argument; Typer has no public type for it."""

    name: str
    opts: Sequence[str]
    secondary_opts: Sequence[str]
    param_type_name: str
    required: bool
    hidden: bool
    default: object
    envvar: object
    metavar: str | None
    help: str | None


class Command(Protocol):
    """What is read of a command."""

    name: str | None
    help: str | None
    epilog: str | None
    hidden: bool
    params: Sequence[Parameter]
    callback: object


def cli_page() -> str:
    root = cast(Command, typer.main.get_command(app))
    lines = ["# Commands", "", NOTE, "", _INTRO, "", *_exit_codes(EXIT_CODES), ""]
    found = [(path, command) for path, command in _commands(root, "headway") if path != "headway"]
    lines += table(
        ("command", "what it does"),
        [
            (f"[`{path}`](#{anchor(path)})", cell(_summary(command)))
            for path, command in found
            if not hasattr(command, "commands")
        ],
    )
    for path, command in found:
        lines += ["", f"## `{path}`", "", *_about(command)]
        if not hasattr(command, "commands"):
            lines += _usage(path, command)
    return "\n".join(lines) + "\n"


def _commands(command: Command, path: str) -> Iterator[tuple[str, Command]]:
    """A command and all below it."""
    if command.hidden:
        return
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(below, f"{path} {name}")


def _summary(command: Command) -> str:
    return (command.help or "").partition("\n\n")[0]


def _about(command: Command) -> Iterator[str]:
    """The help of a command; what is marked as formatted stays so."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        text = paragraph.strip("\n")
        if text.startswith(_PREFORMATTED):
            yield from ("```console", text.removeprefix(_PREFORMATTED).strip("\n"), "```", "")
        elif text:
            yield from (text, "")
    if command.epilog and command.epilog != EXIT_CODES and "Exit codes" in command.epilog:
        yield from (command.epilog, "")


def _usage(path: str, command: Command) -> list[str]:
    shown = [param for param in command.params if not param.hidden and param.name != "help"]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    options = [param for param in shown if param.param_type_name == "option"]
    words = [_argument(param) for param in arguments]
    usage = " ".join([path, *words, *(["[OPTIONS]"] if options else [])])
    lines = ["```text", usage, "```"]
    rows = [(code(_argument(param)), "", cell(param.help or "")) for param in arguments]
    rows += [(_names(param, command), _default(param), cell(param.help or "")) for param in options]
    if rows:
        lines += ["", *table(("argument or option", "default", "meaning"), rows)]
    return lines


def _argument(param: Parameter) -> str:
    name = param.metavar or param.name.upper()
    name += "..." if getattr(param, "nargs", 1) == -1 else ""
    return name if param.required else f"[{name}]"


def _names(param: Parameter, command: Command) -> str:
    """An option as it is typed: `--lines`, `-n` N."""
    names = ", ".join(code(name) for name in (*param.opts, *param.secondary_opts))
    value = "" if getattr(param, "is_flag", False) else _value(param, command)
    return f"{names} {cell(value)}".rstrip()


def _value(param: Parameter, command: Command) -> str:
    if param.metavar:
        return param.metavar
    callback = command.callback
    assert callable(callback)
    kind = _plain(inspect.signature(callback).parameters[param.name].annotation)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    return "NUMBER" if kind in {int, float} else "TEXT"


def _plain(hint: object) -> object:
    """The type below what Typer and optional values put around it."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    inner = [arm for arm in get_args(hint) if arm is not NoneType]
    return _plain(inner[0]) if inner else hint


def _default(param: Parameter) -> str:
    parts = []
    if param.required:
        parts.append("must be given")
    elif isinstance(param.default, Enum):
        parts.append(code(str(param.default.value)))
    elif param.default not in (None, False, "", (), []):
        parts.append(code(str(param.default)))
    if param.envvar:
        names = [param.envvar] if isinstance(param.envvar, str) else param.envvar
        assert isinstance(names, list)
        parts.append("or " + ", ".join(code(name) for name in names))
    return " ".join(parts)


def _exit_codes(text: str) -> list[str]:
    """The one sentence that every command ends its help with, as a table."""
    listed = text.removeprefix("Exit codes: ").rstrip(".").split(", ")
    rows: list[list[str]] = []
    for part in listed:
        number, _, meaning = part.partition(" ")
        if number.isdecimal():
            rows.append([f"`{number}`", meaning])
        else:
            rows[-1][1] += f", {part}"
    return table(("exit code", "meaning"), rows)
