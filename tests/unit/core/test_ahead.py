"""Starts stored ahead of their slots: who may be ahead, who is called up, who is called back (L-2)."""

import gc
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from headway.core import forecast
from headway.core.actions import Died, Enqueue, Failed, Finish, Limited, NotBegun, NoteWait
from headway.core.lanes import Lane
from headway.core.twin import twin_of
from headway.core.why import lane_views
from headway.model.run import (
    INTERACTIVE_BELOW,
    AgentName,
    LaneName,
    QueueOptions,
    RunId,
    SessionKey,
)
from headway.model.settings import AgentSettings, Budget, LaneSettings
from headway.model.time import MILLISECOND, SECOND, Span
from headway.model.words import Cut, Reason, Rule, State
from tests.unit.core.by_hand import ByHand
from tests.unit.core.test_twin import moving

STOPPED = (State.CANCELLED, Reason.STOPPED)
DRAINING = (State.CANCELLED, Reason.DRAINING)
NOT_BEGUN = Failed("cancelled before it began")


class Hand(ByHand):
    """A kernel whose lanes may have starts stored ahead; it tells who has a slot and who has none yet."""

    def lane(self, name: str = "main") -> Lane:
        return self.kernel.stage.floor.lanes[LaneName(name)]

    def allow(self, count: int, lane: str = "main") -> None:
        self.kernel.set_ahead(LaneName(lane), count, self.now)
        self.read()

    def ahead(self, lane: str = "main") -> list[str]:
        return [live.run.id for live in self.lane(lane).next_up.values()]

    def at_work(self) -> list[str]:
        """Those that have a slot, in order of their starts."""
        attempts = self.kernel.stage.attempts
        return [name for name in self.running if not attempts[self.tickets[name]].next_up]

    def called(self) -> list[str]:
        """Those that have got their slot since this was asked last."""
        stage = self.kernel.stage
        tickets, stage.called = stage.called, []
        return [stage.attempts[ticket].run.id for ticket in tickets if ticket in stage.attempts]

    def passes(self, span: Span) -> int:
        """Time passes, and whoever is called back returns at once. Answers how many did."""
        until, count = self.now + span, 0
        while self.now < until:
            self.wait(min(self.kernel.wake_at or until, until) - self.now)
            attempts = self.kernel.stage.attempts.values()
            called_back = [live.run.id for live in attempts if live.next_up and live.cut]
            self.returns_unbegun(*called_back)
            count += len(called_back)
        return count

    def notes(self) -> list[tuple[str, Span, int]]:
        """Who waited long, how long, and behind how many."""
        notes = (action for action in self.actions if isinstance(action, NoteWait))
        return [(note.run.id, note.waited, note.ahead) for note in notes]

    def told(self) -> tuple[object, ...]:
        """What is the same whether some were ahead or not."""
        states = {name: outcome.state for name, outcome in self.outcomes.items()}
        cuts = [name for name, _ in self.cuts if self.runs[name].priority >= INTERACTIVE_BELOW]
        lanes = self.kernel.stage.floor.lanes.values()
        return states, cuts, self.notes(), [(lane.started, lane.in_use) for lane in lanes]

    def permit(self, count: int, lane: str = "main") -> None:
        self.kernel.set_permits(LaneName(lane), count, self.now)
        self.read()

    def returns_unbegun(self, *names: str) -> None:
        for name in names:
            self.kernel.finished(self.tickets[name], NOT_BEGUN, self.now)
            self.read()


def busy(
    waiting: str = "bcd", *, ahead: int = 0, lane: int | LaneSettings = 1, **agents: AgentSettings
) -> Hand:
    """A lane of one slot, taken by `a`, and others of one letter each that wait for it."""
    hand = Hand(lanes={"main": lane}, agents=agents)
    for name in f"a{waiting}":
        hand.submit(name)
    if ahead:
        hand.allow(ahead)
    return hand


# Who is ahead.


def test_l2_nothing_is_ahead_unless_it_is_said_to_be() -> None:
    hand = busy()
    assert hand.started == ["a"]
    hand.allow(0)
    assert (hand.started, hand.ahead()) == (["a"], [])


def test_l2_r1_those_ahead_are_assigned_and_take_no_slot() -> None:
    hand = busy("bcde", ahead=2)
    assert hand.started == ["a", "b", "c"]
    assert hand.ahead() == ["b", "c"]
    states = [hand.state(name) for name in "abcd"]
    assert states == [State.RUNNING, State.ASSIGNED, State.ASSIGNED, State.QUEUED]
    assert hand.lane().in_use == 1
    assert hand.called() == []


def test_l2_who_comes_later_is_ahead_if_there_is_room_for_one_more() -> None:
    hand = busy("", ahead=1)
    hand.submit("b")
    hand.submit("c")
    assert hand.ahead() == ["b"]


def test_l2_nobody_is_ahead_while_a_slot_is_free() -> None:
    hand = busy("b", ahead=4, lane=3)
    assert (hand.at_work(), hand.ahead()) == (["a", "b"], [])
    hand.submit("c")
    hand.submit("d")
    assert (hand.at_work(), hand.ahead()) == (["a", "b", "c"], ["d"])


def test_l2_a_free_slot_goes_to_the_first_of_them_at_once() -> None:
    hand = busy("bcd", ahead=2)
    hand.wait(10 * MILLISECOND)
    hand.end("a")
    assert hand.called() == ["b"]
    assert hand.started == ["a", "b", "c", "d"], "b is not started a second time"
    assert (hand.at_work(), hand.ahead()) == (["b"], ["c", "d"])
    assert hand.lane().in_use == 1
    assert hand.kernel.stage.runs[RunId("b")].started_at == hand.now, "its time counts from here"
    hand.end("b")
    hand.end("c")
    assert hand.called() == ["d"], "c has ended already"
    hand.end("d")
    assert hand.lane().in_use == 0
    assert all(hand.outcomes[name].ok for name in "abcd")


@pytest.mark.parametrize("width", [1, 2, 3])
def test_l2_never_more_are_at_work_than_the_lane_is_wide(width: int) -> None:
    hand = Hand(lanes={"main": width})
    order = [f"r{number}" for number in range(30)]
    for name in order:
        hand.submit(name)
        hand.allow(4)
        assert len(hand.at_work()) <= width
    begun = hand.at_work()
    while hand.at_work():
        hand.allow(4)
        hand.end(hand.at_work()[-1])
        begun += hand.called()
        assert hand.lane().in_use == len(hand.at_work()) <= width
    assert begun == order


def test_l2_a_wider_lane_calls_up_those_ahead_before_others() -> None:
    hand = busy("bcde", ahead=2)
    hand.set_lane("main", 4)
    assert hand.called() == ["b", "c"]
    assert hand.at_work() == ["a", "b", "c", "d"]
    assert hand.ahead() == ["e"]


def test_l2_lanes_have_those_ahead_each_for_itself() -> None:
    hand = Hand(lanes={"main": 1, "team": 1})
    for name in "abc":
        hand.submit(name)
        hand.submit(name.upper(), lane="team")
    hand.allow(2)
    assert (hand.ahead(), hand.ahead("team")) == (["b", "c"], [])
    hand.allow(1, "team")
    hand.end("A")
    assert hand.called() == ["B"]
    assert hand.ahead() == ["b", "c"]


def test_l2_it_counts_for_a_tenth_of_a_second_that_some_may_be_ahead() -> None:
    hand = busy("", ahead=3)
    hand.wait(100 * MILLISECOND)
    hand.submit("b")
    hand.wait(MILLISECOND)
    hand.submit("c")
    assert hand.ahead() == ["b"]


def test_l2_fewer_may_be_ahead_and_those_that_are_stay() -> None:
    hand = busy("bcde", ahead=3)
    hand.allow(1)
    assert hand.ahead() == ["b", "c", "d"]
    hand.end("a")
    assert hand.ahead() == ["c", "d"]


def test_s1_a_session_has_one_ahead_and_keeps_its_order() -> None:
    hand = busy("", ahead=4)
    for name in ("x1", "x2", "x3"):
        hand.submit(name, session="x")
    assert hand.ahead() == ["x1"]
    for name in ("a", "x1", "x2", "x3"):
        hand.end(name)
    assert hand.started == ["a", "x1", "x2", "x3"]


def test_f2_some_of_each_agent_are_ahead_and_agents_take_turns() -> None:
    hand = Hand(lanes={"main": 1})
    for number in range(4):
        hand.submit(f"a{number}", "a")
    for number in range(4):
        hand.submit(f"b{number}", "b")
    hand.allow(4)
    assert sorted(hand.ahead()) == ["a1", "a2", "b0", "b1"]
    begun = []
    for _ in range(8):
        begun += hand.at_work()
        hand.end(hand.at_work()[0])
    assert begun == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"]


@pytest.mark.parametrize("weight", [1, 2])
def test_f2_a_newcomer_of_another_agent_waits_for_one_slot_however_many_are_ahead(
    weight: int,
) -> None:
    hand = Hand(lanes={"main": 1}, agents={"a": AgentSettings(weight=weight)})
    for number in range(100):
        hand.submit(f"a{number}", "a")
    hand.allow(64)
    assert len(hand.ahead()) == 64
    hand.end("a0")
    hand.allow(64)
    hand.submit("new", "b")
    hand.end("a1")
    assert hand.at_work() == ["new"]
    hand.end("new")
    assert hand.at_work() == ["a2"]
    assert hand.started.count("a2") == 1, "its start was stored before"


def test_f2_a_newcomer_that_is_before_those_ahead_by_priority_begins_before_them() -> None:
    hand = Hand(lanes={"main": 1})
    for name in "abc":
        hand.submit(name, priority=5)
    hand.allow(2)
    hand.submit("urgent", priority=0)
    assert hand.ahead() == ["b", "c"]
    hand.end("a")
    assert (hand.called(), hand.at_work()) == ([], ["urgent"])
    hand.end("urgent")
    assert (hand.called(), hand.at_work()) == (["b"], ["b"])


def test_f2_no_flow_is_left_out_where_there_are_more_agents_than_may_be_ahead() -> None:
    hand = Hand(lanes={"main": 1})
    for number in range(6):
        hand.submit(f"r{number}", f"agent {number}")
    hand.allow(3)
    assert len(hand.ahead()) == 3


def test_f2_those_ahead_do_not_weigh_on_their_agent() -> None:
    hand = Hand(lanes={"main": 1, "team": 1})
    for number in range(4):
        hand.submit(f"a{number}", "a")
    hand.allow(3)
    hand.submit("b", "b")
    hand.submit("B", "b", lane="team")
    agents = hand.kernel.stage.floor.agents
    assert [agents[AgentName(name)].inflight for name in "ab"] == [1, 1]
    hand.end("a0")
    assert hand.at_work() == ["a1", "B"] or hand.at_work() == ["B", "a1"]


@pytest.mark.parametrize("seed", range(12))
def test_f2_x5_x6_who_begins_when_is_the_same_as_if_nobody_were_ever_ahead(seed: int) -> None:
    rng = Random(seed)
    agents = {
        "a": AgentSettings(weight=3),
        "b": AgentSettings(budget=Budget(runs_per_minute=130)),
        "c": AgentSettings(provider="key"),
    }
    lanes = {"main": rng.choice((1, 2, LaneSettings(3, reserve=1))), "team": 1}
    with_some, without = (Hand(lanes=lanes, agents=agents) for _ in range(2))
    counts = Counter[str]()
    for step in range(400):
        dice = rng.random()
        at_work = without.at_work()
        if dice < 0.45:
            options: dict[str, object] = {
                "lane": rng.choice(("main", "main", "team")),
                "priority": rng.choice((0, 0, 5, 10)),
                "preemptible": rng.random() < 0.5,
                "session": rng.choice(("x", "y", f"own {step}", f"own {step}")),
                "cap": 1000,
            }
            agent = rng.choice("abcd")
            for hand in (with_some, without):
                hand.submit(f"r{step}", agent, **options)
        elif dice < 0.85 and at_work:
            name = rng.choice(at_work)
            limited = rng.random() < 0.03 and name not in dict(without.cuts)
            for hand in (with_some, without):
                hand.end(name, Limited(SECOND // 7) if limited else None)
        else:
            span = rng.choice((0, 10, 40, 300)) * MILLISECOND
            counts["called back"] += with_some.passes(span)
            without.passes(span)
        with_some.allow(rng.choice((0, 1, 2, 8)))
        with_some.allow(rng.choice((0, 1, 2, 8)), "team")
        counts["called up"] += len(with_some.called())
        assert sorted(with_some.at_work()) == sorted(without.at_work()), f"step {step}"
        assert with_some.told() == without.told()
    assert min(counts["called up"], counts["called back"]) > 0


def test_f2_priorities_count_among_those_that_wait() -> None:
    hand = busy("", ahead=0)
    for name, priority in (("b", 5), ("c", 0), ("d", 3)):
        hand.submit(name, priority=priority)
    hand.allow(2)
    assert hand.ahead() == ["c", "d"]


# Who is not.


@pytest.mark.parametrize(
    "options",
    [
        {"deadline": "1h"},
        {"timeout": "1h"},
        {"source": "task", "max_attempts": 2},
        {"priority": 10},
        {"priority": 10, "preemptible": True},
        {"max_attempts": 1},
        {"session": "s", "max_concurrent": 3},
    ],
    ids=str,
)
def test_l2_what_is_not_plain_is_never_ahead(options: dict[str, object]) -> None:
    hand = busy("", ahead=3)
    hand.submit("x", "a", "x", **options)
    assert hand.started == ["a"]
    hand.end("a")
    assert hand.at_work() == ["x"]


def test_l2_a_turn_that_others_may_still_join_is_not_ahead() -> None:
    hand = Hand(lanes={"main": 2})
    hand.submit("a")
    hand.submit("first", session="s")
    hand.submit("b")
    hand.submit("x", session="s", mode="collect")
    hand.end("first")
    hand.allow(3)
    assert (hand.at_work(), hand.ahead()) == (["a", "b"], [])
    hand.submit("y", session="s", mode="collect")
    hand.end("a")
    assert hand.ending("y") == (State.CANCELLED, Reason.MERGED)


def test_l2_a_retried_run_is_not_ahead() -> None:
    hand = Hand(lanes={"main": 1})
    hand.submit("x", retries=1)
    hand.submit("a")
    hand.fail("x")
    hand.wait(3 * SECOND)
    hand.allow(2)
    assert hand.state("x") is State.QUEUED
    assert hand.ahead() == []


def test_r5_a_run_whose_worker_died_is_not_ahead() -> None:
    hand = Hand(lanes={"main": 1}, agents={"a": AgentSettings(weight=16)})
    hand.submit("x", "x", max_attempts=3)
    hand.submit("y", "x")
    hand.submit("a")
    hand.end("x", Died("gone"))
    assert (hand.at_work(), hand.state("x")) == (["a"], State.QUEUED)
    hand.allow(2)
    assert hand.ahead() == [], "nor is who comes after it"


def test_s5_a_run_of_a_session_that_remembers_something_is_not_ahead() -> None:
    hand = busy("", ahead=2)
    hand.configure("s", QueueOptions(cap=5))
    hand.submit("x", session="s")
    assert hand.ahead() == []


def test_l2_nobody_overtakes_what_may_not_be_ahead() -> None:
    hand = busy("", ahead=3)
    hand.submit("x", deadline="1h")
    hand.submit("b")
    assert hand.ahead() == []
    hand.submit("t", "other", source="task")
    hand.end("a")
    assert hand.at_work() == ["t"]


def test_x6_those_ahead_pay_when_they_begin_and_wait_for_their_agents_budget() -> None:
    budget = AgentSettings(budget=Budget(runs_per_minute=2))
    hand = busy("bcd", ahead=3, a=budget)
    assert hand.ahead() == ["b", "c", "d"]
    hand.end("a")
    assert hand.at_work() == ["b"]
    hand.end("b")
    assert (hand.at_work(), hand.ahead()) == ([], ["c", "d"])
    assert hand.why("c").rule is Rule.AGENT_BUDGET
    hand.submit("other", "x")
    assert hand.at_work() == ["other"]
    hand.wait(250 * MILLISECOND)
    hand.returns_unbegun("c", "d")
    hand.end("other")
    hand.wait(30 * SECOND)
    assert hand.at_work() == ["c"]


def test_x6_those_ahead_wait_for_their_lanes_budget_and_begin_when_it_allows() -> None:
    lane = LaneSettings(1, budget=Budget(runs_per_minute=600))
    hand = busy("", lane=lane)
    for number in range(599):
        hand.end(hand.at_work()[0])
        hand.submit(str(number))
    hand.allow(2)
    hand.submit("x")
    assert hand.ahead() == ["x"]
    hand.end(hand.at_work()[0])
    assert (hand.at_work(), hand.why("x").rule) == ([], Rule.LANE_BUDGET)
    hand.wait(100 * MILLISECOND)
    assert (hand.called(), hand.at_work()) == (["x"], ["x"])
    assert hand.cuts == []


def test_l8_those_ahead_begin_only_on_slots_that_this_node_has_of_the_lane() -> None:
    hand = Hand(lanes={"main": LaneSettings(4, cluster_limit=3)})
    for name in "abcd":
        hand.submit(name)
    hand.allow(2)
    assert (hand.at_work(), hand.ahead()) == ([], []), "it has no slot at all"
    hand.permit(1)
    hand.allow(2)
    assert (hand.at_work(), hand.ahead()) == (["a"], ["b", "c"])
    assert hand.kernel.wanted_permits() == {"main": 3}, "those ahead want one each"
    hand.permit(2)
    assert (hand.called(), hand.at_work()) == (["b"], ["a", "b"])
    hand.permit(0)
    hand.end("a")
    hand.end("b")
    assert (hand.called(), hand.at_work(), hand.lane().in_use) == ([], [], 0)
    hand.permit(1)
    assert hand.at_work() == ["c"]


def test_x5_background_work_gives_way_to_one_that_is_ahead() -> None:
    hand = Hand(lanes={"main": 1})
    hand.submit("batch", priority=10, preemptible=True)
    hand.allow(2)
    hand.submit("user")
    assert (hand.ahead(), hand.cuts) == (["user"], [("batch", Cut.PREEMPTED)])
    hand.submit("more", "other", priority=10)
    hand.end("batch")
    assert (hand.called(), hand.at_work()) == (["user"], ["user"])
    hand.end("user")
    assert hand.at_work() == ["more"]


def test_x5_as_many_give_way_as_are_ahead_and_no_more() -> None:
    hand = Hand(lanes={"main": 3})
    for name in "xyz":
        hand.submit(name, priority=10, preemptible=True)
    hand.allow(2)
    hand.submit("user")
    hand.submit("another", "b")
    assert len(hand.ahead()) == 2
    assert [cut for _, cut in hand.cuts] == [Cut.PREEMPTED] * 2


def test_x5_a_reserved_slot_is_for_one_that_is_ahead() -> None:
    hand = Hand(lanes={"main": LaneSettings(2, reserve=1)})
    hand.submit("batch", priority=10)
    hand.submit("a")
    hand.submit("more", priority=10)
    hand.allow(1)
    hand.submit("b")
    assert hand.ahead() == ["b"]
    hand.end("a")
    assert hand.at_work() == ["batch", "b"]


@pytest.mark.parametrize("setting", ["set_gated", "set_estimating"])
def test_s2_s11_with_hooks_or_estimates_nobody_is_ahead(setting: str) -> None:
    hand = busy()
    getattr(hand.kernel, setting)(True)
    hand.allow(2)
    assert hand.started == ["a"]


def test_w2_nobody_is_ahead_whose_worker_outlives_the_node() -> None:
    hand = busy()
    hand.kernel.set_outliving(hand.runs["a"].agent, True)
    hand.allow(2)
    assert hand.started == ["a"]


def test_l4_sub_runs_are_not_ahead() -> None:
    hand = busy("", ahead=2)
    hand.submit("child", parent="a", lane="main")
    assert hand.ahead() == []


# Ended before they had a slot.


def stop(hand: Hand) -> None:
    assert hand.stop("run:b").running == 1


def cancel(hand: Hand) -> None:
    assert hand.cancel("b").running == 1


def stop_all(hand: Hand) -> None:
    assert hand.stop_all("run:b").running == 1


@pytest.mark.parametrize("end", [stop, cancel, stop_all])
def test_x3_one_that_is_stopped_ahead_never_gets_a_slot(end: Callable[[Hand], None]) -> None:
    hand = busy("bcd", ahead=2)
    end(hand)
    assert hand.cuts == [("b", Cut.STOPPED)]
    assert hand.ahead() == ["c", "d"], "there is room for one more"
    hand.end("a")
    assert (hand.called(), hand.at_work()) == (["c"], ["c"])
    hand.returns_unbegun("b")
    assert hand.ending("b") == STOPPED
    (finish,) = (a for a in hand.actions if isinstance(a, Finish) and a.run.id == "b")
    assert finish.started_at is None
    assert hand.lane().in_use == 1
    hand.end("c")
    hand.end("d")
    assert hand.lane().in_use == 0


def test_s3_an_interrupt_replaces_one_that_is_ahead_when_it_has_returned() -> None:
    hand = busy("", ahead=2)
    hand.submit("old", session="s")
    hand.submit("new", session="s", mode="interrupt")
    assert hand.cuts == [("old", Cut.SUPERSEDED)]
    assert hand.ahead() == []
    hand.returns_unbegun("old")
    assert hand.ending("old") == (State.CANCELLED, Reason.SUPERSEDED)
    hand.end("a")
    assert hand.at_work() == ["new"]


def test_s3_one_that_does_not_even_return_is_abandoned_and_frees_no_slot() -> None:
    hand = busy("bc", ahead=1)
    hand.cancel("b")
    hand.wait(10 * SECOND)
    assert hand.abandoned == ["b"]
    assert hand.ending("b") == STOPPED
    assert (hand.at_work(), hand.lane().in_use) == (["a"], 1)


# Called back.


def test_r5_who_has_waited_a_quarter_of_a_second_is_called_back_and_loses_nothing() -> None:
    hand = busy("", ahead=2)
    hand.submit("x1", session="x")
    hand.submit("x2", session="x")
    hand.wait(249 * MILLISECOND)
    assert hand.cuts == []
    hand.wait(MILLISECOND)
    assert hand.cuts == [("x1", Cut.PREEMPTED)]
    assert hand.ahead() == []
    hand.returns_unbegun("x1")
    assert hand.state("x1") is State.QUEUED
    again = [action for action in hand.actions if isinstance(action, Enqueue)][-1]
    assert (again.run.id, again.attempt, again.ended) == ("x1", 0, True)
    hand.end("a")
    hand.end("x1")
    hand.end("x2")
    assert hand.started == ["a", "x1", "x1", "x2"]
    assert hand.attempts["x1"] == 1
    assert hand.outcomes["x1"].ok


def test_l7_the_note_of_a_long_wait_comes_with_the_slot_and_counts_who_went_before() -> None:
    hand = busy("bcd")
    hand.wait(5 * SECOND)
    hand.allow(3)
    assert hand.ahead() == ["b", "c", "d"]
    assert hand.notes() == []
    hand.end("a")
    hand.end("b")
    assert hand.notes() == [("b", 5 * SECOND, 0), ("c", 5 * SECOND, 1)]
    hand.wait(250 * MILLISECOND)
    hand.returns_unbegun("d")
    assert len(hand.notes()) == 2
    hand.submit("urgent", "other")
    hand.end("c")
    hand.end("urgent")
    assert hand.at_work() == ["d"]
    assert hand.notes()[2:] == [("d", 5 * SECOND + 250 * MILLISECOND, 3)]


def test_s6_one_that_was_called_back_is_a_message_that_never_began() -> None:
    hand = busy("", ahead=1)
    cap: dict[str, object] = {"session": "s", "cap": 2, "drop": "old"}
    for name in ("s1", "s2", "s3"):
        hand.submit(name, "a", **cap)
    assert hand.outcomes == {}, "one ahead does not wait in its session"
    hand.wait(250 * MILLISECOND)
    hand.returns_unbegun("s1")
    assert not hand.kernel.stage.runs[RunId("s1")].begun
    hand.submit("s4", "a", **cap)
    assert sorted(hand.outcomes) == ["s1", "s2"], "it gives way as the oldest"
    finish = next(a for a in hand.actions if isinstance(a, Finish) and a.run.id == "s1")
    assert finish.started_at is None


def test_s5_one_that_was_called_back_is_cleared_like_others_that_wait() -> None:
    hand = busy("", ahead=1)
    hand.submit("s1", session="s")
    assert hand.clear("s") == 0
    hand.wait(250 * MILLISECOND)
    hand.returns_unbegun("s1")
    assert hand.clear("s") == 1
    assert hand.ending("s1") == (State.CANCELLED, Reason.CLEARED)


def test_l2_one_that_was_called_back_is_not_ahead_again() -> None:
    hand = busy("b", ahead=1)
    hand.wait(250 * MILLISECOND)
    hand.returns_unbegun("b")
    hand.allow(1)
    assert hand.ahead() == []
    hand.end("a")
    assert (hand.called(), hand.at_work()) == ([], ["b"])
    assert hand.lane().ready[0] == 0
    hand.end("b")
    assert hand.started == ["a", "b", "b"]


def test_l6_one_that_was_posted_twice_is_ahead_once() -> None:
    hand = busy("")
    for name in "bc":
        hand.submit(name, max_attempts=3)
    hand.drain(keep_waiting=True)
    hand.reset()
    hand.allow(4)
    assert (hand.at_work(), hand.ahead()) == (["a"], ["b", "c"])
    for name in "abc":
        hand.end(name)
    assert hand.lane().ready[0] == 0
    assert hand.started[1:] == ["a", "b", "c"]


def test_s4_those_that_left_before_they_began_are_not_kept() -> None:
    hand = busy("", ahead=0)
    names = [f"r{number}" for number in range(100)]
    for name in names:
        hand.submit(name)
    hand.allow(100)
    for name in names:
        hand.cancel(name)
        hand.returns_unbegun(name)
    (flow,) = hand.lane().flows[0].values()
    assert len(flow.next_up) < 40


def test_l2_all_of_the_lane_are_called_back_together_and_nobody_follows() -> None:
    hand = busy("b", ahead=4)
    hand.wait(90 * MILLISECOND)
    hand.submit("c")
    hand.wait(160 * MILLISECOND)
    assert [name for name, _ in hand.cuts] == ["b", "c"]
    hand.submit("d")
    assert hand.ahead() == []


def test_l2_the_wait_of_each_counts_from_its_own_start() -> None:
    hand = busy("b", ahead=4)
    hand.wait(100 * MILLISECOND)
    hand.submit("c")
    hand.wait(100 * MILLISECOND)
    hand.end("a")
    hand.wait(50 * MILLISECOND)
    assert hand.cuts == [], "b has its slot, c has waited 150 ms"
    hand.wait(100 * MILLISECOND)
    assert hand.cuts == [("c", Cut.PREEMPTED)]


def test_l2_a_slot_that_becomes_free_meanwhile_is_not_for_one_that_was_called_back() -> None:
    hand = busy("b", ahead=1)
    hand.wait(250 * MILLISECOND)
    hand.end("a")
    assert (hand.called(), hand.at_work()) == ([], [])
    hand.submit("c")
    assert hand.at_work() == ["c"]
    hand.returns_unbegun("b")
    assert hand.lane().in_use == 1
    hand.end("c")
    assert hand.at_work() == ["b"]


@pytest.mark.parametrize("width", [1, 0])
def test_l2_in_a_narrower_lane_they_are_called_back(width: int) -> None:
    hand = Hand(lanes={"main": 2})
    for name in "abcd":
        hand.submit(name)
    hand.allow(2)
    hand.set_lane("main", width)
    assert hand.cuts == [("c", Cut.PREEMPTED), ("d", Cut.PREEMPTED)]
    hand.returns_unbegun("c", "d")
    hand.end("a")
    assert hand.called() == []
    assert hand.at_work() == ["b"]
    hand.end("b")
    assert hand.at_work() == ["c"][:width]


def test_l4_who_is_awaited_is_called_back_and_goes_on_the_slot_of_who_waits() -> None:
    hand = busy("b", ahead=1)
    hand.awaits("a", "b")
    assert hand.cuts == [("b", Cut.PREEMPTED)]
    hand.returns_unbegun("b")
    assert hand.at_work() == ["a", "b"]
    assert hand.lane().in_use == 1
    hand.end("b")
    hand.end("a")
    assert hand.outcomes["a"].ok


def test_s3_what_was_left_behind_is_stored_before_its_slot_is_used() -> None:
    hand = busy("b")
    hand.cancel("a")
    hand.wait(10 * SECOND - 50 * MILLISECOND)
    hand.allow(1)
    assert hand.ahead() == ["b"]
    hand.wait(50 * MILLISECOND)
    assert hand.abandoned == ["a"]
    assert hand.cuts[-1] == ("b", Cut.PREEMPTED)
    assert hand.called() == []
    hand.returns_unbegun("b")
    assert hand.at_work() == ["b"]


def test_x6_nobody_is_called_up_whose_agent_is_told_to_wait() -> None:
    hand = Hand(lanes={"main": 1})
    for name in "abc":
        hand.submit(name, "limited")
    hand.submit("x", "other")
    hand.allow(3)
    assert sorted(hand.ahead()) == ["b", "c", "x"]
    hand.limit("a", 200 * MILLISECOND)
    assert hand.called() == ["x"]
    hand.end("x")
    assert (hand.called(), hand.at_work(), hand.ahead()) == ([], [], ["b", "c"])
    assert hand.why("b").rule is Rule.RATE_LIMITED
    hand.wait(199 * MILLISECOND)
    assert hand.at_work() == []
    hand.wait(MILLISECOND)
    assert hand.at_work() == ["a"], "it comes first in its agent"
    hand.end("a")
    assert (hand.called(), hand.cuts) == (["b"], [])
    assert hand.attempts["b"] == 1


def test_x6_who_is_ahead_longer_than_its_agent_must_wait_begins_at_once_when_that_is_over() -> None:
    hand = Hand(lanes={"main": 2}, agents={"a": AgentSettings(provider="key")})
    hand.submit("a", deadline="100ms")
    hand.submit("z", "other")
    hand.allow(1)
    hand.submit("b")
    hand.limit("a", 150 * MILLISECOND)
    assert hand.ending("a") == (State.FAILED, Reason.RATE_LIMITED)
    assert (hand.ahead(), hand.at_work()) == (["b"], ["z"])
    hand.wait(150 * MILLISECOND)
    assert (hand.called(), hand.at_work()) == (["b"], ["z", "b"])


def test_x6_a_parked_line_counts_those_that_leave_it_ahead() -> None:
    hand = Hand(lanes={"main": 1})
    for name in "abc":
        hand.submit(name, "limited")
    hand.allow(2)
    hand.limit("a", 5 * SECOND)
    lane = hand.lane()
    assert (lane.ready[0], lane.parked) == (0, 2)
    hand.cancel("b")
    assert (lane.ready[0], lane.parked) == (0, 1)
    hand.wait(250 * MILLISECOND)
    hand.returns_unbegun("b", "c")
    assert (lane.ready[0], lane.parked) == (0, 1)


def test_x6_one_of_an_agent_that_must_wait_is_called_back_and_begins_when_that_is_over() -> None:
    hand = Hand(lanes={"cron": 1}, agents={"held": AgentSettings(provider="key")})
    hand.submit("told to wait", "held", deadline="500ms")
    hand.submit("first", "held", session="s")
    hand.submit("x", "held", session="s", lane="cron")
    hand.submit("a", lane="cron")
    hand.limit("told to wait", SECOND)
    hand.allow(2, "cron")
    hand.end("first")
    assert hand.ahead("cron") == ["x"]
    hand.wait(SECOND)
    hand.returns_unbegun("x")
    hand.wait(SECOND)
    hand.end("a")
    assert hand.state("x") is State.RUNNING


def test_x5_background_work_on_a_lent_slot_gives_way_to_one_ahead_when_it_has_its_own() -> None:
    hand = busy("", ahead=1)
    hand.submit("user")
    hand.submit("batch", parent="a", priority=10, preemptible=True, lane="main")
    hand.awaits("a", "batch")
    assert (hand.at_work(), hand.ahead(), hand.cuts) == (["a", "batch"], ["user"], [])
    hand.resumes("a", "batch")
    hand.end("a")
    assert hand.cuts == [("batch", Cut.PREEMPTED)], "it keeps the slot that was lent to it"
    hand.end("batch")
    assert (hand.called(), hand.at_work()) == (["user"], ["user"])


# The node drains, is suspended, begins anew.


@pytest.mark.parametrize("keep_waiting", [True, False])
def test_l5_a_drain_calls_them_back(keep_waiting: bool) -> None:
    hand = busy("bc", ahead=1)
    hand.drain(keep_waiting=keep_waiting)
    assert hand.cuts == [("b", Cut.PREEMPTED)]
    hand.end("a")
    assert hand.called() == []
    hand.returns_unbegun("b")
    assert hand.ending("b") == (None if keep_waiting else DRAINING)
    hand.allow(3)
    assert hand.ahead() == []


def test_l5_r5_when_the_grace_is_over_one_that_never_began_still_loses_no_attempt() -> None:
    hand = busy("b", ahead=1)
    hand.drain(keep_waiting=True)
    hand.cut_all()
    assert hand.cuts == [("b", Cut.PREEMPTED), ("a", Cut.DRAINED)]
    hand.returns_unbegun("b", "a")
    hand.reset()
    hand.end("a")
    assert (hand.attempts["a"], hand.attempts["b"]) == (2, 1)


def test_l6_a_new_incarnation_begins_with_nobody_ahead() -> None:
    hand = busy("bc", ahead=2)
    ticket = hand.tickets["b"]
    hand.reset()
    assert hand.ahead() == []
    assert (hand.at_work(), hand.lane().in_use) == (["a"], 1)
    assert not hand.kernel.finished(ticket, NOT_BEGUN, hand.now)
    hand.read()
    hand.end("a")
    assert (hand.attempts["a"], hand.attempts["b"]) == (2, 1)


def test_l6_x3_a_stop_of_one_that_is_ahead_outlives_the_incarnation() -> None:
    hand = busy("b", ahead=1)
    hand.cancel("b")
    hand.reset()
    assert hand.ending("b") == STOPPED


def test_d3_a_suspended_node_ends_them_and_they_start_again_when_it_resumes() -> None:
    hand = busy("b", ahead=1)
    hand.kernel.suspend(hand.now)
    hand.read()
    assert hand.ahead() == []
    for name in ("a", "b"):
        hand.end(name, NotBegun())
    assert hand.lane().in_use == 0
    hand.kernel.resume(hand.now)
    hand.read()
    assert hand.at_work() == ["a"]
    hand.end("a")
    assert (hand.at_work(), hand.attempts["b"]) == (["b"], 1)


def test_d4_a_session_that_is_lost_takes_the_one_ahead_with_it() -> None:
    hand = busy("bcd", ahead=2)
    ticket = hand.tickets["b"]
    assert hand.kernel.lose([(SessionKey("run:b"), 0)], hand.now) == ["b"]
    hand.read()
    assert hand.ahead() == ["c", "d"]
    assert not hand.kernel.finished(ticket, NOT_BEGUN, hand.now)
    hand.end("a")
    assert (hand.called(), hand.lane().in_use) == (["c"], 1)


def test_d4_a_session_that_is_lost_frees_its_slot_for_the_first_ahead() -> None:
    hand = busy("b", ahead=1)
    hand.kernel.lose([(SessionKey("run:a"), 0)], hand.now)
    hand.read()
    assert (hand.called(), hand.at_work()) == (["b"], ["b"])


def test_l5_a_lane_that_is_cleared_keeps_them() -> None:
    hand = busy("bcd", ahead=1)
    assert hand.clear_lane("main") == 2
    assert hand.ahead() == ["b"]
    hand.end("a")
    assert hand.at_work() == ["b"]


# What is told of them.


def test_x1_they_wait_for_their_lane_and_have_a_place_in_line() -> None:
    hand = busy("bcd", ahead=2)
    assert [hand.why(name).rule for name in "bcd"] == [Rule.LANE_FULL] * 3
    assert [hand.why(name).place for name in "bcd"] == [0, 1, 2]
    assert hand.why("a").rule is None
    main = next(view for view in lane_views(hand.kernel) if view.name == "main")
    assert (main.running, main.waiting) == (1, 3)


def test_t5_places_count_those_ahead_and_times_those_that_go_before() -> None:
    hand = Hand(lanes={"main": 2})
    names = [f"r{number}" for number in range(10)]
    for number, name in enumerate(names):
        hand.submit(name, "ab"[number % 2])
    hand.allow(3)
    assert len(hand.ahead()) == 3
    before = [
        (live.run.id, live.state, live.started_at) for live in hand.kernel.stage.runs.values()
    ]
    places = {name: hand.why(name).place for name in names[5:]}
    assert places == {name: place for place, name in enumerate(names[5:], 3)}
    assert [hand.why(name).starts_in for name in names[5:8]] == [
        20 * SECOND,
        30 * SECOND,
        30 * SECOND,
    ]
    after = [(live.run.id, live.state, live.started_at) for live in hand.kernel.stage.runs.values()]
    assert after == before
    assert (hand.called(), hand.cuts, len(hand.ahead())) == ([], [], 3)


def test_t5_a_place_that_need_not_be_played_counts_those_ahead_too() -> None:
    hand = busy("bcde", ahead=2)
    assert [forecast.place(hand.kernel, RunId(name)) for name in "bcde"] == [0, 1, 2, 3]
    assert forecast.place(hand.kernel, RunId("a")) is None


def test_t5_a_place_that_need_not_be_played_counts_each_once() -> None:
    hand = busy("bcd")
    hand.drain(keep_waiting=True)
    hand.reset()
    hand.allow(1)
    assert hand.ahead() == ["b"]
    assert [forecast.place(hand.kernel, RunId(name)) for name in "bcd"] == [0, 1, 2]


def test_x1_places_are_in_the_order_of_those_that_begin_at_the_same_instant() -> None:
    hand = Hand(lanes={"main": 3}, agents={"held": AgentSettings(provider="key")})
    hand.submit("x", "held", deadline="100ms")
    for name in "yz":
        hand.submit(name)
    hand.submit("late", "held", priority=5)
    hand.allow(1)
    hand.submit("early", "held", timeout="1h")
    hand.limit("x", 200 * MILLISECOND)
    hand.end("y")
    assert hand.ahead() == ["late"]
    assert [hand.why(name).place for name in ("early", "late")] == [0, 1]
    hand.wait(200 * MILLISECOND)
    assert hand.started[-1] == "early"
    assert hand.called() == ["late"]


def test_x1_who_has_just_got_a_slot_ends_once_in_what_is_foreseen() -> None:
    hand = busy("bcd", ahead=1)
    hand.end("a")
    assert hand.kernel.stage.called
    assert [hand.why(name).place for name in "cd"] == [0, 1]


def test_x1_x6_what_is_foreseen_heeds_that_the_agent_of_one_ahead_is_held() -> None:
    shared = AgentSettings(provider="key")
    hand = Hand(lanes={"main": 1, "team": 1}, agents={"limited": shared, "other": shared})
    hand.submit("a")
    hand.submit("b", "limited")
    hand.submit("z", "other", lane="team")
    hand.allow(1)
    hand.submit("c")
    assert hand.ahead() == ["b"]
    assert [hand.why(name).place for name in "bc"] == [0, 1]
    hand.limit("z", 60 * SECOND)
    assert [hand.why(name).place for name in "bc"] == [1, 0]
    hand.end("a")
    assert (hand.at_work(), hand.called()) == (["c"], [])


def test_x1_one_that_is_called_back_does_not_keep_others_from_their_place() -> None:
    hand = busy("bcd", ahead=2)
    hand.wait(250 * MILLISECOND)
    assert hand.why("d").place is not None
    hand.returns_unbegun("b", "c")
    assert [hand.why(name).place for name in "bcd"] == [0, 1, 2]


def test_x1_a_copy_shares_nothing_with_the_original_and_decides_alike() -> None:
    hand = busy("bcd", ahead=2)
    twin = twin_of(hand.kernel)
    lane = twin.stage.floor.lanes[LaneName("main")]
    assert [live.run.id for live in lane.next_up.values()] == ["b", "c"]
    assert not {id(live) for live in lane.next_up.values()} & moving(hand.kernel).keys()
    twin.finished(hand.tickets["a"], NOT_BEGUN, hand.now)
    assert twin.stage.called == [hand.tickets["b"]]
    assert hand.ahead() == ["b", "c"]


def test_a_kernel_that_is_dropped_with_runs_ahead_is_freed() -> None:
    def lanes() -> int:
        gc.collect()
        return sum(isinstance(thing, Lane) for thing in gc.get_objects())

    before = lanes()
    hand = busy("bcd", ahead=2)
    assert hand.ahead() == ["b", "c"]
    del hand
    # What earlier tests have left may go meanwhile.
    assert lanes() <= before
