"""A parent that waits lends its slot: no run ever waits for its own parent's slot (L-4)."""

import pytest

from headway.core.why import lane_views
from headway.model.errors import WouldDeadlock
from headway.model.run import LaneName
from headway.model.settings import LaneSettings, Limits
from headway.model.time import SECOND
from headway.model.words import Reason, Rule, State
from tests.unit.core.by_hand import ByHand


def delegate(hand: ByHand, parent: str, child: str, **options: object) -> None:
    """The parent starts a sub-run and waits for it."""
    assert hand.submit(child, "b", parent=parent, **{"lane": "main", **options}) is None
    hand.awaits(parent, child)


def in_use(hand: ByHand, lane: str = "main") -> int:
    """Slots of a lane that are taken; a lent one counts once."""
    return hand.kernel.stage.floor.lanes[LaneName(lane)].in_use


def test_l4_at_width_1_a_sub_run_goes_on_its_parents_slot() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    delegate(hand, "parent", "child")
    assert hand.running == ["parent", "child"]
    hand.end("child")
    hand.end("parent")
    assert hand.outcomes["parent"].ok
    assert in_use(hand) == 0


def test_l4_a_parent_that_does_not_wait_lends_nothing() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    hand.submit("child", parent="parent", lane="main")
    assert hand.running == ["parent"]
    assert hand.why("child").rule is Rule.LANE_FULL
    hand.awaits("parent", "child")
    assert hand.running == ["parent", "child"]


def test_l4_any_depth_at_width_1() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("r0")
    for depth in range(30):
        delegate(hand, f"r{depth}", f"r{depth + 1}")
    assert len(hand.running) == 31
    assert in_use(hand) == 1
    for depth in reversed(range(31)):
        hand.end(f"r{depth}")
    assert in_use(hand) == 0
    hand.submit("next")
    assert hand.running == ["next"]


def test_l4_the_slot_is_lent_to_one_child_at_a_time() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    for child in ("one", "two", "three"):
        delegate(hand, "parent", child)
    assert hand.running == ["parent", "one"]
    hand.end("one")
    assert hand.running == ["parent", "two"]
    hand.end("two")
    assert hand.running == ["parent", "three"]


def test_l4_l2_strangers_get_nothing_of_it_and_the_width_holds() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    hand.submit("stranger")
    delegate(hand, "parent", "child")
    assert hand.running == ["parent", "child"]
    assert in_use(hand) == 1
    hand.end("child")
    assert hand.running == ["parent"], "the slot is the parent's again"
    hand.end("parent")
    assert hand.running == ["stranger"]


def test_l4_free_slots_of_the_lane_are_used_before_the_parents() -> None:
    hand = ByHand(lanes={"main": 2})
    hand.submit("parent")
    delegate(hand, "parent", "child")
    assert in_use(hand) == 2


def test_l4_through_another_lane() -> None:
    """main 1 → team 1 → main: the grandchild goes on its grandparent's slot."""
    hand = ByHand(lanes={"main": 1, "team": 1})
    hand.submit("grandparent")
    delegate(hand, "grandparent", "parent", lane="team")
    delegate(hand, "parent", "child")
    delegate(hand, "child", "grandchild", lane="team")
    assert hand.running == ["grandparent", "parent", "child", "grandchild"]
    assert (in_use(hand, "main"), in_use(hand, "team")) == (1, 1)


def test_l4_slots_never_cross_lanes() -> None:
    hand = ByHand(lanes={"main": 1, "team": 1})
    hand.submit("busy", lane="team")
    hand.submit("parent")
    delegate(hand, "parent", "child", lane="team")
    assert hand.running == ["busy", "parent"]
    hand.end("busy")
    assert hand.running == ["parent", "child"]


def test_l4_x5_a_reserved_slot_is_not_borrowed_by_background_work() -> None:
    """The parent's own slot may carry one of them; the lane's reserve carries none."""
    hand = ByHand(lanes={"main": LaneSettings(2, reserve=1)})
    hand.submit("parent", priority=10)
    delegate(hand, "parent", "one", priority=10)
    delegate(hand, "parent", "two", priority=10)
    assert hand.running == ["parent", "one"]
    assert hand.why("two").rule is Rule.LANE_RESERVED
    hand.submit("user")
    assert hand.running == ["parent", "one", "user"]


def test_l4_a_paused_lane_still_finishes_what_runs_in_it() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    hand.set_lane("main", 0)
    delegate(hand, "parent", "child")
    assert hand.running == ["parent", "child"]


def test_l4_f1_a_tasks_sub_runs_do_not_wait_for_the_quota_that_it_holds() -> None:
    hand = ByHand(limits=Limits(max_inflight=1, max_inflight_per_agent=1))
    hand.submit("parent", source="task")
    hand.submit("child", parent="parent")
    hand.awaits("parent", "child")
    assert hand.running == ["parent", "child"]
    hand.end("child")
    hand.end("parent")
    hand.submit("next", source="task")
    hand.submit("too many", source="task")
    assert hand.running == ["next"]


def test_l4_a_sub_run_in_its_parents_own_session_is_refused_at_once() -> None:
    """It could only start once the parent has ended: waiting for it would never end."""
    hand = ByHand()
    hand.submit("parent", session="s")
    hand.submit("child", parent="parent", session="s")
    with pytest.raises(WouldDeadlock) as refused:
        hand.awaits("parent", "child")
    assert (refused.value.run_id, refused.value.session) == ("child", "s")


def test_l4_also_in_the_session_of_a_parent_further_up() -> None:
    hand = ByHand()
    hand.submit("grandparent", session="s")
    delegate(hand, "grandparent", "parent", session="t")
    hand.submit("child", parent="parent", session="s")
    with pytest.raises(WouldDeadlock):
        hand.awaits("parent", "child")


def test_l4_a_sub_run_in_its_parents_session_may_go_if_nobody_waits_for_it() -> None:
    hand = ByHand()
    hand.submit("parent", session="s")
    hand.submit("child", parent="parent", session="s")
    hand.end("parent")
    assert hand.running == ["child"]


def test_l4_a_parent_that_ends_first_leaves_its_slot_to_the_borrower() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    delegate(hand, "parent", "child")
    hand.submit("stranger")
    hand.end("parent")
    assert hand.running == ["child"]
    assert in_use(hand) == 1
    hand.end("child")
    assert hand.running == ["stranger"]


def test_l4_a_middle_one_that_ends_first_passes_the_slot_on() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("top")
    delegate(hand, "top", "middle")
    delegate(hand, "middle", "bottom")
    hand.submit("stranger")
    hand.end("middle")
    assert hand.running == ["top", "bottom"]
    hand.end("bottom")
    assert in_use(hand) == 1
    hand.end("top")
    assert hand.running == ["stranger"]


def test_l4_a_failed_child_that_is_tried_again_borrows_again() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    delegate(hand, "parent", "child", retries=1)
    hand.fail("child")
    assert hand.running == ["parent"]
    hand.wait(3 * SECOND)
    assert hand.running == ["parent", "child"]
    assert hand.attempts["child"] == 2


def test_l4_x3_stopping_the_parent_ends_the_whole_tree_and_frees_everything() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent", session="s")
    delegate(hand, "parent", "child")
    delegate(hand, "child", "grandchild")
    delegate(hand, "parent", "waiting child")
    stopped = hand.stop("s")
    assert (stopped.running, stopped.waiting) == (3, 1)
    for name in ("grandchild", "child", "parent"):
        hand.fail(name)
    assert {hand.ending(name) for name in hand.outcomes} == {(State.CANCELLED, Reason.STOPPED)}
    assert in_use(hand) == 0
    assert hand.kernel.stage.sessions == {}


def test_l4_the_width_of_the_session_still_binds_children() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    delegate(hand, "parent", "one", session="t")
    delegate(hand, "parent", "two", session="t")
    assert hand.running == ["parent", "one"]
    hand.end("one")
    assert hand.running == ["parent", "two"]


def test_l4_l2_a_parent_that_stops_waiting_works_on_and_nothing_starts_before_there_is_room() -> (
    None
):
    """It cannot be made to wait again, nor the sub-run to end: the lane makes up for it afterwards."""
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    delegate(hand, "parent", "child")
    hand.submit("stranger")
    hand.resumes("parent", "child")
    assert hand.running == ["parent", "child"]
    hand.end("parent")
    assert hand.running == ["child"]
    hand.end("child")
    assert hand.running == ["stranger"]
    assert in_use(hand) == 1


def test_l4_views_count_a_lent_slot_once_it_is_used_twice() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    delegate(hand, "parent", "child")
    main = next(view for view in lane_views(hand.kernel) if view.name == "main")
    assert (main.width, main.running) == (1, 2)
