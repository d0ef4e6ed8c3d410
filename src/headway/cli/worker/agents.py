"""Finding the user's `Headway`: `--agents module:name`, as the user's own program would import it."""

import importlib
import sys
import traceback
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from headway.facade import Headway
from headway.model.errors import HeadwayError, InvalidInput, Refused
from headway.wiring import MEMORY

_PACKAGE = Path(__file__).parents[2]


class AgentsNotFound(Refused):
    """`--agents` does not lead to a `Headway` that can run."""

    code = "agents_not_found"

    def __init__(self, written: str, reason: str) -> None:
        self.written = written
        self.reason = reason
        super().__init__(f"--agents {written}: {reason}")


def agents_of(written: str | None, commands_as: str | None) -> Headway:
    """The user's `Headway`, or a new one where he has none; with a name, an agent of it runs commands."""
    headway = Headway() if written is None else find_headway(written)
    if commands_as is not None and commands_as not in headway.agents:
        headway.commands(commands_as)
    return headway


def find_headway(written: str) -> Headway:
    """The `Headway` that `module:name` leads to. The current folder is searched first, as `python -m` does."""
    module_name, colon, name = written.partition(":")
    parts_of_name = name.split(".")
    if not colon or not all(map(str.isidentifier, [*module_name.split("."), *parts_of_name])):
        raise InvalidInput("--agents", written, "written module:name, such as agents:hw")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _imported(written, module_name)
    found: object = module
    for part in parts_of_name:
        try:
            found = getattr(found, part)
        except AttributeError:
            reason = f"module {module_name} has no {name!r}{_suggestion(module, name)}"
            raise AgentsNotFound(written, reason) from None
    if not isinstance(found, Headway):
        kind = type(found).__name__
        reason = f"{name!r} is of type {kind}, not a headway.Headway{_suggestion(module, name)}"
        raise AgentsNotFound(written, reason)
    return found


def check_runnable(written: str | None, headway: Headway) -> None:
    """A node that could never get any work is a mistake, better said at once."""
    if written is None:
        if headway.store == MEMORY:
            raise InvalidInput("--store", headway.store, "given, or set as HEADWAY_STORE")
        return
    if not headway.agents:
        raise AgentsNotFound(written, "no agent is registered on it, so there is nothing to run")
    if headway.store == MEMORY:
        reason = "its store is this process's memory, where nobody can ask it for work"
        raise AgentsNotFound(written, f"{reason}; give --store URL or set HEADWAY_STORE")


def _imported(written: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module_name}.".startswith(f"{missing.name}."):
            raise AgentsNotFound(written, _where(missing)) from None
        reason = f"there is no module {missing.name!r} in {Path.cwd()} or among what is installed"
        raise AgentsNotFound(written, reason) from None
    except Exception as error:  # noqa: BLE001 - a user's module may raise anything while it is imported
        raise AgentsNotFound(written, _where(error)) from None


def _where(error: Exception) -> str:
    """What was raised while the module was imported, and at which line of whose file."""
    place = ""
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}, line {error.lineno}: "
    elif frames := traceback.extract_tb(error.__traceback__):
        # What Headway refuses there is written in the user's file, not where Headway has found it out.
        users = [frame for frame in frames if not _is_ours(frame.filename)]
        blamed = users[-1] if isinstance(error, HeadwayError) and users else frames[-1]
        place = f"{blamed.filename}, line {blamed.lineno}: "
    return f"it cannot be imported: {place}{type(error).__name__}: {error}"


def _is_ours(file: str) -> bool:
    return Path(file).is_relative_to(_PACKAGE)


def _suggestion(module: ModuleType, name: str) -> str:
    there = sorted(key for key, value in vars(module).items() if isinstance(value, Headway))
    if not there:
        return "; there is no Headway in it"
    near = get_close_matches(name, there, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there is: {', '.join(there)}"
