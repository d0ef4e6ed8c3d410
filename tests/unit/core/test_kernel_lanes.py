"""Lanes: names, widths, clearing, draining, restarting, the notice of a long wait (L-1 to L-7)."""

import msgspec
import pytest

from headway.core.actions import Failed, NoteLate
from headway.core.why import lane_views
from headway.model.settings import AgentSettings, LaneSettings, Settings
from headway.model.time import HOUR, MILLISECOND, SECOND
from headway.model.words import Cut, Reason, Rule, State
from tests.unit.core.by_hand import ByHand

CLEARED = (State.CANCELLED, Reason.LANE_CLEARED)
DRAINING = (State.CANCELLED, Reason.DRAINING)


def submit_many(hand: ByHand, count: int, **options: object) -> list[str]:
    names = [f"r{len(hand.actions)}-{number}" for number in range(count)]
    for name in names:
        hand.submit(name, "a", **options)
    return names


@pytest.mark.parametrize(
    ("lane", "width"), [("main", 30), ("subagent", 50), ("team", 100), ("cron", 30)]
)
def test_l1_default_widths_bound_what_runs_at_once(lane: str, width: int) -> None:
    hand = ByHand()
    submit_many(hand, width + 5, lane=lane)
    assert len(hand.running) == width


def test_l1_delegate_is_the_team_lane() -> None:
    hand = ByHand(lanes={"team": 1})
    hand.submit("x", lane="delegate")
    hand.submit("y", lane="team")
    assert hand.running == ["x"]
    assert hand.why("y").lane == "team"
    hand.set_lane("delegate", 2)
    assert hand.running == ["x", "y"]
    assert [view.name for view in lane_views(hand.kernel)] == ["main", "subagent", "team", "cron"]


def test_l1_an_unknown_lane_means_main_and_is_counted() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("x", lane="nowhere")
    hand.submit("y")
    assert hand.running == ["x"]
    assert hand.why("y").rule is Rule.LANE_FULL
    assert hand.kernel.stage.floor.fallbacks == 1


def test_l1_main_exists_even_if_the_settings_forget_it() -> None:
    hand = ByHand(Settings(lanes={"night": LaneSettings(1)}))  # type: ignore[dict-item]
    hand.submit("x", lane="nowhere")
    assert hand.running == ["x"]


def test_l1_a_lane_can_be_made_at_run_time() -> None:
    hand = ByHand()
    hand.set_lane("night", 1)
    hand.submit("x", lane="night")
    hand.submit("y", lane="night")
    assert hand.running == ["x"]
    assert hand.kernel.stage.floor.fallbacks == 0


def test_l1_heartbeats_and_firings_use_cron_and_a_width_of_1_makes_it_serial() -> None:
    hand = ByHand(lanes={"cron": 1})
    hand.submit("f", source="firing")
    hand.submit("h", source="heartbeat")
    assert hand.running == ["f"]
    hand.end("f")
    assert hand.running == ["h"]


def test_l1_a_width_of_0_pauses_a_lane_and_nothing_is_lost() -> None:
    hand = ByHand()
    hand.submit("running")
    hand.set_lane("main", 0)
    hand.submit("x")
    assert hand.running == ["running"]
    assert hand.why("x").rule is Rule.LANE_PAUSED
    hand.end("running")
    assert hand.running == []
    hand.set_lane("main", 1)
    assert hand.running == ["x"]


def test_l2_resizing_up_starts_waiting_runs_at_once() -> None:
    hand = ByHand(lanes={"main": 2})
    names = submit_many(hand, 6)
    hand.set_lane("main", 5)
    assert hand.running == names[:5]


def test_l2_resizing_down_lets_running_ones_finish_and_starts_none_above_the_new_width() -> None:
    hand = ByHand(lanes={"main": 4})
    submit_many(hand, 8)
    hand.set_lane("main", 2)
    assert len(hand.running) == 4
    assert hand.cuts == []
    for left in (3, 2, 2, 2):
        hand.end_oldest()
        assert len(hand.running) == left


def test_l2_resizing_one_lane_leaves_the_others_alone() -> None:
    hand = ByHand(lanes={"main": 1, "team": 1})
    submit_many(hand, 2, lane="main")
    submit_many(hand, 2, lane="team")
    hand.set_lane("main", 2)
    assert len(hand.running) == 3


def test_l3_a_lane_belongs_to_the_run_not_to_the_sessions_first_run() -> None:
    hand = ByHand(lanes={"main": 1, "night": 1})
    hand.submit("busy", lane="night")
    hand.submit("x", session="s")
    hand.submit("y", session="s", lane="night")
    hand.submit("z", session="s", lane="main")
    hand.end("x")
    assert hand.running == ["busy"], "y waits for its own lane, not for x's"
    assert hand.why("y").lane == "night"
    hand.end("busy")
    assert hand.running == ["y"]
    hand.end("y")
    assert hand.running == ["z"]


def test_l3_s1_a_start_lets_the_next_of_its_session_go_in_another_lane() -> None:
    hand = ByHand(lanes={"main": 0})
    hand.submit("x", session="s", max_concurrent=2)
    hand.submit("y", session="s", max_concurrent=2, lane="team")
    assert hand.running == []
    hand.set_lane("main", 1)
    assert hand.running == ["x", "y"]


def test_l5_clearing_a_lane_ends_what_waits_and_leaves_what_runs() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("running")
    hand.submit("x")
    hand.submit("behind", session="s")
    hand.submit("behind it", session="s")
    hand.submit("later", due="1h")
    hand.submit("other", lane="team")
    hand.submit("other's next", lane="main", session="t")
    assert hand.clear_lane("main") == 5
    assert {
        name: hand.ending(name) for name in ("x", "behind", "behind it", "later")
    } == dict.fromkeys(("x", "behind", "behind it", "later"), CLEARED)
    assert hand.running == ["running", "other"]
    assert hand.cuts == []
    hand.end("running")
    assert hand.outcomes["running"].ok
    hand.wait(2 * HOUR)
    assert hand.started == ["running", "other"]


def test_l5_clearing_a_lane_lets_runs_behind_in_other_lanes_go() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("running")
    hand.submit("x", session="s")
    hand.submit("y", session="s", lane="team")
    assert hand.clear_lane("main") == 1
    assert hand.running == ["running", "y"]


def test_l5_a_draining_node_refuses_new_work_and_lets_running_work_finish() -> None:
    hand = ByHand()
    hand.submit("running")
    hand.drain(keep_waiting=True)
    refused = hand.submit("new")
    assert refused is not None
    assert hand.ending("new") == DRAINING
    assert hand.cuts == []
    hand.end("running")
    assert hand.outcomes["running"].ok


@pytest.mark.parametrize("keep_waiting", [True, False])
def test_l5_waiting_work_is_kept_for_the_next_start_or_ends(keep_waiting: bool) -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("running", session="s")
    hand.submit("waits")
    hand.submit("behind", session="s")
    hand.submit("later", due="1s")
    hand.drain(keep_waiting=keep_waiting)
    hand.end("running")
    hand.wait(HOUR)
    assert hand.started == ["running"]
    expected = None if keep_waiting else DRAINING
    assert [hand.ending(name) for name in ("waits", "behind", "later")] == [expected] * 3
    if keep_waiting:
        assert hand.why("waits").rule is Rule.DRAINING
        hand.reset()
        while hand.tickets:
            hand.end_oldest()
        assert set(hand.started) == {"running", "waits", "behind", "later"}


def test_l5_after_the_grace_attempts_are_cut_and_tried_again_only_if_attempts_allow() -> None:
    hand = ByHand()
    hand.submit("message")
    hand.submit("task", source="task")
    hand.drain(keep_waiting=True)
    hand.cut_all()
    assert hand.cuts == [("message", Cut.DRAINED), ("task", Cut.DRAINED)]
    hand.fail("message")
    hand.fail("task")
    assert hand.ending("task") == DRAINING
    assert hand.state("message") is State.QUEUED
    hand.reset()
    assert hand.running == ["message"]
    assert hand.attempts["message"] == 2


@pytest.mark.parametrize("way", ["retry", "preempted", "limited", "drained"])
def test_l5_r2_what_would_wait_again_in_a_memory_that_ends_gets_its_outcome(way: str) -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("x", priority=10, preemptible=True, retries=5)
    if way == "preempted":
        hand.submit("user")
        assert hand.cuts == [("x", Cut.PREEMPTED)]
    hand.drain(keep_waiting=False)
    if way == "drained":
        hand.cut_all()
    if way == "limited":
        hand.limit("x", SECOND)
    else:
        hand.fail("x")
    hand.wait(HOUR)
    assert hand.ending("x") is not None
    assert hand.kernel.stage.runs == {}


def test_l5_sub_runs_of_what_runs_go_on_within_the_grace() -> None:
    hand = ByHand()
    hand.submit("parent")
    hand.drain(keep_waiting=False)
    assert hand.submit("child", parent="parent") is None
    assert hand.running == ["parent", "child"]


def test_l5_after_the_grace_nothing_starts_any_more() -> None:
    hand = ByHand(lanes={"subagent": 1})
    hand.submit("parent")
    hand.submit("one", parent="parent")
    hand.submit("two", parent="parent")
    hand.drain(keep_waiting=False)
    hand.cut_all()
    for name in ("parent", "one"):
        hand.fail(name)
    assert hand.running == []
    assert hand.ending("two") is not None
    assert hand.kernel.stage.runs == {}


def test_l6_after_a_restart_a_late_completion_touches_no_counter_and_no_slot() -> None:
    hand = ByHand(lanes={"main": 2})
    hand.submit("old")
    hand.submit("older")
    ticket = hand.tickets["old"]
    hand.drain(keep_waiting=True)
    hand.reset()
    assert sorted(hand.running) == ["old", "older"], "messages have a second attempt"
    lane = next(view for view in lane_views(hand.kernel) if view.name == "main")
    assert (lane.running, lane.waiting) == (2, 0)
    assert hand.kernel.finished(ticket, _boom(), hand.now) is False
    assert [action for action in hand.read() if isinstance(action, NoteLate)] == [NoteLate(ticket)]
    after = next(view for view in lane_views(hand.kernel) if view.name == "main")
    assert after == lane
    hand.submit("third")
    assert len(hand.running) == 2


def test_l6_a_restart_gives_every_slot_back_and_keeps_the_order() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("one", session="s")
    hand.submit("two", session="s")
    hand.submit("three", session="s")
    hand.drain(keep_waiting=True)
    hand.reset()
    while hand.tickets:
        hand.end_oldest()
    assert hand.started == ["one", "one", "two", "three"]


def test_l6_a_run_without_attempts_left_is_cancelled_by_the_restart() -> None:
    hand = ByHand()
    hand.submit("task", source="task")
    hand.drain(keep_waiting=True)
    hand.reset()
    assert hand.ending("task") == DRAINING


def test_l7_a_run_that_waited_over_two_seconds_says_how_long_and_behind_how_many() -> None:
    hand = ByHand(lanes={"main": 1})
    for name in ("a", "b", "c"):
        hand.submit(name)
    hand.wait(2 * SECOND)
    hand.end("a")
    assert hand.waits_noted == [], "two seconds are not over two seconds"
    hand.wait(1)
    hand.end("b")
    assert hand.waits_noted == [("c", 2 * SECOND + 1, 1)]


def test_l7_only_those_that_started_while_it_waited_were_ahead() -> None:
    hand = ByHand(lanes={"main": 1})
    for number in range(10):
        hand.submit(f"before{number}")
        hand.end(f"before{number}")
    hand.submit("busy")
    hand.submit("x", priority=5)
    hand.submit("passes it", priority=0)
    hand.submit("elsewhere", lane="team")
    hand.wait(3 * SECOND)
    hand.end("busy")
    hand.end("passes it")
    assert ("x", 3 * SECOND, 1) in hand.waits_noted


def test_l7_the_time_is_a_setting() -> None:
    settings = msgspec.structs.replace(
        Settings(), wait_notice=100 * MILLISECOND, lanes={"main": LaneSettings(1)}
    )
    hand = ByHand(settings)
    hand.submit("a")
    hand.submit("b")
    hand.wait(101 * MILLISECOND)
    hand.end("a")
    assert hand.waits_noted == [("b", 101 * MILLISECOND, 0)]


def test_l7_time_in_which_it_ran_is_not_waiting() -> None:
    hand = ByHand(lanes={"main": 1}, agents={"bg": AgentSettings(preemptible=True)})
    hand.submit("b", "bg", priority=10)
    hand.wait(HOUR)
    hand.submit("user")
    hand.fail("b")
    hand.wait(SECOND)
    hand.end("user")
    assert hand.running == ["b"]
    assert hand.waits_noted == []


def test_lane_views_count_what_runs_and_what_waits() -> None:
    hand = ByHand(lanes={"main": LaneSettings(2, reserve=1)})
    submit_many(hand, 4)
    submit_many(hand, 1, lane="team")
    hand.submit("later", due="1h")
    views = {str(view.name): view for view in lane_views(hand.kernel)}
    main, team = views["main"], views["team"]
    assert (main.width, main.reserve, main.running, main.waiting, main.started) == (2, 1, 2, 3, 2)
    assert (team.running, team.waiting) == (1, 0)


def _boom() -> Failed:
    return Failed("too late")
