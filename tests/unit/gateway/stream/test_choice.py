"""Which events are told: those that were asked for, and of those only what the caller may see (O-4)."""

import pytest

from headway.gateway.stream.choice import wanted
from headway.model.errors import UnknownName
from headway.model.events import LaneCleared, MessageSteered, NodeDraining
from headway.model.run import AgentName, LaneName, RunId, SessionKey
from tests.unit.gateway.stream.happenings import emitted, finished, started


def test_without_a_word_everything_is_told() -> None:
    wants = wanted()
    assert wants(started(1))
    assert wants(NodeDraining(at=0, running=1))


def test_each_word_narrows_it() -> None:
    wants = wanted(events=["RunStarted", "OutputEmitted"], session="s")
    assert wants(started(1))
    assert wants(emitted(1, "x"))
    assert not wants(finished(1))
    assert not wants(started(1, session="other"))
    assert not wants(LaneCleared(at=0, lane=LaneName("main"), ended=1))


def test_by_agent() -> None:
    wants = wanted(agent="a")
    assert wants(started(1, agent="a"))
    assert not wants(started(1, agent="b"))
    assert not wants(NodeDraining(at=0, running=1))


def test_by_run_in_whichever_field_it_is_named() -> None:
    wants = wanted(run_id="r-1")
    assert wants(started(1))
    assert not wants(started(2))
    steered = MessageSteered(
        at=0,
        agent=AgentName("a"),
        session=SessionKey("s"),
        message=RunId("r-7"),
        into=RunId("r-1"),
    )
    assert wants(steered)


def test_o4_who_is_bound_to_an_agent_sees_only_what_names_it() -> None:
    wants = wanted(bound_to=AgentName("a"))
    assert wants(started(1, agent="a"))
    assert wants(emitted(1, "x", agent="a"))
    assert not wants(started(1, agent="b"))
    assert not wants(NodeDraining(at=0, running=1))


def test_an_unknown_kind_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean 'RunFinished'"):
        wanted(events=["RunFinishd"])


def test_a_kind_with_a_name_of_its_own_is_known_by_it() -> None:
    assert not wanted(events=["cache:cron"])(started(1))
