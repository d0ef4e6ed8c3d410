"""Commands to a session have a place in its order; its owner carries them out and keeps the answer (N-13)."""

from headway.core.actions import Remember, Respond
from headway.model.places import (
    Answer,
    Cancel,
    Clear,
    Command,
    Configure,
    Holding,
    Order,
    Place,
    Standing,
    Stop,
    StopAll,
)
from headway.model.run import QueueOptions, RunId, SessionKey, SessionMemory
from headway.model.time import MINUTE, SECOND
from headway.model.words import Cut, Mode, Reason, Rule, State
from tests.unit.core.by_hand import CHAT, NOON, ByHand, asked


def order(command: Command, seq: int = 9, session: SessionKey = CHAT) -> Order:
    return Order(f"o{seq}", session, command, seq)


def give(hand: ByHand, command: Command, seq: int = 9) -> Answer:
    answer = hand.kernel.carry_out(order(command, seq), 7, None, hand.now)
    hand.read()
    return answer


def busy() -> ByHand:
    """One run is at work in the chat, two messages wait."""
    hand = ByHand()
    for seq, name in enumerate(("turn", "x", "y"), 1):
        hand.kernel.submit(asked(name), hand.now, 7, seq)
    hand.read()
    return hand


def test_s9_stop_reaches_the_oldest_running_attempt() -> None:
    hand = busy()
    assert give(hand, Stop()) == Answer(running=1)
    assert hand.cuts == [("turn", Cut.STOPPED)]
    assert Respond(order(Stop()), Answer(running=1), 7) in hand.actions
    assert hand.kernel.stage.sessions[CHAT].seen == 9


def test_s9_stop_all_ends_everything_and_sets_the_cutoff() -> None:
    hand = busy()
    assert give(hand, StopAll(sent_at=NOON + MINUTE)) == Answer(running=1, waiting=2)
    assert hand.memories[CHAT].cutoff_at == NOON + MINUTE


def test_cancel_reaches_one_run() -> None:
    hand = busy()
    assert give(hand, Cancel(RunId("x"))) == Answer(waiting=1)
    assert give(hand, Cancel(RunId("nobody")), 10) == Answer()
    assert hand.ending("x") == (State.CANCELLED, Reason.STOPPED)


def test_s5_clear_ends_what_waits() -> None:
    hand = busy()
    assert give(hand, Clear()) == Answer(waiting=2)
    assert hand.ending("y") == (State.CANCELLED, Reason.CLEARED)
    assert hand.running == ["turn"]


def test_s5_options_are_set_changed_and_reset() -> None:
    hand = busy()
    give(hand, Configure(QueueOptions(mode=Mode.COLLECT, cap=3)))
    give(hand, Configure(QueueOptions(cap=5), change=True), 10)
    assert hand.memories[CHAT].options == QueueOptions(mode=Mode.COLLECT, cap=5)
    give(hand, Configure(), 11)
    assert hand.memories[CHAT] == SessionMemory()


def test_an_order_to_an_idle_session_takes_it_as_the_store_knows_it() -> None:
    hand = ByHand()
    memory = SessionMemory(options=QueueOptions(cap=3))
    change = order(Configure(QueueOptions(mode=Mode.STEER), change=True))
    hand.kernel.carry_out(change, 7, memory, hand.now)
    remembered = next(a for a in hand.read() if isinstance(a, Remember))
    assert remembered.memory.options == QueueOptions(mode=Mode.STEER, cap=3)
    assert remembered.epoch == 7


def test_an_order_that_came_by_news_first_is_carried_out_once() -> None:
    hand = busy()
    hand.kernel.restore(Holding(CHAT, 7, 4, orders=(order(Stop(), 4),)), hand.now)
    assert give(hand, Stop(), 4) == Answer()
    assert sum(isinstance(action, Respond) for action in hand.actions) == 1


def test_n13_orders_take_their_turn_among_the_runs() -> None:
    hand = ByHand(lanes={"main": 0})
    places = [Place(asked(name), seq) for seq, name in ((1, "x"), (2, "y"), (4, "z"))]
    responds = hand.kernel.restore(
        Holding(CHAT, 7, 4, None, tuple(places), (order(Clear(), 3),)), hand.now
    )
    hand.read()
    assert [respond.answer for respond in responds] == [Answer(waiting=2)]
    assert list(hand.kernel.stage.runs) == ["z"]


def test_n13_a_stop_reaches_the_turn_that_it_was_meant_for_and_not_the_next() -> None:
    """The node died before it could stop its turn, which may not be tried again."""
    hand = ByHand()
    turn = Place(asked("turn", max_attempts=1), 1, 1, orphaned=True)
    held = Holding(CHAT, 7, 3, None, (turn, Place(asked("next"), 2)), (order(Stop(), 3),))
    (respond,) = hand.kernel.restore(held, hand.now)
    hand.read()
    assert respond.answer == Answer(waiting=1)
    assert hand.ending("turn") == (State.CANCELLED, Reason.STOPPED)
    assert hand.running == ["next"]


def test_n13_an_order_that_does_not_mean_it_leaves_it_orphaned() -> None:
    hand = ByHand()
    turn = Place(asked("turn", max_attempts=1), 1, 1, orphaned=True)
    held = Holding(CHAT, 7, 2, None, (turn,), (order(Clear(), 2),))
    hand.kernel.restore(held, hand.now)
    hand.read()
    assert hand.ending("turn") == (State.FAILED, Reason.ORPHANED)


def test_n13_an_order_ends_what_was_to_come_due_before_the_next_message() -> None:
    hand = ByHand(lanes={"main": 0})
    until = NOON - 30 * SECOND
    later = Place(
        asked("later", at=NOON - MINUTE, due="30s"),
        1,
        standing=Standing(1, turn=1, held=Rule.NOT_DUE, until=until),
    )
    window = Place(
        asked("window", at=NOON - MINUTE, debounce="30s"),
        2,
        standing=Standing(2, turn=2, held=Rule.DEBOUNCE, until=until, latest_at=NOON),
    )
    held = Holding(
        CHAT, 7, 4, None, (later, window, Place(asked("next"), 4)), (order(StopAll(), 3),)
    )
    (respond,) = hand.kernel.restore(held, hand.now)
    hand.read()
    assert respond.answer == Answer(waiting=2)
    assert list(hand.kernel.stage.runs) == ["next"]


def test_n13_an_order_to_a_session_on_its_way_back_waits_for_the_news() -> None:
    hand = ByHand(lanes={"main": 0})
    held = Holding(CHAT, 7, 1, None, (Place(asked("x"), 1),))
    hand.kernel.restore(held, hand.now)
    hand.kernel.put_back([CHAT], hand.now)
    hand.read()
    assert give(hand, Stop(), 2) == Answer()
    held = Holding(CHAT, 7, 2, None, held.places, (order(Stop(), 2),))
    (respond,) = hand.kernel.restore(held, hand.now)
    assert respond.answer == Answer(waiting=1)
