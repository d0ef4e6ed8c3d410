"""What a node does when its lease, its store or its sessions are in doubt (D-3, D-4, D-9)."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from headway import Handle, Outcome, Reason, Reply, State, Turn, Unavailable
from headway.core.actions import Action, Finish, Start, session_of
from headway.model import events
from headway.model.errors import StoreUnavailable
from headway.model.run import AgentName, RunId, SessionKey
from headway.model.settings import MAIN, AgentSettings, Settings
from headway.model.time import SECOND
from headway.ports import KEPT, Clock, Peer, Recorded, Renewal
from headway.runners.function import FunctionRunner
from headway.runtime.clock import clock_for
from headway.runtime.engine import Engine
from headway.store.memory import MemoryStore
from headway.testing import virtual_time
from tests.unit.runtime.worlds import SomeEvent, moment, now_s, only

LEASE_S, RENEW_S, MARGIN_S = 30, 5, 10


class DoubtfulStore(MemoryStore):
    """A store in memory that behaves like a shared one which goes away, forgets nodes, or loses sessions."""

    durable = True

    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self.away = False
        self.renews = False
        """Whether leases are renewed though it is away: as if the disk were full."""
        self.hangs = False
        self.dead = False
        self.peers: tuple[Peer, ...] = ()
        self.buried: list[int] = []
        self.lost: SessionKey | None = None
        self.ended: dict[RunId, Outcome] = {}
        self.renewed_at: list[float] = []
        self.enlisted = 0

    async def enlist(self, name: str, lease: int, host: str = "") -> int:
        self.enlisted += 1
        self.dead = False
        return await super().enlist(name, lease, host)

    async def renew(self) -> Renewal:
        if self.hangs:
            await asyncio.sleep(1_000)
        if not self.renews:
            self._answer()
        self.renewed_at.append(now_s())
        return Renewal(not self.dead, self.peers)

    async def bury(self, peer: Peer) -> bool:
        self.buried.append(peer.id)
        self.peers = tuple(other for other in self.peers if other.id != peer.id)
        return True

    async def record(self, actions: Sequence[Action]) -> Recorded:
        self._answer()
        mine = [action for action in actions if session_of(action) != self.lost]
        await super().record(mine)
        epochs = {
            action.epoch
            for action in actions
            if action not in mine and isinstance(action, Start | Finish)
        }
        return (
            Recorded(tuple((self.lost, epoch) for epoch in epochs))
            if self.lost and epochs
            else KEPT
        )

    async def outcomes(self, runs: Sequence[RunId]) -> Mapping[RunId, Outcome]:
        self._answer()
        return {run_id: self.ended[run_id] for run_id in runs if run_id in self.ended}

    def _answer(self) -> None:
        if self.away:
            raise StoreUnavailable("the store", "connection refused")


class World:
    """An engine on a doubtful store, with an agent that takes as long as its text says."""

    def __init__(self, **settings: int) -> None:
        clock = clock_for(asyncio.get_running_loop())
        self.settings = Settings(lease=LEASE_S * SECOND, renew_every=RENEW_S * SECOND)
        self.settings = msgspec.structs.replace(
            self.settings, cancel_grace=MARGIN_S * SECOND, **settings
        )
        self.store = DoubtfulStore(self.settings, clock)
        self.engine = Engine(self.settings, self.store, clock)
        self.begun: list[tuple[str, int, float]] = []
        self.cut: list[tuple[str, float]] = []
        self.engine.register(AgentName("a"), FunctionRunner(self._agent), AgentSettings())
        self.heard: list[events.Event] = []

    async def start(self) -> "World":
        await self.engine.start()
        self.engine.bus.tap(self.heard.append)
        return self

    async def submit(self, text: str, **options: object) -> Handle:
        return await self.engine.delegate(0, "a", text, {"session": "s", **options})

    def kinds(self) -> set[type[events.Event]]:
        return {type(event) for event in self.heard}

    def told(self, kind: type[SomeEvent]) -> list[SomeEvent]:
        return only(self.heard, kind)

    async def _agent(self, turn: Turn) -> str:
        self.begun.append((turn.text, turn.attempt, now_s()))
        try:
            await asyncio.sleep(float(turn.text))
        except asyncio.CancelledError:
            self.cut.append((turn.text, now_s()))
            raise
        return "done"


@virtual_time
async def test_d3_a_long_turn_lives_as_long_as_its_node_renews() -> None:
    world = await World().start()
    handle = await world.submit("720")
    assert (await handle.wait()).text == "done"
    assert world.store.renewed_at[:4] == [0, 5, 10, 15]
    await world.engine.close()


@virtual_time
async def test_d3_n2_a_node_that_cannot_renew_ends_its_attempts_before_its_lease_does() -> None:
    world = await World().start()
    handle = await world.submit("100")
    await asyncio.sleep(6)
    world.store.away = True
    await asyncio.sleep(40)
    ((text, at),) = world.cut
    assert text == "100"
    # The last renewal was sent at 5 s: the lease ends at 35 s, and the attempt was cut well before.
    assert 24 <= at <= LEASE_S + 5 - MARGIN_S
    (fenced,) = world.told(events.NodeFenced)
    assert "connection refused" in fenced.reason
    world.store.away = False
    assert (await handle.wait()).text == "done"
    assert [attempt for _, attempt, _ in world.begun] == [1, 2]
    await world.engine.close()


@virtual_time
async def test_d7_n2_an_attempt_that_the_fence_cut_fails_orphaned_where_it_may_not_be_tried_again() -> (
    None
):
    world = await World().start()
    handle = await world.submit("100", max_attempts=1)
    await moment()
    world.store.away = True
    await asyncio.sleep(60)
    world.store.away = False
    outcome = await handle.wait()
    assert (outcome.state, outcome.reason) == (State.FAILED, Reason.ORPHANED)
    await world.engine.close()


@virtual_time
async def test_d9_while_the_store_is_away_submissions_are_refused_and_then_all_goes_on_by_itself() -> (
    None
):
    world = await World().start()
    handle = await world.submit("8")
    await moment()
    world.store.away = True
    await asyncio.sleep(10)
    with pytest.raises(Unavailable):
        await world.submit("1")
    assert handle.outcome is None
    world.store.away = False
    assert (await handle.wait()).text == "done"
    assert len(world.begun) == 1
    # The turn's end could not be stored, and the lease not be renewed: that is one outage.
    assert (len(world.told(events.StoreAway)), len(world.told(events.StoreBack))) == (1, 1)
    assert events.NodeFenced not in world.kinds()
    await (await world.submit("1")).wait()
    await world.engine.close()


@virtual_time
async def test_d9_an_idle_node_tells_once_that_the_store_is_away_and_once_that_it_is_back() -> None:
    world = await World().start()
    for outages in (1, 2):
        world.store.away = True
        await asyncio.sleep(40)
        assert len(world.told(events.StoreAway)) == outages
        assert len(world.told(events.StoreBack)) == outages - 1
        world.store.away = False
        await asyncio.sleep(10)
        assert len(world.told(events.StoreBack)) == outages
    assert "connection refused" in world.told(events.StoreAway)[0].error
    assert len(world.told(events.NodeFenced)) == 2
    await world.engine.close()


@virtual_time
async def test_d9_an_outage_lasts_until_each_part_that_noticed_it_has_reached_the_store() -> None:
    world = await World().start()
    handle = await world.submit("1")
    await moment()
    world.store.away = world.store.renews = True
    await asyncio.sleep(12)
    assert (len(world.told(events.StoreAway)), len(world.told(events.StoreBack))) == (1, 0)
    world.store.away = False
    assert (await handle.wait()).text == "done"
    assert len(world.told(events.StoreBack)) == 1
    await world.engine.close()


@virtual_time
async def test_n2_a_fence_says_that_the_store_did_not_answer() -> None:
    world = await World().start()
    world.store.hangs = True
    await asyncio.sleep(30)
    (fenced,) = world.told(events.NodeFenced)
    assert fenced.reason == "the store has not answered a renewal for 15s"
    world.store.hangs = False
    await asyncio.sleep(60)
    assert (len(world.told(events.StoreAway)), len(world.told(events.StoreBack))) == (1, 1)
    await world.engine.close()


@virtual_time
async def test_d4_n4_a_node_that_was_declared_dead_learns_it_and_begins_anew_with_nothing() -> None:
    world = await World().start()
    handle = await world.submit("100")
    await moment()
    number = world.engine.number
    world.store.dead = True
    await asyncio.sleep(6)
    assert world.engine.number == number + 1
    assert [text for text, _ in world.cut] == ["100"]
    assert not world.engine.kernel.stage.runs
    assert world.engine.kernel.stage.floor.lanes[MAIN].in_use == 0
    assert {events.NodeDied, events.SessionsLost} <= world.kinds()
    assert handle.outcome is None
    world.store.ended[handle.id] = Outcome(State.DONE, reply=Reply("elsewhere"))
    assert (await handle.wait()).text == "elsewhere"
    await world.engine.close()


@virtual_time
async def test_d4_n9_a_session_that_the_store_says_is_lost_does_not_go_on_here() -> None:
    world = await World().start()
    world.store.lost = SessionKey("lost")
    kept = await world.submit("1")
    lost = await world.submit("2", session="lost")
    assert (await kept.wait()).text == "done"
    assert [text for text, _, _ in world.begun] == ["1"]
    assert "lost" not in world.engine.kernel.stage.sessions
    assert world.engine.kernel.stage.floor.lanes[MAIN].in_use == 0
    world.store.ended[lost.id] = Outcome(State.DONE, reply=Reply("elsewhere"))
    assert (await lost.wait()).text == "elsewhere"
    await world.engine.close()


@virtual_time
async def test_n3_a_node_is_dead_when_its_counter_stood_still_for_its_whole_lease() -> None:
    world = await World().start()
    world.store.peers = (Peer(7, 1, 20 * SECOND), Peer(8, 1, 60 * SECOND))
    await asyncio.sleep(22)
    assert world.store.buried == []
    await asyncio.sleep(6)
    assert world.store.buried == [7]
    assert events.NodeDead in world.kinds()
    await world.engine.close()


@virtual_time
async def test_n3_a_counter_that_moves_keeps_a_node_alive_however_slowly() -> None:
    world = await World().start()
    for counter in range(10):
        world.store.peers = (Peer(7, counter, 20 * SECOND),)
        await asyncio.sleep(19)
    assert world.store.buried == []
    await world.engine.close()


@virtual_time
async def test_n2_right_before_a_runner_is_called_the_lease_is_looked_at() -> None:
    world = await World().start()
    await (await world.submit("1")).wait()
    # As if the process had been frozen for the whole lease between two steps.
    world.engine._membership._until = 0
    late = await world.submit("2", max_attempts=1)
    await moment()
    assert [text for text, _, _ in world.begun] == ["1"]
    (fenced,) = world.told(events.NodeFenced)
    assert "this process stood still" in fenced.reason
    assert (await late.wait()).text == "done"
    assert world.begun[1] == ("2", 1, 5.0)
    await world.engine.close()


@virtual_time
async def test_s3_the_grace_of_a_cancel_counts_from_when_the_attempt_was_told() -> None:
    """A store that is slow to keep the decision must not make a well-behaved attempt look deaf."""
    world = await World(lease=600 * SECOND, renew_every=100 * SECOND).start()
    handle = await world.submit("500")
    await moment()
    world.store.away = True
    stopping = asyncio.get_running_loop().create_task(world.engine.stop(SessionKey("s")))
    await asyncio.sleep(5 * MARGIN_S)
    assert world.cut == []
    world.store.away = False
    assert str(await stopping) == "1 running stopped"
    assert (await handle.wait()).reason is Reason.STOPPED
    assert len(world.cut) == 1
    assert events.AttemptAbandoned not in world.kinds()
    await world.engine.close()


@pytest.mark.parametrize("steps", range(8))
def test_l5_a_renewal_that_is_answered_while_the_node_closes_does_not_keep_it(steps: int) -> None:
    """However close together they come: the end is waited for, and must not be forgotten over the answer."""

    @virtual_time
    async def main() -> None:
        world = await World().start()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        renew = world.store.renew

        async def slowly() -> Renewal:
            await answer
            return await renew()

        world.store.renew = slowly  # type: ignore[method-assign]
        renewing = loop.create_task(world.engine._membership.run())
        await asyncio.sleep(RENEW_S)
        answer.set_result(None)
        for _ in range(steps):
            await asyncio.sleep(0)
        renewing.cancel()
        ended, _ = await asyncio.wait([renewing], timeout=LEASE_S)
        assert ended
        await world.engine.close()

    main()


@virtual_time
async def test_l6_a_restart_waits_for_a_store_that_answers_too_late() -> None:
    world = await World().start()
    world.store.hangs = True
    restarting = asyncio.get_running_loop().create_task(world.engine.restart(0))
    await asyncio.sleep(2 * LEASE_S)
    assert not restarting.done()
    world.store.hangs = False
    await restarting
    assert world.engine.incarnation == 2
    assert (await (await world.submit("1")).wait()).text == "done"
    await world.engine.close()
