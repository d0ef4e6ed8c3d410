"""Proof that the simulated cluster can fail: each rule of many nodes is broken on purpose, and must be found out.

A break is a small change to the engine or to the store, the kind that a careless edit makes. Breaks that random
histories meet often are found by them. The others are found by a history made for them, which passes as long as
nothing is broken: that is tested too.

Rules, or parts of rules, that one process on SQLite cannot break, and where their breaks are caught:

- N-8, the snapshots of N-9 and the deadlocks of N-15 need transactions that overlap. On PostgreSQL, with many
  connections: `tests/contract/shared_contract.py` (`test_n8_*`, `test_n9_a_takeover_fences_what_is_under_way`,
  `test_n15_crossing_batches_do_not_block_each_other`) and `tests/unit/store/test_postgres.py` (`test_n8_*`).
- N-16, the listener: `tests/unit/store/test_postgres.py` and `test_postgres_pooler.py` (`test_n16_*`).
- N-20, two versions side by side: `tests/unit/store/test_codec.py` and `test_postgres.py` (`test_d10_*`).
- N-21, the lock beside a SQLite file: `tests/unit/store/test_sqlite.py`, `tests/unit/runtime/test_asking.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import msgspec
import pytest

from headway.core import ahead, firing
from headway.core.actions import Action, Finish, Start
from headway.core.kernel import Kernel
from headway.core.live import LiveRun
from headway.core.session import SessionQueue
from headway.core.stage import Stage
from headway.model.errors import Unavailable
from headway.model.job import Advance, Job
from headway.model.outcome import Outcome
from headway.model.places import Standing
from headway.model.run import AgentName, LaneName, Run, SessionKey
from headway.model.schedule import Every
from headway.model.time import Instant, Span
from headway.model.words import Reason, State
from headway.ports import KEPT, Admission, Granted, Peer, Recorded, Renewal
from headway.runtime.attempts import Attempts
from headway.runtime.claims import Claims
from headway.runtime.membership import Membership
from headway.runtime.ownership import Ownership
from headway.runtime.scribe import Scribe
from headway.store.codec import encode_standing
from headway.store.sqlite import advances, intake, ownership, recording
from headway.store.sqlite.database import Database
from headway.store.sqlite.intake import Session
from headway.store.sqlite.node import Node as StoreNode
from headway.store.sqlite.statements import STATEMENTS
from headway.testing.cluster import (
    Broken,
    ClusterFinding,
    Violation,
    simulate_cluster,
)
from headway.testing.cluster.clocks import NodeClock
from headway.testing.cluster.faults import FaultyStore
from tests.simulation.cluster import scenes

MOST_SEEDS = 100

Patch = Callable[[pytest.MonkeyPatch], None]
Scene = Callable[[], None]


@dataclass(frozen=True)
class Break:
    """What is changed, and what must be found: in a scene made for it, or in random histories."""

    patch: Patch
    found: frozenset[Broken]
    scene: Scene | None
    rush: bool


BREAKS: dict[str, Break] = {}
SCENES: dict[str, Scene] = {}


def breaks(
    rule: str, *found: Broken, scene: Scene | None = None, rush: bool = False
) -> Callable[[Patch], Patch]:
    def register(patch: Patch) -> Patch:
        BREAKS[f"{rule} {patch.__name__}"] = Break(patch, frozenset(found), scene, rush)
        if scene is not None:
            SCENES[scene.__name__] = scene
        return patch

    return register


def in_statement(patch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """Change a statement of the store."""
    statement = STATEMENTS[name]
    assert old in statement.text
    patch.setattr(statement, "text", statement.text.replace(old, new))
    patch.setattr(statement, "_sized", {})


# Nodes and leases (N-1 to N-5).


@breaks("N-1", Broken.LOST, scene=scenes.a_node_crashes_and_its_name_comes_back)
def come_back_as_the_same_incarnation(patch: pytest.MonkeyPatch) -> None:
    enlist = ownership.enlist

    def again(
        database: Database,
        node: StoreNode,
        name: str,
        lease: Span,
        now: Instant,
        *,
        take_over: bool,
        host: str,
    ) -> int:
        known = database.plain("SELECT id FROM nodes WHERE name = ? AND ended = ''", (name,))
        if known:
            assert isinstance(known[0][0], int)
            return known[0][0]
        return enlist(database, node, name, lease, now, take_over=take_over, host=host)

    patch.setattr(ownership, "enlist", again)


@breaks("N-2", Broken.OWNER, scene=scenes.a_machine_sleeps_before_its_node_begins)
def call_runners_without_looking_at_the_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Membership, "holds", lambda self: True)


@breaks("N-2", Broken.OWNER, scene=scenes.a_machine_sleeps_before_its_node_begins)
def count_the_lease_by_a_clock_that_stands_in_a_suspend(patch: pytest.MonkeyPatch) -> None:
    elapsed = NodeClock.elapsed
    patch.setattr(NodeClock, "elapsed", lambda self: elapsed(self) - self._loop.slept)


@breaks("N-2", Broken.ZOMBIE, scene=scenes.a_machine_sleeps_while_its_node_works)
def look_at_the_lease_only_when_it_is_renewed(patch: pytest.MonkeyPatch) -> None:
    async def never(self: Membership) -> None:
        await asyncio.Event().wait()

    patch.setattr(Membership, "watch_lease", never)


@breaks("N-2", Broken.ZOMBIE, scene=scenes.a_node_does_not_reach_the_store)
def never_stop_the_own_attempts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Membership, "_look_at_lease", lambda self: None)


@breaks("N-2", Broken.ZOMBIE, scene=scenes.a_node_does_not_reach_the_store)
def count_the_lease_from_the_answer(patch: pytest.MonkeyPatch) -> None:
    renew = Membership._renew

    async def late(self: Membership) -> None:
        before = self._until
        await renew(self)
        if self._until != before:
            self._until = self._clock.elapsed() + self._settings.lease

    patch.setattr(Membership, "_renew", late)


@breaks("N-3", Broken.LIVE_NODE, scene=scenes.the_clock_steps_while_a_renewal_is_slow)
def go_by_the_wall_clock_when_a_node_is_dead(patch: pytest.MonkeyPatch) -> None:
    async def by_the_wall(self: Membership, renewal: Renewal) -> None:
        now = self._clock.now()
        for peer in renewal.peers:
            counter, since = self._seen.get(peer.id, (-1, now))
            if peer.counter != counter:
                self._seen[peer.id] = (peer.counter, now)
            elif now - since >= peer.lease:
                await self._bury(peer)

    patch.setattr(Membership, "_watch", by_the_wall)


@breaks("N-3", Broken.LIVE_NODE)
def lose_patience_after_half_a_lease(patch: pytest.MonkeyPatch) -> None:
    watch = Membership._watch

    async def hasty(self: Membership, renewal: Renewal) -> None:
        peers = tuple(Peer(peer.id, peer.counter, peer.lease // 2) for peer in renewal.peers)
        await watch(self, msgspec.structs.replace(renewal, peers=peers))

    patch.setattr(Membership, "_watch", hasty)


@breaks("N-4", Broken.LIVE_NODE, scene=scenes.a_node_comes_back_while_it_is_being_buried)
def bury_without_looking_at_the_counter_again(patch: pytest.MonkeyPatch) -> None:
    in_statement(patch, "end_node", "AND counter = coalesce(?, counter)", "AND ? IS NOT ''")


@breaks("N-4", Broken.LOST, scene=scenes.a_node_that_was_buried_is_all_that_is_left)
def let_the_dead_renew(patch: pytest.MonkeyPatch) -> None:
    in_statement(patch, "renew", "AND ended = ''", "")


@breaks("N-5", Broken.FENCE)
def count_epochs_in_the_session(patch: pytest.MonkeyPatch) -> None:
    grant = intake._Admitting._grant

    def counted(
        self: intake._Admitting, asked: intake.Asked, session: Session, *rest: int
    ) -> Admission:
        epoch = session.epoch
        answer = grant(self, asked, session, *rest)
        if isinstance(answer, Granted) and session.epoch != epoch:
            session.epoch = epoch + 1
            return msgspec.structs.replace(answer, epoch=session.epoch)
        return answer

    patch.setattr(intake._Admitting, "_grant", counted)


# Sessions (N-6 to N-14).


@breaks("N-6", Broken.LOST, scene=scenes.two_nodes_send_to_a_session_of_a_third)
def allot_numbers_before_the_session_is_locked(patch: pytest.MonkeyPatch) -> None:
    last: dict[SessionKey, int] = {}

    async def admit(
        self: FaultyStore, run: Run, retry: bool = False, claim: bool = True
    ) -> Admission:
        seq = last[run.session] = last.get(run.session, 0) + 1

        async def call() -> Admission:
            asked = self._store.admit(run, retry, claim)
            admission = await asked if isinstance(asked, Awaitable) else asked
            writer = self._store._writer._database  # type: ignore[attr-defined]
            writer.plain(
                "UPDATE queue SET seq = ? WHERE number = (SELECT number FROM runs WHERE id = ?)",
                (seq, run.id),
            )
            writer.plain(
                "UPDATE sessions SET last_seq = (SELECT max(seq) FROM queue WHERE session = key)"
                " WHERE key = ?",
                (run.session,),
            )
            return admission

        return await self._through(
            "admit", call, lambda admission: self._sight.admitted(run, admission), run.session
        )

    patch.setattr(FaultyStore, "admit", admit)


@breaks("N-7", Broken.LOST, Broken.ORDER)
def give_a_session_back_whatever_has_come(patch: pytest.MonkeyPatch) -> None:
    write = recording._Recording._write_releases

    def careless(self: recording._Recording) -> None:
        for release in self._releases:
            self._sessions[release.session].last_seq = release.seen
        write(self)

    patch.setattr(recording._Recording, "_write_releases", careless)
    in_statement(
        patch,
        "drop_idle",
        "AND NOT EXISTS (SELECT 1 FROM queue WHERE queue.session = sessions.key)",
        "",
    )


@breaks("N-7", Broken.LOST)
def never_look_at_the_own_sessions(patch: pytest.MonkeyPatch) -> None:
    async def blind(self: Claims) -> None:
        self._all_news = False
        self._fresh.clear()

    patch.setattr(Claims, "_read_news", blind)


@breaks("N-9", Broken.ONE_OUTCOME, scene=scenes.an_attempt_ends_right_after_its_machine_slept)
def write_without_being_the_owner(patch: pytest.MonkeyPatch) -> None:
    read = intake.read_sessions

    def all_mine(database: Database, keys: Sequence[SessionKey]) -> dict[SessionKey, Session]:
        found = read(database, keys)
        for key in keys:
            session = found.setdefault(key, Session(key))
            session.owner, session.epoch = _Anything(), _Anything()  # type: ignore[assignment]
        return found

    patch.setattr(recording, "read_sessions", all_mine)


class _Anything:
    """Equal to whatever it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__


@breaks("N-10", Broken.OVERLAP, Broken.ONE_OUTCOME, scene=scenes.one_run_after_the_other)
def store_a_start_before_the_outcome_before_it(patch: pytest.MonkeyPatch) -> None:
    record = Scribe._record

    async def in_two(self: Scribe, actions: Sequence[Action]) -> Recorded:
        starts = [action for action in actions if isinstance(action, Start)]
        others = [action for action in actions if not isinstance(action, Start)]
        first = await record(self, starts) if starts else KEPT
        second = await record(self, others) if others else KEPT
        return Recorded((*first.lost, *second.lost), (*first.kept, *second.kept))

    patch.setattr(Scribe, "_record", in_two)


@breaks(
    "N-11",
    Broken.OVERLAP,
    Broken.ONE_OUTCOME,
    Broken.ATTEMPTS,
    scene=scenes.several_runs_of_one_session_at_once,
)
def put_all_attempts_of_a_session_into_one_slot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionQueue, "free_slot", lambda self: 0)


@breaks("N-12", Broken.ATTEMPTS, scene=scenes.a_node_dies_before_the_last_retry)
def forget_where_a_run_stands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        recording,
        "encode_standing",
        lambda standing: encode_standing(Standing(standing.after, begun=standing.begun)),
    )


@breaks("N-12", Broken.STEERING, scene=scenes.a_turn_that_took_a_message_is_lost)
def count_a_receipt_before_the_turn_has_its_outcome(patch: pytest.MonkeyPatch) -> None:
    absorb = Stage.absorb

    def hasty(self: Stage, turn: LiveRun, message: LiveRun) -> None:
        absorb(self, turn, message)
        outcome = Outcome(State.CANCELLED, Reason.MERGED, into=turn.run.id)
        self.actions.append(Finish(message.run, outcome, 0, message.session.epoch, self.now))

    patch.setattr(Stage, "absorb", hasty)


@breaks("N-13", Broken.ANSWER, scene=scenes.a_session_is_stopped_from_another_node)
def forget_orders_in_a_takeover(patch: pytest.MonkeyPatch) -> None:
    in_statement(patch, "open_orders", "answer IS NULL", "answer IS NULL AND seq < 0")


@breaks("N-14", Broken.CHILDREN, scene=scenes.a_turn_is_stopped_while_it_delegates)
def take_children_of_runs_that_were_stopped(patch: pytest.MonkeyPatch) -> None:
    refusal = intake._Admitting._refusal

    def blind(self: intake._Admitting, run: Run) -> Outcome | None:
        return refusal(self, msgspec.structs.replace(run, ancestors=()))

    patch.setattr(intake._Admitting, "_refusal", blind)


@breaks("N-14", Broken.CHILDREN, scene=scenes.a_turn_with_a_child_elsewhere_is_stopped)
def forget_children_in_sessions_of_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recording._Recording, "_cancel_descendants", lambda self, run: None)


# Batches (N-15) and hints (N-16).


@breaks(
    "N-15",
    Broken.LOST,
    Broken.OWNER,
    Broken.ONE_OUTCOME,
    Broken.ORDER,
    Broken.ATTEMPTS,
    Broken.CHILDREN,
)
def never_repeat_a_batch(patch: pytest.MonkeyPatch) -> None:
    async def once(self: Scribe, actions: Sequence[Action]) -> Recorded:
        try:
            return await self._store.record(actions)
        except Unavailable:
            return KEPT

    patch.setattr(Scribe, "_record", once)


@breaks("N-15", Broken.KEYS)
def take_a_key_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(intake._Admitting, "_earlier", lambda self, asked: None)


@breaks("N-16", Broken.ORDER, scene=scenes.no_hint_ever_comes)
def never_poll(patch: pytest.MonkeyPatch) -> None:
    never = property(lambda self: self._clock.now(), lambda self, at: None)
    patch.setattr(Claims, "_polled_at", never, raising=False)


@breaks("N-16", Broken.ORDER, scene=scenes.a_poll_is_far_away)
def tell_nobody_that_there_is_work(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoreNode, "hint_all", lambda self, hint: None)


# Fairness over nodes (N-17, N-18).


@breaks("N-17", Broken.ORDER, scene=scenes.one_agent_has_much_waiting_and_another_one_run)
def claim_in_the_order_of_ranks_alone(patch: pytest.MonkeyPatch) -> None:
    ready = ownership._ready

    def by_rank(
        database: Database, room: object, agents: frozenset[AgentName], *rest: object
    ) -> tuple[list[str], bool]:
        rows = database.plain(
            "SELECT key FROM sessions WHERE owner IS NULL AND ready_at IS NOT NULL ORDER BY rank"
        )
        chosen, more = ready(database, room, agents, *rest)  # type: ignore[arg-type]
        return [str(key) for (key,) in rows[: len(chosen)]], more

    patch.setattr(ownership, "_ready", by_rank)


@breaks("N-17", Broken.ORDER, scene=scenes.a_second_node_comes_to_help)
def keep_what_cannot_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ownership, "put_back", lambda self, sessions: None)


@breaks("N-18", Broken.CLUSTER_LIMIT)
def hand_out_more_slots_than_there_are(patch: pytest.MonkeyPatch) -> None:
    hold = ownership.hold_slots

    def generous(
        database: Database, node: StoreNode, lane: LaneName, limit: int, count: int
    ) -> int:
        return hold(database, node, lane, limit + 1, count)

    patch.setattr(ownership, "hold_slots", generous)


# Time and order (N-19).


@breaks("N-19", Broken.ORDER, scene=scenes.one_run_is_due_later_and_one_now)
def let_the_first_run_say_when_a_session_is_ready(patch: pytest.MonkeyPatch) -> None:
    add_work = Session.add_work

    def first_only(self: Session, *work: object) -> None:
        if self.ready_at is None:
            add_work(self, *work)  # type: ignore[arg-type]

    patch.setattr(Session, "add_work", first_only)


# Jobs (C-5, C-10, C-12).


def _whatever_the_version(patch: pytest.MonkeyPatch) -> None:
    take = advances._Advancing._take

    def careless(self: advances._Advancing, asked: Advance) -> bool:
        stand = self._stands.get(asked.job)
        if stand is not None:
            stand.version = asked.version
        return take(self, asked)

    patch.setattr(advances._Advancing, "_take", careless)


@breaks("C-10", Broken.PAUSED, scene=scenes.a_job_is_paused_while_a_node_fires_it)
def fire_whatever_the_version(patch: pytest.MonkeyPatch) -> None:
    _whatever_the_version(patch)


@breaks("C-5", Broken.FIRED_TWICE, scene=scenes.a_node_is_slow_to_fire_what_another_fires_too)
def fire_whatever_the_version_and_the_log(patch: pytest.MonkeyPatch) -> None:
    _whatever_the_version(patch)
    patch.setattr(advances, "_made", lambda asked: [])
    in_statement(patch, "add_firings", "INSERT INTO", "INSERT OR IGNORE INTO")


@breaks("C-5", Broken.CADENCE)
def fire_next_a_period_after_this_one_was_fired(patch: pytest.MonkeyPatch) -> None:
    _from_the_firing(patch)


@breaks("C-5", Broken.CADENCE, scene=scenes.a_job_whose_runs_take_their_time)
def fire_next_a_period_after_now(patch: pytest.MonkeyPatch) -> None:
    _from_the_firing(patch)


def _from_the_firing(patch: pytest.MonkeyPatch) -> None:
    def drifting(job: Job, now: Instant) -> Instant | None:
        assert isinstance(job.schedule, Every)
        return now + job.schedule.period

    patch.setattr(firing, "_after", drifting)


@breaks("C-5", Broken.CADENCE, scene=scenes.the_node_that_fires_dies_again_and_again)
def move_on_before_the_firing_is_kept(patch: pytest.MonkeyPatch) -> None:
    """In two steps: first where the job stands, then what it has made."""
    advance = FaultyStore.advance

    async def in_two(
        self: FaultyStore, asked: Sequence[Advance]
    ) -> Sequence[tuple[Admission, ...] | None]:
        moves = [msgspec.structs.replace(one, runs=(), claims=(), entries=()) for one in asked]
        moved = await advance(self, moves)
        rest = [
            msgspec.structs.replace(one, version=one.version + 1)
            for one, was in zip(asked, moved, strict=True)
            if was is not None
        ]
        answers = iter(await advance(self, rest))
        return [None if was is None else next(answers) for was in moved]

    patch.setattr(FaultyStore, "advance", in_two)


@breaks("C-5", Broken.CADENCE, scene=scenes.a_machine_is_ahead_of_the_others)
def go_by_the_clock_of_the_machine(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeClock, "wall", NodeClock.now)


@breaks("C-12", Broken.CADENCE, scene=scenes.a_job_is_added_where_no_agent_runs)
def tell_nobody_of_jobs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoreNode, "hint_all", lambda self, hint: None)


# Work that outlives its node (W-2).


@breaks("W-2", Broken.GIVEN_UP, scene=scenes.a_worker_outlives_its_node_beside_another)
def look_for_no_worker(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ownership, "_with_worker", lambda self, place: place)


@breaks("W-2", Broken.GIVEN_UP, scene=scenes.a_worker_outlives_its_node_beside_another)
def store_no_start_as_one_that_outlives_its_node(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kernel, "set_outliving", lambda self, name, on: None)


@breaks("W-2", Broken.TWO_WORKERS, scene=scenes.a_worker_outlives_its_node_beside_another)
def begin_an_adopted_attempt_anew(patch: pytest.MonkeyPatch) -> None:
    go_on = Stage.go_on

    def anew(self: Stage, live: LiveRun) -> None:
        go_on(self, live)
        start = self.actions[-1]
        assert isinstance(start, Start)
        self.actions[-1] = msgspec.structs.replace(start, adopts=False)

    patch.setattr(Stage, "go_on", anew)


@breaks("W-2", Broken.RESERVED, scene=scenes.a_worker_waits_for_a_node_of_its_machine)
def leave_nothing_to_its_machine(patch: pytest.MonkeyPatch) -> None:
    in_statement(patch, "reserve", "?2 + gone.grace", "?2")


@breaks("W-2", Broken.RESERVED, scene=scenes.a_machine_does_not_come_back)
def leave_it_to_its_machine_for_ever(patch: pytest.MonkeyPatch) -> None:
    in_statement(patch, "reserve", "?2 + gone.grace", "?2 + 1000 * gone.grace")


@breaks("D-5", Broken.RESERVED, scene=scenes.a_machine_does_not_come_back)
def say_nothing_of_when_it_is_free(patch: pytest.MonkeyPatch) -> None:
    in_statement(patch, "next_reserved", "reserved_until > ?1", "reserved_until > ?1 AND FALSE")


@breaks("W-2", Broken.GIVEN_UP, Broken.TWO_WORKERS)
def adopt_nothing_in_random_histories(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ownership, "_with_worker", lambda self, place: place)


# Starts stored ahead of their slots.


@breaks("L-2", Broken.LANE, rush=True)
def begin_what_was_started_ahead_without_a_slot(patch: pytest.MonkeyPatch) -> None:
    begin = Attempts.begin

    def at_once(self: Attempts, start: Start, loop: asyncio.AbstractEventLoop) -> bool:
        begun = begin(self, start, loop)
        turn = self.get(start.ticket)
        if turn is None or turn.work is not None:
            return begun
        self._set_off(turn, start.ticket)
        return True

    patch.setattr(Attempts, "begin", at_once)


@breaks("L-2", Broken.LANE, rush=True)
def call_up_more_than_there_are_slots(patch: pytest.MonkeyPatch) -> None:
    call_up = ahead.call_up

    def for_nothing(stage: Stage, live: LiveRun) -> None:
        call_up(stage, live)
        live.lane.in_use -= 1

    patch.setattr(ahead, "call_up", for_nothing)


@breaks(
    "L-2",
    Broken.LANE,
    scene=scenes.an_attempt_is_left_behind_while_another_run_waits_for_its_slot,
)
def call_nobody_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ahead, "call_all_back", lambda stage, lane: None)


def find(most: int = MOST_SEEDS, *, rush: bool = False) -> ClusterFinding:
    """The first finding, within a bounded number of seeds."""
    for seed in range(most):
        try:
            simulate_cluster(seed, rush=rush)
        except ClusterFinding as finding:
            return finding
    raise AssertionError(f"not found in {most} seeds")


@pytest.mark.parametrize("name", list(BREAKS))
def test_a_broken_rule_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = BREAKS[name]
    broken.patch(monkeypatch)
    if broken.scene is None:
        finding = find(rush=broken.rush)
        assert finding.promise in broken.found, str(finding)
    else:
        with pytest.raises(Violation) as found:
            broken.scene()
        assert found.value.promise in broken.found, str(found.value)


@pytest.mark.parametrize("name", list(SCENES))
def test_the_same_scene_passes_when_nothing_is_broken(name: str) -> None:
    SCENES[name]()


def test_every_rule_that_can_be_broken_here_is() -> None:
    elsewhere = {8, 20, 21}
    broken = {int(name.split()[0].removeprefix("N-")) for name in BREAKS if name.startswith("N-")}
    assert broken == set(range(1, 20)) - elsewhere


def test_a_finding_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    take_a_key_twice(monkeypatch)
    finding = find()
    with pytest.raises(ClusterFinding) as again:
        simulate_cluster(finding.seed)
    assert str(again.value) == str(finding)
    assert str(finding).startswith(f"seed {finding.seed}: keys: ")
