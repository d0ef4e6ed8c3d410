"""Alarms ring once, in order of time and then of setting, and cancelled ones do not pile up."""

from headway.core.alarms import NEVER, Alarms


def rung(alarms: Alarms[str], now: int) -> list[tuple[int, str]]:
    """All that is due by now, in the order in which it rings."""
    return [(alarm.at, alarm.bell or "") for alarm in alarms.take_due(now)]


def test_alarms_ring_by_time_then_by_order_of_setting() -> None:
    alarms: Alarms[str] = Alarms()
    for at, bell in ((30, "c"), (10, "a"), (20, "b1"), (20, "b2")):
        alarms.set(at, bell)
    assert rung(alarms, 20) == [(10, "a"), (20, "b1"), (20, "b2")]
    assert rung(alarms, 29) == []
    assert rung(alarms, 30) == [(30, "c")]
    assert rung(alarms, 1000) == []


def test_many_alarms_of_one_instant_ring_in_the_order_in_which_they_were_set() -> None:
    alarms: Alarms[str] = Alarms()
    for number in range(100):
        alarms.set(10, f"bell{number}")
    assert rung(alarms, 10) == [(10, f"bell{number}") for number in range(100)]


def test_f5_an_alarm_rings_at_its_instant_not_before() -> None:
    alarms: Alarms[str] = Alarms()
    alarms.set(10, "a")
    assert rung(alarms, 9) == []
    assert rung(alarms, 10) == [(10, "a")]


def test_a_cancelled_alarm_never_rings_and_cancelling_twice_is_harmless() -> None:
    alarms: Alarms[str] = Alarms()
    first, second = alarms.set(10, "a"), alarms.set(10, "b")
    alarms.cancel(first)
    alarms.cancel(first)
    assert len(alarms) == 1
    assert rung(alarms, 10) == [(10, "b")]
    alarms.cancel(second)
    assert len(alarms) == 0


def test_an_alarm_that_is_due_can_still_be_cancelled_by_one_that_rings_before_it() -> None:
    alarms: Alarms[str] = Alarms()
    alarms.set(10, "first")
    alarms.set(10, "second")
    first, second = alarms.take_due(10)
    assert first.bell == "first"
    alarms.cancel(second)
    assert second.bell is None
    assert len(alarms) == 0


def test_next_at_and_due_at_look_past_the_cancelled() -> None:
    alarms: Alarms[str] = Alarms()
    assert (alarms.next_at, alarms.due_at) == (None, NEVER)
    early = alarms.set(10, "a")
    alarms.set(20, "b")
    assert alarms.next_at == 10
    alarms.cancel(early)
    assert [alarms.next_at, alarms.due_at] == [20, 20]
    rung(alarms, 20)
    assert [alarms.next_at, alarms.due_at] == [None, NEVER]


def test_due_at_is_never_later_than_the_next_alarm() -> None:
    """The kernel looks only once `due_at` has come: too late a value would lose alarms."""
    alarms: Alarms[str] = Alarms()
    alarms.set(50, "late")
    assert rung(alarms, 10) == []
    alarms.set(20, "early")
    assert alarms.due_at <= 20


def test_s4_cancelled_alarms_do_not_pile_up() -> None:
    alarms: Alarms[str] = Alarms()
    alarms.set(10**9, "kept")
    for _ in range(20_000):
        alarms.cancel(alarms.set(10**9, "gone"))
    assert len(alarms) == 1
    assert len(alarms._heap) < 2_000
    assert rung(alarms, 10**9) == [(10**9, "kept")]
