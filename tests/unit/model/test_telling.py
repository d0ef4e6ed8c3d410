"""Events as they are told: one form, with times that people can read."""

import ast
from pathlib import Path

import msgspec
import pytest

from headway.model import events, telling
from headway.model.run import AgentName, LaneName, Route, RunId, SessionKey
from headway.model.time import SECOND, instant_text, span_text
from headway.model.words import Source, State

A = AgentName("a")
_TREE = ast.parse(Path(events.__file__).read_text(encoding="utf-8"))


def _annotated() -> list[tuple[str, str, str]]:
    """Every field of every event: its class, its name, and what its annotation says."""
    return [
        (node.name, field.target.id, ast.unparse(field.annotation))
        for node in _TREE.body
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    ]


@pytest.mark.parametrize(("event", "field", "annotation"), _annotated())
def test_each_instant_and_span_is_known_by_its_name(
    event: str, field: str, annotation: str
) -> None:
    writer = telling._writer(field)
    expected = {"Instant": instant_text, "Span": span_text}
    words = set(annotation.replace("|", " ").split())
    assert writer is next((expected[word] for word in words if word in expected), None)


def test_a_run_that_finished() -> None:
    event = events.RunFinished(
        at=1_700_000_000 * SECOND,
        run_id=RunId("r-1"),
        agent=AgentName("a"),
        session=SessionKey("s"),
        lane=LaneName("main"),
        attempt=1,
        state=State.DONE,
        source=Source.TASK,
        took=1_500_000,
    )
    assert telling.told(event) == {
        "event": "RunFinished",
        "at": "2023-11-14T22:13:20.000Z",
        "runId": "r-1",
        "agent": "a",
        "session": "s",
        "lane": "main",
        "attempt": 1,
        "state": "done",
        "source": "task",
        "reason": None,
        "error": "",
        "into": None,
        "took": "1.5s",
    }
    assert list(telling.told(event))[:2] == ["event", "at"]


def test_what_it_holds_is_plain_data() -> None:
    route = Route("telegram", peer="42")
    event = events.OutboundEmpty(
        at=0, run_id=RunId("r"), agent=A, session=SessionKey("s"), route=route
    )
    assert telling.told(event)["route"] == {
        "channel": "telegram",
        "account": "",
        "peer": "42",
        "thread": "",
    }
    merged = events.RunsMerged(
        at=0, run_id=RunId("r"), agent=A, session=SessionKey("s"), parts=(RunId("a"), RunId("b"))
    )
    assert telling.told(merged)["parts"] == ["a", "b"]


@pytest.mark.parametrize("event", events.CATALOGUE)
def test_every_kind_has_its_own_name(event: type[events.Event]) -> None:
    assert telling.kind_of(event) == event.__struct_config__.tag
    assert [telling.kind_of(other) for other in events.CATALOGUE].count(telling.kind_of(event)) == 1


def test_changes_of_jobs_are_told_under_the_name_that_caches_know() -> None:
    """C-12"""
    assert telling.told(events.JobsChanged(at=0))["event"] == "cache:cron"
    assert msgspec.json.encode(telling.told(events.JobsChanged(at=0))).startswith(
        b'{"event":"cache:cron"'
    )
