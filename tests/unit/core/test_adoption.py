"""A worker that outlived its node goes on with its attempt; a dead one is tried again after a pause (W-2, W-3)."""

import msgspec
import pytest

from headway.core.actions import CancelAttempt, Died, Finish, NoteExhausted, Start
from headway.model.places import Cancel, Holding, Order, Place, Standing, Stop
from headway.model.run import AgentName, Run, RunId
from headway.model.settings import AgentSettings, LaneSettings
from headway.model.time import MINUTE, SECOND
from headway.model.words import Cut, Reason, Rule, State
from tests.unit.core.by_hand import CHAT, NOON, ByHand, asked

BEGAN = NOON - 20 * SECOND
HOST = "machine"


def worker(run: Run, seq: int = 1, attempt: int = 1, **more: object) -> Place:
    """A run whose worker was found."""
    place = Place(run, seq, attempt, orphaned=True, started_at=BEGAN, host=HOST, adopted=True)
    return msgspec.structs.replace(place, **more)


def gone(run: Run, seq: int = 1, attempt: int = 1, began_at: int = BEGAN) -> Place:
    """A run whose worker was not."""
    return Place(run, seq, attempt, orphaned=True, started_at=began_at, host=HOST)


def take_over(hand: ByHand, *places: Place, orders: tuple[Order, ...] = ()) -> None:
    last = max([place.seq for place in places] + [order.seq for order in orders])
    hand.kernel.restore(Holding(CHAT, 7, last, None, places, orders), hand.now)
    hand.read()


def starts(hand: ByHand) -> list[Start]:
    return [action for action in hand.actions if isinstance(action, Start)]


def exhausted(hand: ByHand) -> list[tuple[RunId, int]]:
    return [(a.run.id, a.attempt) for a in hand.actions if isinstance(a, NoteExhausted)]


def test_w2_an_adopted_run_goes_on_as_the_same_attempt() -> None:
    """R-4, X-4: under the new epoch and a new ticket, from its true start on; nothing of it is tried again."""
    hand = ByHand()
    run = asked("cut", max_attempts=1)
    take_over(hand, worker(run), Place(asked("next"), 2))
    (start,) = starts(hand)
    assert (start.attempt, start.at, start.epoch, start.ticket) == (1, BEGAN, 7, 1)
    assert (start.adopts, start.outlives) == (True, True)
    assert (hand.running, hand.state("cut")) == (["cut"], State.RUNNING)
    hand.wait(5 * SECOND)
    assert hand.end("cut")
    finish = next(action for action in hand.actions if isinstance(action, Finish))
    assert (finish.outcome.state, finish.attempt) == (State.DONE, 1)
    assert (finish.started_at, finish.at) == (BEGAN, NOON + 5 * SECOND)
    assert hand.running == ["next"]
    next_start = starts(hand)[-1]
    assert (next_start.adopts, next_start.outlives) == (False, False)


def test_w2_it_takes_a_slot_although_there_is_none() -> None:
    """Its lane starts nothing more before it is within its width again."""
    hand = ByHand(lanes={"main": 1})
    hand.submit("here", session="other")
    take_over(hand, worker(asked("cut")))
    assert sorted(hand.running) == ["cut", "here"]
    hand.submit("waits", session="third")
    hand.end("here")
    assert hand.running == ["cut"]
    hand.end("cut")
    assert hand.running == ["waits"]


def test_w2_it_counts_as_a_task_and_as_background_work() -> None:
    hand = ByHand(lanes={"main": LaneSettings(2, reserve=1)})
    hand.set_limits(max_inflight=1)
    take_over(hand, worker(asked("cut", source="task", priority=20)))
    hand.submit("task", source="task", session="t")
    hand.submit("background", priority=20, session="b")
    assert hand.running == ["cut"]
    assert hand.why("task").rule is Rule.INFLIGHT_LIMIT
    assert hand.why("background").rule is Rule.LANE_RESERVED
    hand.end("cut")
    assert sorted(hand.running) == ["background", "task"]


def test_w2_all_workers_of_a_wide_session_go_on_in_slots_of_their_own() -> None:
    hand = ByHand()
    wide = {"max_concurrent": 2}
    take_over(hand, worker(asked("x", **wide)), worker(asked("y", **wide), 2))
    assert [start.slot for start in starts(hand)] == [0, 1]


@pytest.mark.parametrize("retries", [0, 1])
def test_r3_its_timeout_counts_from_its_true_start(retries: int) -> None:
    hand = ByHand()
    take_over(hand, worker(asked("cut", timeout="30s", retries=retries)))
    hand.wait(10 * SECOND - 1)
    assert hand.cuts == []
    hand.wait(1)
    assert hand.cuts == [("cut", Cut.OVERRAN if retries else Cut.TIMED_OUT)]


def test_f5_a_deadline_that_passed_meanwhile_cuts_it_at_once() -> None:
    """S-3: its session is busy until it has really ended."""
    hand = ByHand()
    late = asked("late", at=NOON - 2 * MINUTE, deadline="1m")
    take_over(hand, worker(late), Place(asked("next"), 2))
    assert (hand.cuts, hand.running) == ([("late", Cut.DEADLINE)], ["late"])
    hand.end("late")
    assert hand.ending("late") == (State.FAILED, Reason.DEADLINE_RUNNING)
    assert hand.running == ["next"]


def test_x3_what_was_being_stopped_is_stopped_again() -> None:
    """S-3: not ended behind the back of a worker that still works."""
    hand = ByHand()
    take_over(hand, worker(asked("cut"), cut=Cut.STOPPED), Place(asked("next"), 2))
    assert (hand.cuts, hand.running) == ([("cut", Cut.STOPPED)], ["cut"])
    hand.end("cut")
    assert hand.ending("cut") == (State.CANCELLED, Reason.STOPPED)
    assert hand.running == ["next"]


@pytest.mark.parametrize("command", [Stop(), Cancel(RunId("cut"))])
def test_x3_an_order_that_came_meanwhile_reaches_it(command: Stop | Cancel) -> None:
    hand = ByHand()
    take_over(hand, worker(asked("cut")), orders=(Order("o", CHAT, command, 2),))
    assert hand.cuts == [("cut", Cut.STOPPED)]


def test_s5_messages_that_came_meanwhile_find_it_running() -> None:
    hand = ByHand()
    take_over(
        hand,
        worker(asked("cut")),
        Place(asked("rejected", mode="reject"), 2),
        Place(asked("interrupts", mode="interrupt"), 3),
    )
    assert hand.ending("rejected") == (State.REJECTED, Reason.REJECTED_BUSY)
    assert hand.cuts == [("cut", Cut.SUPERSEDED)]
    assert hand.running == ["cut"]


@pytest.mark.parametrize("standing", [None, Standing(2, 1)])
def test_f4_a_heartbeat_that_goes_on_yields_to_a_message_that_waits(
    standing: Standing | None,
) -> None:
    """Whether that came meanwhile, or stood in line before its node died."""
    hand = ByHand()
    heartbeat = asked("heartbeat", source="heartbeat", max_attempts=1)
    take_over(hand, worker(heartbeat), Place(asked("message"), 2, standing=standing))
    assert (hand.running, hand.cuts) == (["heartbeat"], [("heartbeat", Cut.PREEMPTED)])
    hand.end("heartbeat")
    assert hand.running == ["message"]
    hand.end("message")
    assert (hand.running, hand.attempts["heartbeat"]) == (["heartbeat"], 1)


def test_w2_one_that_had_waited_for_a_retry_is_not_held_again() -> None:
    hand = ByHand()
    standing = Standing(1, held=Rule.RETRY, until=NOON + MINUTE, begun=True, retries=1)
    take_over(hand, worker(asked("cut", retries=2), attempt=2, standing=standing))
    assert (hand.running, hand.attempts["cut"]) == (["cut"], 2)


def test_s11_hooks_were_called_when_it_began() -> None:
    hand = ByHand()
    hand.kernel.set_gated(True)
    take_over(hand, worker(asked("cut")))
    assert hand.state("cut") is State.RUNNING


def test_d3_a_node_that_may_not_act_ends_it() -> None:
    hand = ByHand()
    hand.kernel.suspend(hand.now)
    take_over(hand, worker(asked("cut", max_attempts=2)))
    assert hand.cuts == [("cut", Cut.LOST)]
    hand.end("cut")
    hand.kernel.resume(hand.now)
    hand.read()
    assert (hand.running, hand.attempts["cut"]) == (["cut"], 2)
    assert not starts(hand)[-1].adopts


def test_l5_a_drain_whose_grace_is_over_ends_it() -> None:
    hand = ByHand()
    hand.drain(keep_waiting=True)
    hand.cut_all()
    take_over(hand, worker(asked("cut")))
    assert hand.cuts == [("cut", Cut.DRAINED)]


def test_d7_a_worker_that_was_found_and_dies_is_a_dead_worker() -> None:
    hand = ByHand()
    take_over(hand, worker(asked("twice", max_attempts=2)))
    hand.end("twice", Died("gone"))
    assert (hand.running, hand.attempts["twice"]) == (["twice"], 2)
    hand.end("twice", Died("gone again", "worker_lost", {"pid": 1}))
    outcome = hand.outcomes["twice"]
    assert (outcome.state, outcome.reason) == (State.FAILED, Reason.ORPHANED)
    assert (outcome.error, outcome.code, outcome.details) == (
        "gone again",
        "worker_lost",
        {"pid": 1},
    )


def test_d7_a_worker_that_is_not_found_is_tried_again_or_given_up() -> None:
    hand = ByHand()
    take_over(hand, gone(asked("once", max_attempts=1)), gone(asked("twice", max_attempts=2), 2))
    assert hand.ending("once") == (State.FAILED, Reason.ORPHANED)
    assert (hand.running, hand.attempts["twice"]) == (["twice"], 2)
    assert exhausted(hand) == []


def test_w3_a_dead_workers_session_is_resumed_after_a_pause() -> None:
    """Counted from the start of the attempt that died."""
    hand = ByHand(agents={"a": AgentSettings(resume_after=MINUTE)})
    take_over(hand, gone(asked("cut", max_attempts=3)), Place(asked("next"), 2))
    assert (hand.started, hand.state("cut")) == ([], State.PENDING)
    assert hand.why("cut").rule is Rule.RETRY
    hand.wait(40 * SECOND - 1)
    assert hand.started == []
    hand.wait(1)
    assert (hand.running, hand.attempts["cut"]) == (["cut"], 2)
    hand.wait(10 * SECOND)
    hand.end("cut", Died("gone"))
    assert hand.running == []
    hand.wait(50 * SECOND)
    assert (hand.running, hand.attempts["cut"]) == (["cut"], 3)


def test_w3_after_a_longer_life_it_is_resumed_at_once() -> None:
    hand = ByHand(agents={"a": AgentSettings(resume_after=MINUTE)})
    take_over(hand, gone(asked("cut", max_attempts=2), began_at=NOON - MINUTE))
    assert (hand.running, hand.attempts["cut"]) == (["cut"], 2)


@pytest.mark.parametrize("ordered", [False, True])
def test_w3_one_event_says_that_it_is_given_up(ordered: bool) -> None:
    hand = ByHand(agents={"a": AgentSettings(resume_after=MINUTE)})
    orders = (Order("o", CHAT, Cancel(RunId("nobody")), 2),) if ordered else ()
    take_over(hand, gone(asked("cut", max_attempts=3), attempt=3), orders=orders)
    assert hand.ending("cut") == (State.FAILED, Reason.ORPHANED)
    assert exhausted(hand) == [(RunId("cut"), 3)]


def test_w3_a_worker_that_dies_here_once_too_often_is_given_up_with_one_event() -> None:
    hand = ByHand(agents={"a": AgentSettings(resume_after=MINUTE)})
    hand.submit("cut", session=CHAT, max_attempts=1)
    hand.end("cut", Died("gone"))
    assert exhausted(hand) == [(RunId("cut"), 1)]


def test_w3_an_adopted_one_is_not_given_up() -> None:
    hand = ByHand(agents={"a": AgentSettings(resume_after=MINUTE)})
    take_over(hand, worker(asked("cut", max_attempts=1)))
    assert (hand.running, exhausted(hand)) == (["cut"], [])


def test_w2_a_start_says_whether_its_work_outlives_the_process() -> None:
    hand = ByHand()
    hand.kernel.set_outliving(AgentName("a"), True)
    hand.submit("x", agent="a")
    hand.submit("y", agent="b")
    hand.kernel.set_outliving(AgentName("a"), False)
    hand.submit("z", agent="a")
    assert [(start.run.id, start.outlives) for start in starts(hand)] == [
        ("x", True),
        ("y", False),
        ("z", False),
    ]


def test_d4_what_is_lost_is_cancelled_as_lost() -> None:
    hand = ByHand()
    take_over(hand, worker(asked("cut")))
    hand.kernel.restore(Holding(CHAT, 8, 1, None, (worker(asked("cut")),)), hand.now)
    hand.read()
    cancels = [action for action in hand.actions if isinstance(action, CancelAttempt)]
    assert [(cancel.cut, cancel.epoch) for cancel in cancels] == [(Cut.LOST, 7)]
    assert [(start.epoch, start.attempt) for start in starts(hand)] == [(7, 1), (8, 1)]
