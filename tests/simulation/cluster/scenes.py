"""Histories of a cluster that are made for one rule of many nodes each.

They pass as long as nothing is broken; `test_breaks.py` breaks the rules.
"""

from collections.abc import Callable

import msgspec

from headway.model.run import AgentName, LaneName, RunId, SessionKey
from headway.model.settings import MAIN, LaneSettings, Settings
from headway.model.time import HOUR, MILLISECOND, MINUTE, SECOND, Span
from headway.testing.cluster import CALM, Broken, Cluster, Node, Violation, Weather
from headway.testing.cluster.agents import CHILD, Habits
from headway.testing.cluster.cluster import FEW, SETTINGS
from headway.testing.cluster.machines import OUTLIVING
from headway.testing.cluster.witness import THAW_GRACE


def up(cluster: Cluster, *names: str) -> list[Node]:
    """These nodes, started, and each knowing of the others."""
    nodes = [cluster.add(name) for name in names]
    cluster.run_until(lambda: all(node.up for node in nodes))
    cluster.run(2 * SECOND)
    return nodes


def begun(cluster: Cluster, node: Node) -> Callable[[], bool]:
    return lambda: any(attempt.node is node for attempt in cluster.witness.live)


def alarm(seen: bool, promise: Broken, text: str) -> None:
    """What a scene itself has to object to."""
    if not seen:
        raise Violation(promise, text)


def with_lanes(lanes: dict[LaneName, LaneSettings]) -> Settings:
    return msgspec.structs.replace(SETTINGS, lanes=lanes)


def a_node_crashes_and_its_name_comes_back() -> None:
    with Cluster(habits=Habits.plain(long=20 * SECOND)) as cluster:
        a, _ = up(cluster, "a", "b")
        a.submit("alpha", "long", {"session": "s", "max_attempts": 2})
        cluster.run_until(begun(cluster, a))
        a.crash()
        cluster.add("a")
        cluster.settle()


def a_machine_sleeps_before_its_node_begins() -> None:
    """A start is stored; before its node hears of that, the machine sleeps for longer than the lease."""
    with Cluster(habits=Habits.plain()) as cluster:
        a, _ = up(cluster, "a", "b")
        a.store.slow_answers["record"] = 900 * MILLISECOND
        a.submit("alpha", "", {"session": "s", "max_attempts": 3})
        cluster.run(850 * MILLISECOND)
        a.freeze()
        cluster.run(10 * SECOND)
        a.thaw(suspended=True)
        cluster.settle()


def a_machine_sleeps_while_its_node_works() -> None:
    with Cluster(habits=Habits.plain(long=25 * SECOND)) as cluster:
        a, _ = up(cluster, "a", "b")
        a.submit("alpha", "long", {"session": "s", "max_attempts": 3})
        cluster.run_until(begun(cluster, a))
        cluster.run(2_050 * MILLISECOND)
        a.freeze()
        cluster.run(10 * SECOND)
        a.thaw(suspended=True)
        cluster.run(THAW_GRACE)
        alarm(not begun(cluster, a)(), Broken.ZOMBIE, "it goes on after the lease is over")
        cluster.settle()


def a_node_does_not_reach_the_store() -> None:
    with Cluster(habits=Habits.plain(long=30 * SECOND)) as cluster:
        a, _ = up(cluster, "a", "b")
        a.store.slow_answers["renew"] = 3 * SECOND
        cluster.run(8 * SECOND)
        a.submit("alpha", "long", {"session": "s", "max_attempts": 2})
        cluster.run_until(begun(cluster, a))
        a.store.away_until = cluster.now + 15 * SECOND
        cluster.run(15 * SECOND)
        a.store.slow_answers.clear()
        cluster.settle()


def the_clock_steps_while_a_renewal_is_slow() -> None:
    with Cluster(habits=Habits.plain()) as cluster:
        a, b = up(cluster, "a", "b")
        a.store.slow_calls["renew"] = 2_500 * MILLISECOND
        for _ in range(5):
            cluster.run(2 * SECOND)
            cluster.wall.off_by += HOUR
        assert (a.number, b.number) == (1, 2)
        a.store.slow_calls.clear()
        cluster.settle()


def a_node_comes_back_while_it_is_being_buried() -> None:
    with Cluster(habits=Habits.plain()) as cluster:
        a, b = up(cluster, "a", "b")
        b.store.slow_calls["bury"] = 3 * SECOND
        a.freeze()
        cluster.run(8 * SECOND)
        a.thaw()
        cluster.run(5 * SECOND)
        b.store.slow_calls.clear()
        cluster.settle()


def a_node_that_was_buried_is_all_that_is_left() -> None:
    with Cluster(habits=Habits.plain(long=4 * SECOND)) as cluster:
        a, b = up(cluster, "a", "b")
        a.submit("alpha", "long", {"session": "s", "max_attempts": 3})
        cluster.run_until(begun(cluster, a))
        a.freeze()
        cluster.run(10 * SECOND)
        a.thaw()
        cluster.run(5 * SECOND)
        b.close()
        cluster.run(5 * SECOND)
        a.submit("alpha", "long", {"session": "s"})
        cluster.settle()


def two_nodes_send_to_a_session_of_a_third() -> None:
    """The one that asked first is stored last."""
    with Cluster(habits=Habits.plain(long=8 * SECOND)) as cluster:
        a, b, c = up(cluster, "a", "b", "c")
        a.submit("alpha", "long", {"session": "s"})
        cluster.run_until(begun(cluster, a))
        b.store.slow_calls["admit"] = 2 * SECOND
        b.submit("alpha", "first", {"session": "s"})
        cluster.run(SECOND)
        c.submit("alpha", "second", {"session": "s"})
        cluster.settle()


def an_attempt_ends_right_after_its_machine_slept() -> None:
    habits = Habits.plain(long=2_900 * MILLISECOND)
    habits.looks_every = HOUR
    with Cluster(habits=habits) as cluster:
        a, _ = up(cluster, "a", "b")
        a.submit("alpha", "long", {"session": "s", "max_attempts": 3})
        cluster.run_until(begun(cluster, a))
        cluster.run(2_850 * MILLISECOND)
        a.freeze()
        cluster.run(8 * SECOND)
        a.thaw(suspended=True)
        cluster.settle()


def one_run_after_the_other() -> None:
    with Cluster(habits=Habits.plain()) as cluster:
        (a,) = up(cluster, "a")
        for number in range(3):
            a.submit("alpha", f"m{number}", {"session": "s"})
        cluster.settle()


def several_runs_of_one_session_at_once() -> None:
    with Cluster(habits=Habits.plain(long=2 * SECOND)) as cluster:
        cluster.witness.widths[SessionKey("wide")] = 3
        (a,) = up(cluster, "a")
        for _ in range(3):
            a.submit("alpha", "long", {"session": "wide", "max_concurrent": 3})
        a.submit("alpha", "long", {"session": "other"})
        cluster.settle()


def a_node_dies_before_the_last_retry() -> None:
    habits = Habits.plain()
    habits.fails = 1.0
    with Cluster(habits=habits) as cluster:
        a, _ = up(cluster, "a", "b")
        a.submit("alpha", "", {"session": "s", "max_attempts": 1, "retries": 2})
        cluster.run_until(lambda: len(cluster.witness.attempts[RunId("a-1")]) == 2)
        cluster.run_until(lambda: not cluster.witness.live)
        cluster.run(SECOND)
        a.crash()
        cluster.settle()
        alarm(
            len(cluster.witness.attempts[RunId("a-1")]) == 3,
            Broken.ATTEMPTS,
            "not tried as often as it was asked for",
        )


def a_turn_that_took_a_message_is_lost() -> None:
    with Cluster(habits=Habits.plain(long=6 * SECOND)) as cluster:
        a, b = up(cluster, "a", "b")
        a.submit("beta", "long", {"session": "s", "max_attempts": 1})
        cluster.run_until(begun(cluster, a))
        b.submit("beta", "more", {"session": "s", "mode": "steer", "max_attempts": 2})
        cluster.run_until(lambda: any(attempt.took for attempt in cluster.witness.live))
        cluster.run(SECOND)
        a.crash()
        cluster.settle()


def a_session_is_stopped_from_another_node() -> None:
    with Cluster(habits=Habits.plain(long=8 * SECOND)) as cluster:
        a, b = up(cluster, "a", "b")
        a.submit("alpha", "long", {"session": "s"})
        cluster.run_until(begun(cluster, a))
        assert b.engine is not None
        b.ask("/stop s", b.engine.stop(SessionKey("s")))
        cluster.run(SECOND)
        a.crash()
        cluster.settle()


def a_turn_is_stopped_while_it_delegates() -> None:
    """The stop is stored before the child is; the turn hears of it after."""
    habits = Habits.plain(long=5 * SECOND)
    habits.delegates = 1.0
    with Cluster(habits=habits) as cluster:
        a, b = up(cluster, "a", "b")
        a.submit("alpha", "long", {"session": "s"})
        a.store.slow_calls["admit"] = SECOND
        a.store.slow_answers["record"] = 1_500 * MILLISECOND
        cluster.run_until(begun(cluster, a))
        assert b.engine is not None
        b.ask("/stop s", b.engine.stop(SessionKey("s")))
        cluster.run(6 * SECOND)
        a.store.slow_calls.clear()
        a.store.slow_answers.clear()
        cluster.settle()
        parent, *children = cluster.witness.stored.values()
        alarm(
            bool(children) and children[0].parent == parent.id,
            Broken.CHILDREN,
            "the child was never asked for: nothing was tested",
        )


def a_turn_with_a_child_elsewhere_is_stopped() -> None:
    habits = Habits.plain(long=5 * SECOND)
    habits.delegates = habits.waits_for_child = 1.0
    habits.spans["for a-1"] = 20 * SECOND
    with Cluster(habits=habits) as cluster:
        a = cluster.add("a", frozenset({AgentName("alpha")}))
        b = cluster.add("b", frozenset({AgentName(CHILD)}))
        cluster.run_until(lambda: a.up and b.up)
        cluster.run(2 * SECOND)
        a.submit("alpha", "long", {"session": "s"})
        cluster.run_until(begun(cluster, b))
        assert a.engine is not None
        a.ask("/stop s", a.engine.stop(SessionKey("s")))
        cluster.run(4 * SECOND)
        alarm(not begun(cluster, b)(), Broken.CHILDREN, "the child of a stopped turn goes on")
        cluster.settle()


def _for_another_node(settings: Settings, weather: Weather, within: Span) -> None:
    """A run comes in on a node that cannot do it."""
    with Cluster(settings=settings, habits=Habits.plain()) as cluster:
        intake_only = cluster.add("a", frozenset())
        other = cluster.add("b")
        cluster.run_until(lambda: intake_only.up and other.up)
        cluster.run(2 * SECOND)
        cluster.set_weather(weather)
        intake_only.submit("alpha", "", {"session": "s"})
        cluster.run(within)
        alarm(bool(cluster.witness.outcomes), Broken.ORDER, "nobody noticed that there is work")
        cluster.settle()


def no_hint_ever_comes() -> None:
    _for_another_node(SETTINGS, Weather(hints_lost=1.0), 5 * SECOND)


def a_poll_is_far_away() -> None:
    rare = msgspec.structs.replace(SETTINGS, poll_every=HOUR)
    _for_another_node(rare, CALM, 5 * SECOND)


def one_agent_has_much_waiting_and_another_one_run() -> None:
    narrow = {name: LaneSettings(1) for name in SETTINGS.lanes}
    habits = Habits.plain(long=4 * SECOND)
    with Cluster(settings=with_lanes(narrow), habits=habits) as cluster:
        intake_only = cluster.add("a", frozenset())
        cluster.run_until(lambda: intake_only.up)
        for number in range(12):
            intake_only.submit("alpha", "long", {"session": f"many{number}"})
        cluster.run(SECOND)
        intake_only.submit("beta", "long", {"session": "one"})
        cluster.run(SECOND)
        cluster.add("b")
        cluster.settle()
        attempts = [attempt for found in cluster.witness.attempts.values() for attempt in found]
        attempts.sort(key=lambda attempt: attempt.began_at)
        agents = [attempt.run.agent for attempt in attempts]
        ahead = agents.index(AgentName("beta"))
        alarm(ahead <= 2, Broken.ORDER, f"{ahead} runs of another agent came first")


def a_second_node_comes_to_help() -> None:
    narrow = {name: LaneSettings(1) for name in SETTINGS.lanes}
    habits = Habits.plain(long=10 * SECOND)
    with Cluster(settings=with_lanes(narrow), habits=habits) as cluster:
        (a,) = up(cluster, "a")
        for number in range(4):
            a.submit("alpha", "long", {"session": f"s{number}"})
        cluster.run_until(begun(cluster, a))
        b = cluster.add("b")
        cluster.run(6 * SECOND)
        alarm(begun(cluster, b)(), Broken.ORDER, "one node waits while another has nothing to do")
        cluster.settle()


def one_run_is_due_later_and_one_now() -> None:
    with Cluster(habits=Habits.plain()) as cluster:
        intake_only = cluster.add("a", frozenset())
        cluster.run_until(lambda: intake_only.up)
        intake_only.submit("alpha", "later", {"session": "s", "due": "5m"})
        cluster.run(SECOND)
        intake_only.submit("alpha", "now", {"session": "s"})
        cluster.run(SECOND)
        cluster.add("b")
        cluster.run(10 * SECOND)
        alarm(
            bool(cluster.witness.outcomes),
            Broken.ORDER,
            "what is ready waits for what is due later",
        )
        cluster.settle()


def a_node_is_slow_to_fire_what_another_fires_too() -> None:
    """Both read that the job is due; what the slow one decided comes when the other is done."""
    with Cluster(habits=Habits.plain(tick=100 * MILLISECOND)) as cluster:
        a, b = up(cluster, "a", "b")
        cluster.witness.timetable.add(a, "tick", SECOND, cluster.wall.now())
        a.store.slow_calls["advance"] = 300 * MILLISECOND
        cluster.run(8 * SECOND)
        a.store.slow_calls.clear()
        b.store.slow_calls["advance"] = 1_300 * MILLISECOND
        cluster.run(8 * SECOND)
        b.store.slow_calls.clear()
        cluster.settle()
        made = [run for run in cluster.witness.stored.values() if run.firing is not None]
        alarm(len(made) >= 14, Broken.CADENCE, f"only {len(made)} runs in 16 seconds")


def a_job_is_paused_while_a_node_fires_it() -> None:
    with Cluster(habits=Habits.plain(tick=100 * MILLISECOND)) as cluster:
        a, b = up(cluster, "a", "b")
        timetable = cluster.witness.timetable
        job = timetable.add(b, "tick", 2 * SECOND, cluster.wall.now())
        cluster.run(SECOND)
        for node in (a, b):
            node.store.slow_calls["advance"] = SECOND
        cluster.run(1_500 * MILLISECOND)
        timetable.pause(b, job)
        cluster.run(5 * SECOND)
        alarm(job in timetable.paused, Broken.PAUSED, "the pause was never acknowledged")
        for node in (a, b):
            node.store.slow_calls.clear()
        cluster.run(5 * SECOND)
        cluster.settle()


def a_job_whose_runs_take_their_time() -> None:
    with Cluster(habits=Habits.plain(slow=700 * MILLISECOND)) as cluster:
        a, _ = up(cluster, "a", "b")
        cluster.witness.timetable.add(a, "slow", SECOND, cluster.wall.now())
        cluster.set_weather(Weather(latency=20 * MILLISECOND))
        cluster.run(10 * SECOND)
        cluster.settle()


def a_job_is_added_where_no_agent_runs() -> None:
    """The node that could fire it sleeps, and polls as good as never."""
    rare = msgspec.structs.replace(SETTINGS, poll_every=HOUR)
    with Cluster(settings=rare, habits=Habits.plain()) as cluster:
        asker = cluster.add("a", frozenset())
        keeper = cluster.add("b")
        cluster.run_until(lambda: asker.up and keeper.up)
        cluster.run(2 * SECOND)
        timetable = cluster.witness.timetable
        timetable.add(asker, "tick", SECOND, cluster.wall.now())
        cluster.run(5 * SECOND)
        alarm(
            not timetable.behind(cluster.wall.now() - SECOND),
            Broken.CADENCE,
            "nobody noticed that there is a job",
        )
        cluster.settle()


def a_machine_is_ahead_of_the_others() -> None:
    """Its own clock is wrong by an hour; jobs go by the database's."""
    with Cluster(habits=Habits.plain(tick=100 * MILLISECOND)) as cluster:
        (a,) = up(cluster, "a")
        cluster.witness.timetable.add(a, "tick", 10 * SECOND, cluster.wall.now())
        fast = cluster.add("b", off_by=HOUR)
        cluster.run_until(lambda: fast.up)
        cluster.run(25 * SECOND)
        cluster.settle()


def the_node_that_fires_dies_again_and_again() -> None:
    """Each time between having read that a job is due and having fired it, or right after."""
    with Cluster(habits=Habits.plain(tick=100 * MILLISECOND)) as cluster:
        (first,) = up(cluster, "a")
        cluster.witness.timetable.add(first, "tick", SECOND, cluster.wall.now())
        cluster.run(3 * SECOND)
        for number in range(6):
            (node,) = cluster.up
            way = node.store.slow_calls if number % 2 else node.store.slow_answers
            way["advance"] = 400 * MILLISECOND
            cluster.run(2_200 * MILLISECOND + number * 150 * MILLISECOND)
            node.crash()
            cluster.run(SECOND)
            cluster.add(f"a{number}")
            cluster.run_until(lambda: bool(cluster.up))
        cluster.settle()


# Work that outlives its node (W-2).

HERE, THERE = "machine here", "machine there"


def on(cluster: Cluster, **machines: str) -> list[Node]:
    """Nodes on these machines, started, and each knowing of the others."""
    nodes = [cluster.add(name, host=host) for name, host in machines.items()]
    cluster.run_until(lambda: all(node.up for node in nodes))
    cluster.run(2 * SECOND)
    return nodes


def outlives(cluster: Cluster, node: Node, text: str = "long", attempts: int = 1) -> None:
    """The node begins some work, and crashes in the middle of it."""
    node.submit(OUTLIVING, text, {"session": "s", "max_attempts": attempts})
    cluster.run_until(begun(cluster, node))
    cluster.run(SECOND)
    node.crash()


def buried(cluster: Cluster) -> Callable[[], bool]:
    return lambda: any(" buries " in line for line in cluster.log)


def a_worker_outlives_its_node_beside_another() -> None:
    with Cluster(habits=Habits.plain(long=20 * SECOND)) as cluster:
        a, *_ = on(cluster, a=HERE, b=HERE, c=THERE)
        outlives(cluster, a)
        cluster.settle()
        alarm(cluster.outcome("a-1") == "done", Broken.GIVEN_UP, cluster.outcome("a-1"))


def a_worker_waits_for_a_node_of_its_machine() -> None:
    """Another machine has had time enough to take its run over."""
    with Cluster(habits=Habits.plain(long=MINUTE)) as cluster:
        a, _ = on(cluster, a=HERE, c=THERE)
        outlives(cluster, a, attempts=2)
        cluster.run_until(buried(cluster))
        cluster.run(cluster.settings.adoption_grace - SECOND)
        attempts = cluster.witness.attempts[RunId("a-1")]
        alarm(len(attempts) == 1, Broken.RESERVED, f"{attempts[-1]} took it over")
        cluster.add("b", host=HERE)
        cluster.settle()
        alarm(len(cluster.witness.machines.adopted) == 1, Broken.GIVEN_UP, "nobody adopted it")


def a_machine_does_not_come_back() -> None:
    """When the grace is over its run goes on elsewhere, to the instant: nobody waits for a poll."""
    settings = msgspec.structs.replace(SETTINGS, adoption_grace=5_500 * MILLISECOND)
    with Cluster(settings=settings, habits=Habits.plain(long=MINUTE)) as cluster:
        a, c = on(cluster, a=HERE, c=THERE)
        outlives(cluster, a, attempts=2)
        cluster.run_until(buried(cluster))
        cluster.run(cluster.settings.adoption_grace - MILLISECOND)
        alarm(not begun(cluster, c)(), Broken.RESERVED, "it was taken over before its time")
        cluster.run(20 * MILLISECOND)
        alarm(begun(cluster, c)(), Broken.RESERVED, "nobody took it over in time")
        cluster.settle()


def an_attempt_is_left_behind_while_another_run_waits_for_its_slot() -> None:
    """A deaf attempt has the only slot; right before it is given up, the start of the next run is stored ahead."""
    habits = Habits.plain(deaf=20 * SECOND, short=10 * MILLISECOND)
    habits.ignores_cancel, habits.longest_ignored = 1.0, MINUTE
    lanes = {**SETTINGS.lanes, MAIN: LaneSettings(1)}
    with Cluster(settings=with_lanes(lanes), habits=habits) as cluster:
        cluster.most_ahead = 1
        (a,) = up(cluster, "a")
        a.submit("alpha", "deaf", {"session": "deaf"})
        cluster.run_until(begun(cluster, a))
        assert a.engine is not None
        a.ask("stop", a.engine.stop(SessionKey("deaf")))
        cluster.run(SETTINGS.cancel_grace - 100 * MILLISECOND)
        a.submit("alpha", "short", {"session": "short", "max_attempts": 3})
        # Another lane has something stored: after that a node starts ahead what it can.
        a.submit("alpha", "short", {"session": "other", "lane": FEW})
        cluster.run(50 * MILLISECOND)
        assert a.engine.kernel.stage.floor.lanes[MAIN].next_up
        a.store.slow_calls["record"] = 30 * MILLISECOND
        cluster.run(SECOND)
        a.store.slow_calls.clear()
        cluster.settle()
