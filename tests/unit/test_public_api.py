"""What a user may import is a promise: exactly these names, each documented, each typed."""

import importlib
import inspect
import types
from collections.abc import Callable, Iterator

import pytest

import headway
import headway.testing

PUBLIC = [
    "AgentLoad",
    "AgentSettings",
    "Attachment",
    "Beat",
    "Branch",
    "Budget",
    "CallbackSettings",
    "CannotResume",
    "Channel",
    "Delivery",
    "Draining",
    "Drop",
    "Entry",
    "Fence",
    "Fired",
    "Handle",
    "Headway",
    "HeadwayError",
    "Inbox",
    "InvalidInput",
    "InvariantBroken",
    "Job",
    "JobNotFound",
    "JobView",
    "JobViews",
    "LaneCleared",
    "LaneLoad",
    "LaneSettings",
    "LaneView",
    "LetterPage",
    "Limits",
    "Loaded",
    "LogPage",
    "Message",
    "MessageStale",
    "Misfire",
    "Mode",
    "NodeView",
    "NotFound",
    "NotRunning",
    "Outcome",
    "Overlap",
    "Permanent",
    "QueueDropped",
    "QueueFull",
    "QueueOptions",
    "QueueSettings",
    "RateLimited",
    "Reason",
    "Refuse",
    "Refused",
    "Reloaded",
    "Reply",
    "Route",
    "RunCancelled",
    "RunEnded",
    "RunFailed",
    "RunPage",
    "RunTree",
    "RunView",
    "Runner",
    "Scope",
    "Sender",
    "SessionBusy",
    "SessionView",
    "Settings",
    "Snapshot",
    "SnapshotPage",
    "Source",
    "State",
    "Stats",
    "Stopped",
    "StoreRefused",
    "StoreUnavailable",
    "Task",
    "Token",
    "Turn",
    "TurnOver",
    "Unavailable",
    "Why",
    "WorkFailed",
    "Worker",
    "WorkerKind",
    "WorkerLost",
    "WorkerPage",
    "WorkerState",
    "WouldDeadlock",
    "run",
]
DOORS = {"headway": headway, "headway.testing": headway.testing}
NAMES = [(door, name) for door, module in DOORS.items() for name in module.__all__]


def test_headway_offers_exactly_these_names() -> None:
    assert headway.__all__ == PUBLIC


@pytest.mark.parametrize("door", DOORS)
def test_the_list_is_sorted_and_without_repeats(door: str) -> None:
    names = DOORS[door].__all__
    assert list(names) == sorted(set(names))


@pytest.mark.parametrize("door", DOORS)
def test_nothing_public_is_left_off_the_list(door: str) -> None:
    """A name that can be imported by accident will be, and can then never be taken away."""
    found = {
        name
        for name, value in vars(DOORS[door]).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert found == set(DOORS[door].__all__)


@pytest.mark.parametrize(("door", "name"), NAMES)
def test_every_name_can_be_imported_and_says_what_it_is(door: str, name: str) -> None:
    thing = getattr(importlib.import_module(door), name)
    own = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    assert own is not None
    assert own.strip()
    assert own.strip()[0].isupper() or own.strip()[0] in "`/"


@pytest.mark.parametrize(("door", "name"), NAMES)
def test_every_public_function_and_method_is_annotated(door: str, name: str) -> None:
    missing = [
        f"{label}: {parameter}"
        for label, function in functions(getattr(DOORS[door], name), name)
        for parameter in unannotated(function)
    ]
    assert missing == []


@pytest.mark.parametrize(("door", "name"), NAMES)
def test_public_errors_and_values_come_from_here(door: str, name: str) -> None:
    """Nothing that is offered belongs to another library, whose changes would be ours."""
    thing = getattr(DOORS[door], name)
    assert thing.__module__.startswith("headway")


def test_the_star_import_gives_what_the_list_says() -> None:
    space: dict[str, object] = {}
    exec("from headway import *", space)
    assert {name for name in space if not name.startswith("__")} == set(PUBLIC)


def functions(thing: object, label: str) -> Iterator[tuple[str, Callable[..., object]]]:
    """The functions that a user can reach through this name: itself, or its public methods."""
    if isinstance(thing, types.FunctionType):
        yield label, thing
    if not isinstance(thing, type):
        return
    for name, member in vars(thing).items():
        if name.startswith("_") and name != "__init__":
            continue
        match member:
            case types.FunctionType(__module__="typing"):
                pass  # A protocol's own way to say that it cannot be made.
            case types.FunctionType():
                yield f"{label}.{name}", member
            case property(fget=types.FunctionType() as getter):
                yield f"{label}.{name}", getter
            case classmethod() | staticmethod():
                yield f"{label}.{name}", member.__func__
            case _:
                pass


def unannotated(function: Callable[..., object]) -> list[str]:
    signature = inspect.signature(function)
    bound = {"self", "cls"}
    missing = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.annotation is inspect.Parameter.empty and parameter.name not in bound
    ]
    if signature.return_annotation is inspect.Signature.empty:
        missing.append("return")
    return missing


def test_a_missing_annotation_is_seen() -> None:
    def half(given, other: int):  # type: ignore[no-untyped-def]
        return given, other

    assert unannotated(half) == ["given", "return"]
