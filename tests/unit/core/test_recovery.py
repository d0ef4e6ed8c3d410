"""A session that changes hands is put together again from what the store knows (D-7, N-12)."""

import msgspec

from headway.core.actions import CancelAttempt, Done, Enqueue, Finish, Release, Start
from headway.core.request import Composer
from headway.model.outcome import Reply
from headway.model.places import Holding, Place, Standing
from headway.model.run import AgentName, QueueOptions, Route, RunId, SessionKey, SessionMemory
from headway.model.settings import AgentSettings
from headway.model.time import MINUTE, SECOND
from headway.model.words import Cut, Mode, Reason, Rule, State
from tests.unit.core.by_hand import CHAT, NOON, ByHand, asked


def holding(
    *places: Place, epoch: int = 7, memory: SessionMemory | None = None, seen: int | None = None
) -> Holding:
    last = max((place.seq for place in places), default=0) if seen is None else seen
    return Holding(CHAT, epoch, last, memory, places)


def take_over(hand: ByHand, *places: Place, memory: SessionMemory | None = None) -> None:
    hand.kernel.restore(holding(*places, memory=memory), hand.now)
    hand.read()


def paused() -> ByHand:
    """Nothing starts here, so that the line can be read."""
    return ByHand(lanes={"main": 0, "cron": 0, "subagent": 0})


def line(hand: ByHand) -> list[str]:
    return [live.run.id for live in hand.kernel.stage.sessions[CHAT].waiting]


def test_n12_what_only_came_in_is_taken_in_by_its_number() -> None:
    hand = paused()
    take_over(hand, Place(asked("x"), 1), Place(asked("y"), 2), Place(asked("z"), 5))
    assert line(hand) == ["x", "y", "z"]
    session = hand.kernel.stage.sessions[CHAT]
    assert (session.epoch, session.seen) == (7, 5)


def test_d7_a_started_run_whose_node_died_is_tried_again_at_its_place() -> None:
    hand = ByHand()
    take_over(
        hand,
        Place(asked("cut", max_attempts=2), 1, 1, orphaned=True, started_at=NOON - SECOND),
        Place(asked("next"), 2),
    )
    assert (hand.started, hand.attempts["cut"]) == (["cut"], 2)
    hand.end("cut")
    assert hand.started == ["cut", "next"]


def test_d7_without_another_attempt_it_fails_visibly() -> None:
    hand = ByHand()
    take_over(
        hand,
        Place(asked("cut", max_attempts=1), 1, 1, orphaned=True, started_at=NOON - SECOND),
        Place(asked("next"), 2),
    )
    outcome = hand.outcomes["cut"]
    assert (outcome.state, outcome.reason) == (State.FAILED, Reason.ORPHANED)
    assert outcome.error == "its node died while it ran"
    finish = next(action for action in hand.actions if isinstance(action, Finish))
    assert (finish.attempt, finish.epoch, finish.started_at) == (1, 7, NOON - SECOND)
    assert hand.running == ["next"]


def test_d7_a_cancelled_attempt_whose_node_died_does_not_run_again() -> None:
    hand = ByHand()
    run = asked("cut", max_attempts=5)
    take_over(hand, Place(run, 1, 1, orphaned=True, cut=Cut.STOPPED))
    assert (hand.ending("cut"), hand.started) == ((State.CANCELLED, Reason.STOPPED), [])


def test_f5_what_is_past_its_deadline_never_starts() -> None:
    hand = ByHand()
    run = asked("late", at=NOON - 2 * MINUTE, deadline="1m")
    take_over(hand, Place(run, 1), Place(asked("next"), 2))
    assert hand.ending("late") == (State.FAILED, Reason.DEADLINE_QUEUED)
    assert hand.started == ["next"]


def test_n12_runs_decided_behind_the_same_number_keep_their_turns() -> None:
    hand = paused()
    take_over(
        hand,
        Place(asked("first", due="1s"), 1, standing=Standing(3, turn=4)),
        Place(asked("second", due="1s"), 2, standing=Standing(3, turn=3)),
        Place(asked("plain"), 3),
        Place(asked("interrupt"), 4, standing=Standing(-1, turn=5, interrupts=True)),
    )
    assert line(hand) == ["interrupt", "plain", "second", "first"]
    assert hand.kernel.stage.sessions[CHAT].turns == 5


def test_c9_a_retry_keeps_its_time_its_count_and_its_session() -> None:
    hand = ByHand()
    standing = Standing(
        1, held=Rule.RETRY, until=NOON + 3 * SECOND, begun=True, retries=2, limited=1
    )
    take_over(
        hand,
        Place(asked("again", retries=3), 1, 2, standing, started_at=NOON - SECOND),
        Place(asked("next"), 2),
    )
    assert hand.started == []
    live = hand.kernel.stage.runs[RunId("again")]
    assert (live.retries, live.limited, live.state) == (2, 1, State.PENDING)
    hand.wait(3 * SECOND)
    assert hand.started == ["again"]
    hand.fail("again")
    hand.wait(MINUTE)
    assert hand.attempts["again"] == 4
    hand.fail("again")
    assert hand.ending("again") == (State.FAILED, Reason.ERROR)


def test_s1_a_run_due_later_takes_its_place_when_it_is_due() -> None:
    hand = paused()
    due = asked("due", at=NOON, due="5s")
    standing = Standing(1, turn=1, held=Rule.NOT_DUE, until=NOON + 5 * SECOND)
    take_over(hand, Place(due, 1, standing=standing), Place(asked("now"), 2))
    assert line(hand) == ["now"]
    hand.wait(5 * SECOND)
    assert line(hand) == ["now", "due"]


def test_s1_what_came_due_while_nobody_was_there_stands_before_what_came_after() -> None:
    hand = paused()
    due = asked("due", at=NOON - MINUTE, due="5s")
    standing = Standing(1, turn=1, held=Rule.NOT_DUE, until=NOON - 55 * SECOND)
    take_over(
        hand,
        Place(asked("before", at=NOON - 58 * SECOND), 2),
        Place(due, 1, standing=standing),
        Place(asked("after", at=NOON - SECOND), 3),
    )
    assert line(hand) == ["before", "due", "after"]


def test_s7_an_open_window_closes_when_it_would_have() -> None:
    hand = ByHand()
    options = {"route": Route("web"), "debounce": "2s"}
    latest_at = NOON + 9 * SECOND
    first = Standing(1, turn=1, held=Rule.DEBOUNCE, until=NOON + SECOND, latest_at=latest_at)
    second = msgspec.structs.replace(first, after=2, turn=2, until=NOON + 2 * SECOND)
    take_over(
        hand,
        Place(asked("x", **options), 1, standing=first),
        Place(asked("y", **options), 2, standing=second),
    )
    hand.wait(SECOND)
    assert hand.started == []
    hand.submit("z", session=CHAT, route=Route("web"), debounce="2s")
    buffers = hand.kernel.stage.sessions[CHAT].buffers or {}
    assert [buffer.latest_at for buffer in buffers.values()] == [latest_at]
    hand.wait(2 * SECOND)
    assert hand.started == ["xm"]
    assert hand.kernel.stage.runs[RunId("xm")].run.merged_from == ("x", "y", "z")


def test_collect_keeps_its_quiet_window_and_merges_alike() -> None:
    hand = ByHand()
    memory = SessionMemory(options=QueueOptions(mode=Mode.COLLECT))
    quiet = Standing(3, turn=2, quiet_until=NOON + 2 * SECOND, collect=True)
    take_over(
        hand,
        Place(asked("x"), 2, standing=Standing(2, turn=1, collect=True)),
        Place(asked("y"), 3, standing=quiet),
        memory=memory,
    )
    assert hand.started == []
    hand.wait(2 * SECOND)
    assert hand.started == ["xm"]


def test_s5_messages_that_were_taken_stay_taken_whatever_the_options_say_now() -> None:
    """Each was queued before the session's mode became `interrupt`; none ends the ones before it."""
    hand = paused()
    hand.submit("x", session=CHAT)
    hand.submit("y", session=CHAT)
    hand.configure(CHAT, QueueOptions(mode=Mode.INTERRUPT))
    notes = [action for action in hand.actions if isinstance(action, Enqueue)]
    assert [note.run.id for note in notes] == ["x", "y"]
    heir = paused()
    memory = SessionMemory(options=QueueOptions(mode=Mode.INTERRUPT))
    places = [Place(note.run, at, 0, note.standing) for at, note in enumerate(notes, 1)]
    take_over(heir, *places, memory=memory)
    assert (line(heir), heir.outcomes) == (["x", "y"], {})


def test_s6_what_came_while_nobody_was_there_goes_by_the_cap() -> None:
    hand = paused()
    options = {"cap": 2, "drop": "new"}
    places = [Place(asked(name, **options), at) for at, name in enumerate("wxyz", 1)]
    take_over(hand, *places)
    assert line(hand) == ["w", "x"]
    assert hand.ending("z") == (State.REJECTED, Reason.QUEUE_FULL)


def test_s6_messages_that_were_with_a_turn_do_not_push_others_out() -> None:
    hand = paused()
    options = {"cap": 1, "drop": "new"}
    take_over(
        hand,
        Place(asked("turn", max_attempts=2), 1, 1, orphaned=True),
        Place(asked("taken", **options), 2, standing=Standing(2, turn=1, held=Rule.STEERED)),
        Place(asked("waits", **options), 3),
    )
    assert (line(hand), hand.outcomes) == (["turn", "taken", "waits"], {})


def test_s5_a_message_that_had_room_beside_a_turn_is_not_rejected_afterwards() -> None:
    hand = ByHand()
    options = {"mode": "reject", "max_concurrent": 2}
    take_over(
        hand,
        Place(asked("turn", max_attempts=2, max_concurrent=2), 1, 1, orphaned=True),
        Place(asked("beside", **options), 2),
        Place(asked("third", **options), 3),
    )
    assert hand.running == ["turn", "beside"]
    assert hand.ending("third") == (State.REJECTED, Reason.REJECTED_BUSY)


def test_interrupt_acts_on_what_the_dead_node_was_at() -> None:
    hand = ByHand()
    take_over(
        hand,
        Place(asked("turn", max_attempts=2), 1, 1, orphaned=True),
        Place(asked("now", mode="interrupt"), 2),
    )
    assert hand.ending("turn") == (State.CANCELLED, Reason.SUPERSEDED)
    assert hand.running == ["now"]


def test_s9_stale_is_for_new_messages_only() -> None:
    hand = paused()
    memory = SessionMemory(cutoff_at=NOON - MINUTE)
    old = msgspec.structs.replace(asked("old"), sent_at=NOON - 2 * MINUTE)
    decided = Standing(1, turn=1)
    take_over(hand, Place(old, 1, standing=decided), memory=memory)
    assert line(hand) == ["old"]
    other = paused()
    take_over(other, Place(old, 1), memory=memory)
    assert other.ending("old") == (State.CANCELLED, Reason.STALE)


def test_f4_a_heartbeat_stands_behind_messages_again() -> None:
    hand = paused()
    beat = asked("beat", source="heartbeat", max_attempts=2)
    take_over(
        hand,
        Place(beat, 1, 1, orphaned=True),
        Place(asked("task", source="task"), 2),
        Place(asked("message"), 3),
        Place(asked("other", source="task"), 4),
    )
    assert line(hand) == ["task", "message", "beat", "other"]


def test_f3_a_run_keeps_its_rank_on_another_node() -> None:
    hand = ByHand(lanes={"main": 0})
    hand.submit("young", agent="a", session="s")
    take_over(hand, Place(asked("old", at=NOON - MINUTE), 1))
    hand.set_lane("main", 1)
    assert hand.started == ["old"]


def test_n7_news_bring_only_what_was_not_seen() -> None:
    hand = ByHand()
    take_over(hand, Place(asked("x"), 1))
    hand.kernel.restore(holding(Place(asked("x"), 1), Place(asked("y"), 2)), hand.now)
    hand.read()
    assert (hand.started, line(hand)) == (["x"], ["y"])
    assert hand.kernel.stage.sessions[CHAT].seen == 2


def test_n7_a_submission_that_came_by_news_first_is_not_taken_twice() -> None:
    hand = ByHand()
    take_over(hand, Place(asked("x"), 1), Place(asked("y"), 2))
    assert hand.kernel.submit(asked("y"), hand.now, 7, 2) is None
    hand.end("x")
    hand.end("y")
    assert (hand.started, hand.kernel.stage.runs) == (["x", "y"], {})


def test_r2_a_submission_that_came_by_news_is_not_refused_afterwards() -> None:
    hand = ByHand()
    take_over(hand, Place(asked("x"), 1), Place(asked("y"), 2))
    hand.drain(keep_waiting=True)
    assert hand.kernel.submit(asked("y"), hand.now, 7, 2) is None
    hand.read()
    assert (hand.outcomes, line(hand)) == ({}, ["y"])


def test_news_apply_the_mode_to_what_runs_here() -> None:
    hand = ByHand()
    take_over(hand, Place(asked("x"), 1))
    hand.kernel.restore(holding(Place(asked("y", mode="interrupt"), 2)), hand.now)
    hand.read()
    assert hand.cuts == [("x", Cut.SUPERSEDED)]
    note = next(a for a in hand.actions if isinstance(a, Enqueue))
    assert note.standing is not None
    assert (note.run.id, note.standing.interrupts, note.epoch) == ("y", True, 7)


def test_d4_what_an_older_epoch_says_counts_for_nothing() -> None:
    hand = ByHand()
    take_over(hand, Place(asked("x"), 1))
    hand.kernel.restore(holding(Place(asked("y"), 2), epoch=6), hand.now)
    hand.read()
    assert (hand.started, line(hand)) == (["x"], [])


def test_d4_a_session_that_was_lost_and_came_back_begins_anew() -> None:
    hand = ByHand()
    run = asked("x", max_attempts=2)
    take_over(hand, Place(run, 1))
    ticket = hand.tickets["x"]
    again = holding(Place(run, 1, 1, orphaned=True), epoch=9)
    hand.kernel.restore(again, hand.now)
    actions = hand.read()
    assert CancelAttempt(run, ticket, Cut.LOST, 7) in actions
    assert (hand.attempts["x"], hand.kernel.stage.sessions[CHAT].epoch) == (2, 9)
    assert not hand.kernel.finished(ticket, hand_over(), hand.now)


def hand_over() -> Done:
    return Done(Reply("late"))


def test_d4_lose_leaves_a_session_alone_that_is_here_under_another_epoch() -> None:
    hand = ByHand()
    take_over(hand, Place(asked("x"), 1))
    assert hand.kernel.lose([(CHAT, 6)], hand.now) == []
    assert hand.running == ["x"]
    assert hand.kernel.lose([(CHAT, 7)], hand.now) == ["x"]
    assert CHAT not in hand.kernel.stage.sessions


def test_x3_a_sub_run_is_kept_although_its_parent_runs_elsewhere() -> None:
    hand = ByHand()
    parent = asked("parent", session="other")
    child = Composer(AgentName("a"), AgentSettings()).compose(
        RunId("child"), "", {"session": CHAT}, NOON, parent
    )
    take_over(hand, Place(child, 1))
    assert hand.running == ["child"]


def test_n14_a_sub_run_of_a_stopped_turn_does_not_slip_in() -> None:
    hand = ByHand()
    hand.submit("parent", session="other")
    child = Composer(AgentName("a"), AgentSettings()).compose(
        RunId("child"), "", {"session": CHAT}, NOON, hand.runs["parent"]
    )
    hand.cancel("parent")
    take_over(hand, Place(child, 1))
    assert hand.ending("child") == (State.CANCELLED, Reason.STOPPED)


def test_x3_a_stop_reaches_a_sub_run_that_came_by_the_store() -> None:
    hand = ByHand()
    hand.submit("parent", session="other")
    child = Composer(AgentName("a"), AgentSettings()).compose(
        RunId("child"), "", {"session": CHAT}, NOON, hand.runs["parent"]
    )
    take_over(hand, Place(child, 1))
    hand.stop("other")
    assert hand.cuts == [("parent", Cut.STOPPED), ("child", Cut.STOPPED)]


def test_s6_lines_that_went_with_a_turn_come_with_its_next_attempt() -> None:
    hand = ByHand()
    run = msgspec.structs.replace(asked("x", max_attempts=2), overflow=("dropped",))
    take_over(hand, Place(run, 1, 1, orphaned=True))
    start = next(action for action in hand.actions if isinstance(action, Start))
    assert start.run.overflow == ("dropped",)


# Slots, and what is said for a successor.


def test_n11_each_live_attempt_of_a_session_has_a_slot_of_its_own() -> None:
    hand = ByHand()
    for name in ("x", "y", "z"):
        hand.submit(name, session="s", max_concurrent=3)
    hand.end("y")
    hand.submit("again", session="s", max_concurrent=3)
    slots = [(a.run.id, a.slot) for a in hand.actions if isinstance(a, Start)]
    assert slots == [("x", 0), ("y", 1), ("z", 2), ("again", 1)]


def test_n12_plain_queueing_says_nothing() -> None:
    hand = ByHand()
    hand.submit("x", session="s")
    hand.actions.clear()
    hand.submit("y", session="s")
    hand.submit("z", session="s", mode="followup")
    hand.submit("task", session="s", source="task")
    assert hand.actions == []


def test_n12_an_ended_attempt_says_that_it_ended_and_where_its_run_stands() -> None:
    hand = ByHand()
    hand.submit("x", session="s", retries=1)
    hand.fail("x")
    again = next(action for action in hand.actions if isinstance(action, Enqueue))
    assert again.ended
    assert again.standing == Standing(0, held=Rule.RETRY, until=again.until, begun=True, retries=1)
    hand.wait(MINUTE)
    released = [action for action in hand.actions if isinstance(action, Enqueue)][-1]
    assert not released.ended
    assert released.standing == Standing(0, begun=True, retries=1)


# Going back to the store.


def test_n17_a_session_that_waits_too_long_goes_back_with_all_it_has() -> None:
    hand = ByHand(lanes={"main": 0})
    due = Standing(2, turn=1, held=Rule.NOT_DUE, until=NOON + MINUTE)
    take_over(hand, Place(asked("x"), 1), Place(asked("due", due="1m"), 2, standing=due))
    assert hand.kernel.unstarted_since(NOON) == []
    assert hand.kernel.unstarted_since(NOON + 1) == [CHAT]
    assert hand.kernel.put_back([CHAT], hand.now) == ["x", "due"]
    assert hand.read() == [Release(CHAT, 7, 2)]
    stage = hand.kernel.stage
    assert (stage.runs, stage.sessions, hand.kernel.wake_at) == ({}, {}, None)


def test_n17_what_runs_stays() -> None:
    hand = ByHand()
    hand.submit("turn", session="s")
    hand.submit("waits", session="s")
    hand.submit("other", session="t")
    hand.submit("child", session="u", parent="other", lane="none")
    keys = [SessionKey(key) for key in "stu"]
    assert hand.kernel.unstarted_since(NOON + MINUTE) == []
    assert hand.kernel.put_back(keys, hand.now) == []
    assert hand.read() == []


def test_n17_a_sub_run_stays_with_the_turn_that_waits_for_it() -> None:
    """Its slot may carry the sub-run; another node's lanes may be full of turns that wait (L-4)."""
    hand = ByHand(lanes={"main": 1, "side": 0})
    hand.submit("parent", session="s")
    hand.submit("child", session="t", parent="parent", lane="side")
    assert hand.kernel.put_back([SessionKey("t")], hand.now) == []


def test_n7_what_is_submitted_to_a_session_on_its_way_back_waits_for_the_news() -> None:
    """The store gave it under the old epoch, so it will not let the session go: all of it comes again."""
    hand = ByHand(lanes={"main": 0})
    take_over(hand, Place(asked("x"), 1))
    hand.kernel.put_back([CHAT], hand.now)
    assert hand.kernel.submit(asked("y"), hand.now, 7, 2) is None
    assert hand.kernel.stage.runs == {}
    take_over(hand, Place(asked("x"), 1), Place(asked("y"), 2))
    assert line(hand) == ["x", "y"]


def test_a_session_that_went_back_may_come_again_under_a_new_epoch() -> None:
    hand = ByHand()
    hand.set_lane("main", 0)
    take_over(hand, Place(asked("x"), 1))
    hand.kernel.put_back([CHAT], hand.now)
    hand.set_lane("main", 1)
    hand.kernel.submit(asked("z"), hand.now, 8, 3)
    hand.read()
    assert hand.running == ["z"]
