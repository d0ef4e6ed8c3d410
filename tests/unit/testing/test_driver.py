"""The driver plays histories by hand, and objects as soon as the kernel does what it must not."""

import pytest

from headway.core.actions import Done, Failed
from headway.core.kernel import Kernel
from headway.model.outcome import Outcome, Reply
from headway.model.run import AgentName, LaneName, QueueOptions, Run, RunId, SessionKey
from headway.model.settings import AgentSettings, Budget, LaneSettings, Settings
from headway.model.time import MINUTE, SECOND, Instant
from headway.model.words import Mode, Reason, Source, State
from headway.testing.simulation.driver import Driver
from headway.testing.simulation.seen import Meter
from headway.testing.simulation.violation import Invariant, Violation

DONE = Done(Reply("yes"))
MAIN = LaneName("main")


def _driver(width: int = 1, kernel: type[Kernel] = Kernel, **agent: object) -> Driver:
    settings = Settings(
        lanes={MAIN: LaneSettings(width)},
        agents={AgentName("a"): AgentSettings(**agent)},  # type: ignore[arg-type]
    )
    return Driver(settings, kernel=kernel)


def _run(driver: Driver, name: str, session: str = "s", **terms: object) -> Run:
    return Run(
        RunId(name),
        AgentName("a"),
        SessionKey(session),
        Source.MESSAGE,
        MAIN,
        0,
        driver.now,
        name,
        **terms,  # type: ignore[arg-type]
    )


def _submit(driver: Driver, name: str, session: str = "s", **terms: object) -> None:
    driver.submit(_run(driver, name, session, **terms))
    driver.check(0)


def _returns(driver: Driver, name: str) -> None:
    driver.returns(driver.mirror.runs[RunId(name)], DONE)
    driver.check(0)


def _outcome(driver: Driver, name: str) -> Outcome:
    return driver.witness.outcomes[RunId(name)]


def test_s1_a_session_by_hand_runs_in_order_and_leaves_nothing() -> None:
    driver = _driver()
    for name in ("one", "two"):
        _submit(driver, name)
    assert [seen.run.id for seen in driver.mirror.attempts.values()] == ["one"]
    _returns(driver, "one")
    _returns(driver, "two")
    driver.check_end()
    assert _outcome(driver, "two").state is State.DONE


def test_f5_a_deadline_passes_while_waiting() -> None:
    driver = _driver()
    _submit(driver, "busy")
    _submit(driver, "late", deadline_at=driver.now + SECOND)
    driver.pass_time(driver.now + SECOND)
    assert _outcome(driver, "late").reason is Reason.DEADLINE_QUEUED


def test_x2_a_steered_message_comes_back_if_its_turn_fails() -> None:
    driver = _driver(steerable=True)
    _submit(driver, "turn", retries=1)
    _submit(driver, "more", queue=QueueOptions(mode=Mode.STEER))
    turn = driver.mirror.runs[RunId("turn")]
    assert driver.steered(turn.ticket, RunId("more"))
    driver.returns(turn, Failed("no"))
    driver.check(0)
    line = driver.mirror.sessions[SessionKey("s")].line
    assert [seen.run.id for seen in line] == ["turn", "more"]


class _Eager(Kernel):
    """Starts whatever is submitted, as if every lane were wide."""

    def submit(self, *args: object, **options: object) -> Outcome | None:
        self.stage.floor.lanes[MAIN].width = 100
        return super().submit(*args, **options)  # type: ignore[arg-type]


def test_a_start_too_many_is_objected_to() -> None:
    driver = _driver(width=1, kernel=_Eager)
    _submit(driver, "one", "a")
    with pytest.raises(Violation, match="two starts, but for lane_full") as objection:
        _submit(driver, "two", "b")
    assert objection.value.invariant is Invariant.LANE_LIMIT


class _Fragile(Kernel):
    def time_passed(self, now: Instant) -> None:
        raise ZeroDivisionError("no time")


def test_a_kernel_that_raises_is_objected_to() -> None:
    driver = _driver(kernel=_Fragile)
    with pytest.raises(Violation, match="ZeroDivisionError: no time") as objection:
        driver.pass_time(driver.now + 1)
    assert objection.value.invariant is Invariant.CRASH


def test_x6_a_meter_fills_by_the_minute_and_pays_its_debts() -> None:
    meter = Meter(60, 0)
    assert meter.free_at(0) == 0
    meter.take(60, 0)
    assert meter.free_at(0) == SECOND
    meter.take(60, 0)
    assert meter.free_at(0) == MINUTE + SECOND
    assert meter.free_at(10 * MINUTE) == 10 * MINUTE


def test_x6_a_budget_holds_a_start_until_it_has_one() -> None:
    driver = _driver(width=4, budget=Budget(runs_per_minute=60))
    for number in range(61):
        _submit(driver, f"r{number}", f"s{number}")
        if number < 60:
            _returns(driver, f"r{number}")
    driver.pass_time(driver.now + SECOND - 1)
    assert driver.mirror.runs[RunId("r60")].ticket == 0
    driver.pass_time(driver.now + 1)
    assert driver.mirror.runs[RunId("r60")].ticket != 0
