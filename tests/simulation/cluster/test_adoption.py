"""Nodes die while their workers live on: who goes on with them, when, and what becomes of their runs (W-2)."""

from collections.abc import Callable

import pytest

from headway.model.run import AgentName, RunId, SessionKey
from headway.model.time import MILLISECOND, MINUTE, SECOND
from headway.model.words import Reason, State
from headway.testing.cluster import Cluster, Weather
from headway.testing.cluster.agents import Habits
from headway.testing.cluster.machines import OUTLIVING, Worker
from tests.simulation.cluster.scenes import HERE, THERE, begun, buried, on, outlives

RUN = RunId("a-1")
KEY = (RUN, 1)


def _cluster(**spans: int) -> Cluster:
    return Cluster(habits=Habits.plain(**(spans or {"long": 30 * SECOND})))


def _worker(cluster: Cluster) -> Worker:
    return cluster.witness.machines.named(HERE).workers[KEY]


def _adopters(cluster: Cluster) -> list[str]:
    return [each.node.name for each in cluster.witness.attempts[RUN] if each.adopted]


def _adopted(cluster: Cluster, times: int = 1) -> Callable[[], bool]:
    return lambda: len(cluster.witness.machines.adopted) >= times


def test_w2_the_run_is_one_attempt_with_the_workers_own_result() -> None:
    """D-7: it had one attempt only; R-4: its first node's turn never says anything."""
    with _cluster() as cluster:
        a, b, _ = on(cluster, a=HERE, b=HERE, c=THERE)
        outlives(cluster, a)
        worker = _worker(cluster)
        cluster.settle()
        outcome = cluster.witness.outcomes[RUN]
        assert (outcome.state, outcome.text) == (State.DONE, worker.reply)
        attempts = cluster.witness.attempts[RUN]
        assert [(each.node, each.attempt) for each in attempts] == [(a, 1), (b, 1)]
        assert attempts[1].fence > attempts[0].fence, "X-4"


def test_w2_how_it_ended_while_nobody_was_there_arrives() -> None:
    with _cluster(long=4 * SECOND) as cluster:
        a, *_ = on(cluster, a=HERE, c=THERE)
        outlives(cluster, a)
        worker = _worker(cluster)
        cluster.run_until(lambda: worker.over)
        cluster.run_until(buried(cluster))
        cluster.add("b", host=HERE)
        cluster.settle()
        assert cluster.witness.outcomes[RUN].text == worker.reply
        assert _adopters(cluster) == ["b"]


def test_w2_a_worker_is_adopted_again_and_again() -> None:
    with _cluster(long=MINUTE) as cluster:
        a, b, *_ = on(cluster, a=HERE, b=HERE, c=THERE)
        outlives(cluster, a)
        cluster.run_until(_adopted(cluster))
        b.crash()
        cluster.add("again", host=HERE)
        cluster.run_until(_adopted(cluster, 2))
        cluster.settle()
        assert cluster.outcome(RUN) == "done"
        assert cluster.witness.machines.adopted[0] is cluster.witness.machines.adopted[1]


def test_w2_a_full_node_adopts_all_the_same() -> None:
    with _cluster(long=30 * SECOND, full=40 * SECOND) as cluster:
        a, b = on(cluster, a=HERE, b=HERE)
        for number in range(3):
            b.submit("alpha", "full", {"session": f"full-{number}"})
        cluster.run_until(lambda: len(cluster.witness.live) == 3)
        assert {each.node for each in cluster.witness.live} == {b}, "its lane is full"
        full = list(cluster.witness.live)
        outlives(cluster, a)
        cluster.run_until(_adopted(cluster))
        assert all(each.ended_at is None for each in full)
        cluster.settle()


def test_w2_without_its_worker_the_run_is_tried_again() -> None:
    """D-7: the machine was started anew, so nothing is found there."""
    with _cluster() as cluster:
        a, *_ = on(cluster, a=HERE, c=THERE)
        outlives(cluster, a, attempts=2)
        cluster.witness.machines.named(HERE).reboot()
        cluster.run_until(buried(cluster))
        cluster.add("b", host=HERE)
        cluster.settle()
        assert cluster.outcome(RUN) == "done"
        attempts = cluster.witness.attempts[RUN]
        assert [(each.node.name, each.attempt) for each in attempts] == [("a", 1), ("b", 2)]


def test_w2_nobody_adopts_what_another_has_taken_over() -> None:
    """The grace was over: its machine comes back too late, and leaves the run alone."""
    with _cluster(long=MINUTE) as cluster:
        a, c = on(cluster, a=HERE, c=THERE)
        outlives(cluster, a, attempts=2)
        cluster.run_until(begun(cluster, c))
        cluster.add("b", host=HERE)
        cluster.settle()
        assert _adopters(cluster) == []
        attempts = cluster.witness.attempts[RUN]
        assert [(each.node, each.attempt) for each in attempts] == [(a, 1), (c, 2)]
        assert cluster.witness.outcomes[RUN].text == attempts[1].reply


def test_w2_a_node_that_thaws_does_not_touch_what_another_has_adopted() -> None:
    """R-4, X-4: its fence is the older one."""
    with _cluster() as cluster:
        a, b = on(cluster, a=HERE, b=HERE)
        a.submit(OUTLIVING, "long", {"session": "s", "max_attempts": 1})
        cluster.run_until(begun(cluster, a))
        worker = _worker(cluster)
        a.freeze()
        cluster.run_until(_adopted(cluster))
        a.thaw()
        cluster.run(5 * SECOND)
        assert not worker.over
        cluster.settle()
        assert cluster.witness.outcomes[RUN].text == worker.reply
        assert _adopters(cluster) == [b.name]


def test_d3_a_node_that_may_not_act_ends_its_workers() -> None:
    with _cluster(long=MINUTE) as cluster:
        a, _ = on(cluster, a=HERE, c=THERE)
        a.submit(OUTLIVING, "long", {"session": "s", "max_attempts": 1})
        cluster.run_until(begun(cluster, a))
        a.store.away_until = cluster.now + 20 * SECOND
        cluster.run_until(lambda: KEY not in cluster.witness.machines.named(HERE).workers)
        cluster.settle()
        assert cluster.outcome(RUN) == f"failed/{Reason.ORPHANED}"


def test_l5_a_node_that_leaves_in_good_order_ends_its_workers_and_reserves_nothing() -> None:
    with _cluster(long=MINUTE) as cluster:
        a, c = on(cluster, a=HERE, c=THERE)
        a.submit(OUTLIVING, "long", {"session": "s", "max_attempts": 2})
        cluster.run_until(begun(cluster, a))
        a.close(0)
        cluster.run_until(begun(cluster, c), within=3 * SECOND)
        assert KEY not in cluster.witness.machines.named(HERE).workers
        cluster.settle()


def test_x3_a_stop_that_comes_while_nobody_is_there_reaches_the_worker() -> None:
    with _cluster(long=MINUTE) as cluster:
        a, c = on(cluster, a=HERE, c=THERE)
        outlives(cluster, a)
        cluster.run_until(buried(cluster))
        assert c.engine is not None
        c.ask("/stop s", c.engine.stop(SessionKey("s")))
        cluster.run(SECOND)
        cluster.add("b", host=HERE)
        cluster.run_until(lambda: KEY not in cluster.witness.machines.named(HERE).workers)
        cluster.settle()
        assert cluster.outcome(RUN) == f"cancelled/{Reason.STOPPED}"


def test_f5_a_deadline_that_passes_while_nobody_is_there_ends_the_worker() -> None:
    with _cluster(long=MINUTE) as cluster:
        a, _ = on(cluster, a=HERE, c=THERE)
        options = {"session": "s", "max_attempts": 1, "deadline": "8s"}
        a.submit(OUTLIVING, "long", options)  # type: ignore[arg-type]
        cluster.run_until(begun(cluster, a))
        a.crash()
        cluster.run_until(buried(cluster))
        cluster.run(3 * SECOND)
        cluster.add("b", host=HERE)
        cluster.settle()
        assert cluster.outcome(RUN) == f"failed/{Reason.DEADLINE_RUNNING}"
        assert _adopters(cluster) == [], "its runner was only asked to end it"


def test_w2_a_node_of_the_machine_without_the_agent_leaves_it_to_one_that_has_it() -> None:
    with _cluster() as cluster:
        a, *_ = on(cluster, a=HERE, c=THERE)
        poor = cluster.add("poor", frozenset({AgentName("alpha")}), host=HERE)
        cluster.run_until(lambda: poor.up)
        outlives(cluster, a)
        cluster.run_until(buried(cluster))
        cluster.run(2 * SECOND)
        cluster.add("b", host=HERE)
        cluster.settle()
        assert _adopters(cluster) == ["b"]


@pytest.mark.parametrize("call", ["claim", "record"])
def test_n15_an_answer_that_is_lost_while_it_is_adopted_changes_nothing(call: str) -> None:
    with _cluster() as cluster:
        a, b, _ = on(cluster, a=HERE, b=HERE, c=THERE)
        outlives(cluster, a)
        cluster.run(4 * SECOND)
        b.store.weather = Weather(latency=20 * MILLISECOND)
        b.store.slow_answers[call] = 200 * MILLISECOND
        cluster.run_until(buried(cluster))
        b.store.weather = Weather(latency=20 * MILLISECOND, fails_after=0.7)
        cluster.run(2 * SECOND)
        b.store.slow_answers.clear()
        cluster.settle()
        assert cluster.outcome(RUN) == "done"
        assert len(cluster.witness.machines.adopted) == 1


def test_d3_a_lease_that_ends_before_an_adopted_attempt_goes_on() -> None:
    """Its start is stored; before its node hears of that, its machine stands still for longer than the lease."""
    with _cluster(long=MINUTE) as cluster:
        a, b, _ = on(cluster, a=HERE, b=HERE, c=THERE)
        outlives(cluster, a)
        b.store.slow_answers["record"] = 300 * MILLISECOND
        cluster.run_until(
            lambda: any("keeps Start" in line and "b" in line for line in cluster.log)
        )
        b.freeze()
        cluster.run(10 * SECOND)
        b.store.slow_answers.clear()
        b.thaw()
        cluster.add("d", host=HERE)
        cluster.settle()
        assert cluster.outcome(RUN) in {"done", f"failed/{Reason.ORPHANED}"}
