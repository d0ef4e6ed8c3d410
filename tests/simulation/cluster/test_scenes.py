"""Meetings of several nodes that random histories reach rarely: each made by hand, each told to its end."""

from collections.abc import Sequence
from typing import NoReturn

import msgspec
import pytest

from headway.model.errors import StoreUnavailable
from headway.model.job import Advance
from headway.model.run import AgentName, RunId, SessionKey
from headway.model.time import HOUR, MILLISECOND, SECOND
from headway.model.words import Reason, State
from headway.testing.cluster import Cluster, Weather
from headway.testing.cluster.agents import Habits
from headway.testing.cluster.cluster import FEW, SETTINGS
from tests.simulation.cluster.scenes import begun, up


def test_a_repeated_key_on_another_node_is_told_the_first_runs_outcome() -> None:
    """D-6, R-2: the run of another node is followed."""
    with Cluster(habits=Habits.plain(long=3 * SECOND)) as cluster:
        a, b = up(cluster, "a", "b")
        a.submit("alpha", "long", {"session": "s", "idempotency_key": "k"})
        cluster.run_until(begun(cluster, a))
        b.submit("alpha", "long", {"session": "s", "idempotency_key": "k"})
        cluster.settle()
        assert b.told == a.told
        assert b.told[RunId("a-1")].state is State.DONE


def test_a_steered_message_is_told_the_reply_of_a_turn_that_another_node_asked_for() -> None:
    """X-2, S-7: whoever asked for the turn, the message's own caller gets its reply."""
    with Cluster(habits=Habits.plain(long=5 * SECOND)) as cluster:
        a, b = up(cluster, "a", "b")
        a.submit("beta", "first", {"session": "s"})
        b.submit("beta", "long", {"session": "s"})
        cluster.run_until(
            lambda: any(attempt.run.text == "long" for attempt in cluster.witness.live)
        )
        a.submit("beta", "more", {"session": "s", "mode": "steer"})
        cluster.settle()
        turn = cluster.witness.outcomes[RunId("b-1")]
        assert cluster.witness.outcomes[RunId("a-2")].reason is Reason.MERGED
        assert a.told[RunId("a-2")] == turn


@pytest.mark.parametrize("others", [0, 1])
def test_what_is_owned_without_being_known_is_found(others: int) -> None:
    """N-7: the answer that granted a session was lost; nobody else may work on it."""
    with Cluster(habits=Habits.plain()) as cluster:
        a, *_ = up(cluster, "a", *"bc"[:others])
        a.store.weather = Weather(fails_after=1.0)
        a.submit("alpha", "", {"session": "s"})
        cluster.run(100 * MILLISECOND)
        a.store.weather = Weather()
        a.submit("alpha", "", {"session": "s"})
        cluster.settle()
        outcomes = [outcome.state for outcome in cluster.witness.outcomes.values()]
        assert outcomes == [State.DONE, State.DONE]


def test_claimed_work_is_found_although_the_claims_answer_was_lost() -> None:
    with Cluster(habits=Habits.plain()) as cluster:
        intake_only = cluster.add("a", frozenset())
        cluster.run_until(lambda: intake_only.up)
        b = cluster.add("b")
        cluster.run_until(lambda: b.up)
        cluster.run(2 * SECOND)
        b.store.weather = Weather(fails_after=1.0)
        for number in range(3):
            intake_only.submit("alpha", "", {"session": f"s{number}"})
        cluster.run(3 * SECOND)
        b.store.weather = Weather()
        cluster.settle()


@pytest.mark.parametrize("what", ["restart", "close"])
def test_a_start_that_is_being_stored_is_waited_for(what: str) -> None:
    """L-5, D-4: what was stored as begun is begun and cut, or never stored."""
    with Cluster(habits=Habits.plain()) as cluster:
        a, _ = up(cluster, "a", "b")
        a.store.slow_answers["record"] = 500 * MILLISECOND
        a.submit("alpha", "", {"session": "s", "max_attempts": 1})
        cluster.run(100 * MILLISECOND)
        assert a.engine is not None
        if what == "close":
            a.close(0)
        else:
            a.ask("restart", a.engine.restart(0))
        cluster.run(5 * SECOND)
        a.store.slow_answers.clear()
        cluster.settle()
        assert cluster.witness.outcomes[RunId("a-1")].reason is not Reason.ORPHANED


def test_two_restarts_at_once_are_one() -> None:
    """L-6."""
    with Cluster(habits=Habits.plain(long=3 * SECOND)) as cluster:
        a, _ = up(cluster, "a", "b")
        assert a.engine is not None
        for number in range(4):
            a.submit("alpha", "long", {"session": f"s{number}", "max_attempts": 3})
        cluster.run_until(begun(cluster, a))
        a.ask("restart", a.engine.restart(SECOND))
        cluster.run(500 * MILLISECOND)
        a.ask("restart", a.engine.restart(2 * SECOND))
        cluster.settle()


def test_a_node_that_meets_a_fault_while_it_comes_back_works_again() -> None:
    """D-9: between being a new incarnation and its first renewal the store is away."""
    with Cluster(habits=Habits.plain(long=2 * SECOND)) as cluster:
        a, b = up(cluster, "a", "b")
        a.submit("alpha", "long", {"session": "s", "max_attempts": 2})
        cluster.run_until(begun(cluster, a))
        a.freeze()
        cluster.run(10 * SECOND)
        a.store.slow_answers["enlist"] = 500 * MILLISECOND
        a.thaw()
        cluster.run(250 * MILLISECOND)
        a.store.away_until = cluster.now + 2 * SECOND
        cluster.run(5 * SECOND)
        b.close()
        cluster.run(5 * SECOND)
        a.submit("alpha", "long", {"session": "s"})
        cluster.run(10 * SECOND)
        assert RunId("a-2") in cluster.witness.outcomes
        cluster.settle()


def test_a_wish_for_a_slot_that_is_no_longer_wanted_is_taken_back() -> None:
    """L-8, N-18: else it would keep all others from a slot that nobody holds."""
    with Cluster(habits=Habits.plain(long=4 * SECOND)) as cluster:
        few = msgspec.structs.replace(cluster.settings.lanes[FEW], cluster_limit=1)
        cluster.settings = msgspec.structs.replace(
            cluster.settings, lanes={**cluster.settings.lanes, FEW: few}
        )
        a = cluster.add("a", frozenset({AgentName("alpha")}))
        b = cluster.add("b", frozenset({AgentName("beta")}))
        cluster.run_until(lambda: a.up and b.up)
        cluster.run(2 * SECOND)
        a.submit("alpha", "long", {"session": "s", "lane": FEW})
        cluster.run_until(begun(cluster, a))
        b.submit("beta", "long", {"session": "t", "lane": FEW})
        cluster.run(SECOND)
        assert b.engine is not None
        b.ask("/stop t", b.engine.stop(SessionKey("t")))
        cluster.run(SECOND)
        a.submit("alpha", "long", {"session": "s", "lane": FEW})
        cluster.run(15 * SECOND)
        assert cluster.witness.outcomes[RunId("a-2")].state is State.DONE
        cluster.settle()


def test_c5_n7_a_run_by_hand_is_found_although_its_answer_was_lost() -> None:
    """Its session is this node's already: nobody else may work on it, and nothing more may come to it."""
    settings = msgspec.structs.replace(SETTINGS, poll_every=HOUR)
    with Cluster(settings=settings, habits=Habits.plain()) as cluster:
        (a,) = up(cluster, "a")
        timetable = cluster.witness.timetable
        timetable.add(a, "j", HOUR, cluster.wall.now())
        cluster.run(SECOND)
        (job,) = timetable.jobs
        advance = a.store.advance

        async def lost(advances: Sequence[Advance]) -> NoReturn:
            a.store.weather = Weather(hints_lost=1.0)
            await advance(advances)
            raise StoreUnavailable("a", "the connection was lost after")

        a.store.advance = lost  # type: ignore[method-assign]
        timetable.run(a, job)
        cluster.run(10 * SECOND)
        a.store.advance = advance  # type: ignore[method-assign]
        a.store.weather = Weather()
        assert [outcome.state for outcome in cluster.witness.outcomes.values()] == [State.DONE]
        cluster.settle()
