"""A session changes hands in the middle of any history, and its next owner decides alike (N-12)."""

from copy import deepcopy
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replaced

from headway.core import ahead
from headway.core.actions import Done, Ended, Failed, Finish, Limited, Start
from headway.core.endings import FINAL_CUTS
from headway.core.kernel import Kernel
from headway.core.live import LiveRun
from headway.model.outcome import Reply
from headway.model.places import Cancel, Order
from headway.model.run import RunId, SessionKey
from headway.model.settings import AgentSettings, LaneSettings, Limits
from headway.model.words import Reason, Source, State
from headway.testing.simulation.history import History
from headway.testing.simulation.worlds import World
from tests.property.shadow import Shadowed

CLOSED = LaneSettings(0)
WIDE = LaneSettings(10_000)
MOST_STEPS = 2_000
EPOCH = 1_000_000


def crashed(history: History, steps: int) -> Shadowed:
    """A kernel in the middle of a random history, with all that it decided stored."""
    for _ in range(steps):
        history.step()
    kernel = history.driver.kernel
    assert isinstance(kernel, Shadowed)
    kernel.time_passed(kernel.stage.now)
    kernel.take_actions()
    return kernel


def heir_of(kernel: Shadowed, dice: Random) -> Shadowed:
    """Another node with the same settings takes all sessions over, in any order, and starts nothing yet."""
    now = kernel.stage.now
    heir = Shadowed(kernel.stage.settings, now)
    heir.shadow = deepcopy(kernel.shadow)
    heir.shadow.bury()
    for name, agent in kernel.stage.floor.agents.items():
        heir.set_agent(name, without_pause(agent.settings), now)
    close(heir)
    holdings = heir.shadow.holdings(EPOCH)
    dice.shuffle(holdings)
    for holding in holdings:
        assert heir.restore(holding, now) == ()
    return heir


def lived_on(kernel: Shadowed) -> Kernel:
    """What would be if the node itself had lost its attempts and nothing else.

    Three things are not as they were then, and shall not be: how many runs of a session may go at once follows its
    options of now, a message that ran beside a heartbeat comes back in front of it (F-4), and of a run whose start
    was stored ahead nobody else can tell that it had not begun.
    """
    twin = deepcopy(kernel)
    stage = twin.stage
    for live in stage.attempts.values():
        if live.next_up:
            ahead.leave(stage, live)
            live.next_up, live.begun = False, True
            stage.floor.take_up(live)
    for agent in stage.floor.agents.values():
        agent.settings = without_pause(agent.settings)
    for live in stage.attempts.values():
        if live.cut not in FINAL_CUTS:
            live.cut = None
        stage.return_absorbed(live)
    close(twin)
    twin.reset(stage.now)
    for session in stage.sessions.values():
        session.waiting[:] = heartbeats_last(session.waiting)
        stage.refresh(session)
    for live in stage.runs.values():
        options = live.session.memory.options
        live.width = twin._rules.resolve(live.run.queue, options, live.run.route).max_concurrent
    return twin


def without_pause(settings: AgentSettings) -> AgentSettings:
    """A successor resumes dead workers after a pause (W-3), which an owner that lives on has no reason for."""
    return replaced(settings, resume_after=None)


def close(kernel: Kernel) -> None:
    """No lane has a slot; nothing else holds anything back."""
    stage = kernel.stage
    kernel.set_estimating(False)
    kernel.set_gated(False)
    for name in tuple(stage.floor.lanes):
        stage.floor.set_lane(name, CLOSED, stage.now)


def open_up(kernel: Kernel) -> None:
    stage = kernel.stage
    for name, agent in stage.floor.agents.items():
        kernel.set_agent(name, AgentSettings(steerable=agent.settings.steerable), stage.now)
        if agent.provider is not None:
            agent.provider.held_until = 0
    kernel.set_limits(Limits(10_000, 10_000, 10_000, 10_000), stage.now)
    for lane in tuple(stage.floor.lanes):
        kernel.set_lane(lane, WIDE, stage.now)


def picture(kernel: Kernel) -> dict[SessionKey, object]:
    """Where everything of every session stands."""
    sessions: dict[SessionKey, object] = {}
    for key, session in kernel.stage.sessions.items():
        if not (session.waiting or session.later or session.buffers):
            continue
        later = [
            (live.run.id, live.alarm.at)
            for live in kernel.stage.runs.values()
            if live.session is session and live.held == "not_due" and live.alarm is not None
        ]
        buffers = {
            buffer_key: (
                [live.run.id for live in buffer.messages],
                buffer.closes_at,
                buffer.latest_at,
            )
            for buffer_key, buffer in (session.buffers or {}).items()
        }
        collecting = any(live.collect for live in session.waiting if not live.begun)
        sessions[key] = (
            [facts(live) for live in session.waiting],
            sorted(later),
            buffers,
            session.later,
            session.memory,
            collecting and max(session.quiet_until, kernel.stage.now),
        )
    return {key: sessions[key] for key in sorted(sessions)}


def heartbeats_last(line: list[LiveRun]) -> list[LiveRun]:
    messages = [at for at, live in enumerate(line) if live.run.source is Source.MESSAGE]
    last = messages[-1] if messages else -1
    until = line[: last + 1]
    heartbeats = [live for live in until if live.run.source is Source.HEARTBEAT]
    return [live for live in until if live not in heartbeats] + heartbeats + line[last + 1 :]


def facts(live: LiveRun) -> tuple[object, ...]:
    until = live.alarm.at if live.alarm is not None else None
    return (
        live.run.id,
        live.state,
        live.attempt,
        live.retries,
        live.limited,
        live.begun,
        live.collect and not live.begun,
        live.held,
        until,
        live.run.overflow,
    )


def play_out(kernel: Kernel) -> tuple[object, ...]:
    """All that each session starts from now on, when, and how its runs end; nothing new comes."""
    stage = kernel.stage
    starts: dict[SessionKey, list[tuple[object, ...]]] = {}
    ends: dict[RunId, tuple[object, ...]] = {}
    open_up(kernel)
    for _ in range(MOST_STEPS):
        for action in kernel.take_actions():
            if isinstance(action, Start):
                run = action.run
                what = (run.id, run.merged_from, action.attempt, run.overflow, action.at)
                starts.setdefault(run.session, []).append(what)
            elif isinstance(action, Finish):
                assert action.run.id not in ends, "R-2"
                ends[action.run.id] = (action.outcome, action.attempt, action.at)
        if stage.attempts:
            ticket, live = min(stage.attempts.items(), key=lambda entry: entry[1].run.id)
            kernel.finished(ticket, answer_of(live), stage.now)
        elif kernel.wake_at is not None:
            kernel.time_passed(kernel.wake_at)
        else:
            assert not stage.runs, "something waits for nothing"
            return starts, ends
    raise AssertionError("this never ends")


def answer_of(live: LiveRun) -> Ended:
    """Some attempts fail, the same ones whoever makes them."""
    if sum(map(ord, live.run.id)) % 3 == 0:
        return Failed("no")
    return Done(Reply(live.run.id))


def play_on(kernel: Shadowed, world: World, name: str, dice: Random, steps: int) -> None:
    """More of the same, for a kernel that took sessions over: messages, ends, and time."""
    stage = kernel.stage
    for lane in tuple(stage.floor.lanes):
        kernel.set_lane(lane, LaneSettings(2), stage.now)
    for number in range(steps):
        happening = dice.random()
        if happening < 0.4:
            run = world.run(RunId(f"{name}{number}"), stage.now, None)
            if run.source is not Source.TASK:
                seq = kernel.shadow.last.get(run.session, 0) + 1
                memory = kernel.shadow.memories.get(run.session)
                kernel.submit(run, stage.now, EPOCH, seq, memory)
        elif happening < 0.7 and stage.attempts:
            ticket = dice.choice(list(stage.attempts))
            ended = dice.choice((Done(Reply("yes")), Failed("no"), Limited(world.settings.ageing)))
            kernel.finished(ticket, ended, stage.now)
        elif happening < 0.9 and kernel.wake_at is not None:
            kernel.time_passed(kernel.wake_at)
        elif stage.runs:
            run_id = dice.choice(list(stage.runs))
            order = Order("order", stage.runs[run_id].run.session, Cancel(run_id))
            kernel.carry_out(order, EPOCH, None, stage.now)
        kernel.take_actions()
    kernel.time_passed(stage.now)
    kernel.take_actions()


@pytest.mark.parametrize("steps", [20, 60, 140])
@settings(max_examples=100)
@given(seed=st.integers(0, 1 << 32), salt=st.integers(0, 1 << 16))
def test_n12_a_successor_goes_on_as_the_owner_would_have(steps: int, seed: int, salt: int) -> None:
    """The same starts in each session, at the same instants, merged alike; the same retries and ends."""
    kernel = crashed(History(seed, kernel=Shadowed), steps)
    heir, twin = heir_of(kernel, Random(salt)), lived_on(kernel)
    heir.take_actions()
    twin.take_actions()
    assert play_out(heir) == play_out(twin)


@pytest.mark.parametrize("steps", [20, 60, 140])
@settings(max_examples=150)
@given(seed=st.integers(0, 1 << 32), salt=st.integers(0, 1 << 16))
def test_n12_a_successor_puts_every_run_back_where_it_stood(
    steps: int, seed: int, salt: int
) -> None:
    kernel = crashed(History(seed, kernel=Shadowed), steps)
    heir = heir_of(kernel, Random(salt))
    ended = {a.run.id: a.outcome for a in heir.take_actions() if isinstance(a, Finish)}
    twin = lived_on(kernel)
    expected = {a.run.id: a.outcome for a in twin.take_actions() if isinstance(a, Finish)}
    assert set(heir.stage.runs) | set(ended) == set(kernel.shadow.rows)
    assert set(ended) == set(expected)
    for run_id, outcome in ended.items():
        if expected[run_id].reason is Reason.DRAINING:
            assert (outcome.state, outcome.reason) == (State.FAILED, Reason.ORPHANED)
        else:
            assert outcome == expected[run_id]
    assert picture(heir) == picture(twin)


@settings(max_examples=150)
@given(seed=st.integers(0, 1 << 32), salt=st.integers(0, 1 << 16), steps=st.integers(5, 60))
def test_n12_sessions_change_hands_again_and_again(seed: int, salt: int, steps: int) -> None:
    dice = Random(salt)
    history = History(seed, kernel=Shadowed)
    kernel = crashed(history, 60)
    for name in "xyz":
        heir = heir_of(kernel, dice)
        twin = lived_on(kernel)
        assert picture(heir) == picture(twin)
        heir.take_actions()
        play_on(heir, history.world, name, dice, steps)
        kernel = heir


FORGETFUL: dict[str, object] = {
    "turn": 0,
    "held": None,
    "after": 0,
    "until": 0,
    "latest_at": None,
    "collect": False,
    "begun": False,
    "retries": 0,
    "limited": 0,
}


@pytest.mark.parametrize("field", FORGETFUL)
def test_a_store_that_forgets_something_is_found_out(field: str) -> None:
    """What is kept of a standing is all needed: without it a successor decides otherwise."""
    for seed in range(400):
        kernel = crashed(History(seed, kernel=Shadowed), 60)
        expected = picture(lived_on(kernel))
        for row in kernel.shadow.rows.values():
            if row.standing is not None:
                row.standing = replaced(row.standing, **{field: FORGETFUL[field]})
        if picture(heir_of(kernel, Random(seed))) != expected:
            return
    raise AssertionError(f"nothing is different without {field}")
