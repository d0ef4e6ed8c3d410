"""The catalogue of events is closed, and every event can be told as JSON (O-3)."""

import inspect

import msgspec
import pytest

from headway.model import events
from headway.model.events import CATALOGUE, Event

SAMPLES: dict[str, object] = {"parts": (), "route": None}
NAMES: dict[type[Event], str] = {events.JobsChanged: "cache:cron"}
"""Events that other programs know by an older name (C-12)."""


def test_o3_the_catalogue_is_complete() -> None:
    defined = {
        kind
        for _, kind in inspect.getmembers(events, inspect.isclass)
        if issubclass(kind, Event) and kind is not Event
    }
    assert set(CATALOGUE) == defined
    assert len(CATALOGUE) == len(defined)


@pytest.mark.parametrize("kind", CATALOGUE)
def test_o3_every_event_says_its_name_and_instant_in_json(kind: type[Event]) -> None:
    required = {
        field.name: _sample(field)
        for field in msgspec.structs.fields(kind)
        if field.required or field.name in SAMPLES
    }
    if kind is events.HeartbeatQuiet:
        required["reason"] = "all_well"
    name = NAMES.get(kind, kind.__name__)
    event = msgspec.convert(required | {"event": name}, kind, strict=False)
    told = msgspec.json.decode(msgspec.json.encode(event))
    assert told["event"] == name
    assert "at" in told


def test_o3_what_must_be_logged_is_marked() -> None:
    notable = {kind.__name__ for kind in CATALOGUE if kind.notable}
    assert notable >= {"RunWaited", "AttemptAbandoned", "LateResult", "ProviderHeld"}
    assert not notable & {"RunSubmitted", "RunStarted", "RunFinished"}


def _sample(field: msgspec.structs.FieldInfo) -> object:
    if field.name in SAMPLES:
        return SAMPLES[field.name]
    words = {
        "source": "task",
        "state": "done",
        "cut": "stopped",
        "kind": "missed",
        "everything": True,
    }
    numbers = ("at", "until", "waited", "ahead", "count", "attempt", "incarnation", "due_at")
    if field.name in words:
        return words[field.name]
    return 1 if field.type is int or field.name in numbers else "x"
