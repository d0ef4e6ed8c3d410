"""What every store must do with runs that are kept all, or none (`Ledger.admit_together`, T-5)."""

import asyncio

import msgspec

from headway import Outcome, State
from headway.core.actions import Remember
from headway.model.errors import HeadwayError
from headway.model.places import StopAll
from headway.model.run import AgentName, QueueOptions, Run, SessionKey, SessionMemory
from headway.model.settings import Limits
from headway.model.task import Task
from headway.model.time import MINUTE
from headway.model.words import Reason, Source
from headway.ports import Admission, Duplicate, Elsewhere, Granted, Hint, RunQuery, TurnedAway
from tests.contract.cluster import Cluster, Node, over_the_nodes
from tests.contract.world import CHAT, ODD, STOPPED, Suite, World, ask, over_the_store, view_of

FULL = TurnedAway(Outcome(State.REJECTED, Reason.QUEUE_FULL))
MEMORY = SessionMemory(options=QueueOptions(cap=3))
ROUNDS = 12
"""How often a race is run."""


class TogetherContract(Suite):
    """Derive from it, name the class `Test…`, and say how to make the store."""

    @over_the_store
    async def test_t5_all_are_kept_and_each_has_its_place(self, world: World) -> None:
        tasks = [_task(world, session) for session in ("s", "t", "s", "s")]
        answers = [_granted(answer) for answer in await _kept(world, tasks)]
        assert [answer.seq for answer in answers] == [1, 1, 2, 3]
        assert [answer.fresh for answer in answers] == [True, True, False, False]
        assert answers[0].epoch == answers[2].epoch == answers[3].epoch != answers[1].epoch
        for task in tasks:
            assert (await view_of(world.store, task)).run == task
        assert await world.listed() == [task.id for task in reversed(tasks)]

    @over_the_store
    async def test_t1_a_task_comes_back_as_it_was(self, world: World) -> None:
        asked = Task("click", ODD, "#a", "r1", {"deep": [1, None, {"x": 2.5}], ODD: [True, ODD]})
        task = _task(world, task=asked, traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
        await _kept(world, [task])
        assert (await view_of(world.store, task)).run == task

    @over_the_store
    async def test_t5_nothing_comes_of_nothing(self, world: World) -> None:
        assert list(await _kept(world, [])) == []
        assert await world.listed() == []

    @over_the_store
    async def test_t5_none_is_kept_where_one_is_too_many(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=5, max_queue_per_agent=3))
        waits = await world.admit("w", source=Source.TASK)
        tasks = [_task(world, f"t{number}", idempotency_key=str(number)) for number in range(3)]
        assert await _together(world, tasks) == FULL
        assert await world.listed() == [waits.id], "not even as refused"
        await _kept(world, tasks[:2])
        others = [_task(world, f"o{number}", agent=AgentName("b")) for number in range(3)]
        assert await _together(world, others) == FULL, "three wait, and five may"
        await _kept(world, others[:2])
        assert await _together(world, [_task(world, "last")]) == FULL
        assert len(await world.listed()) == 5

    @over_the_store
    async def test_d6_what_was_not_kept_has_left_no_key(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=1, max_queue_per_agent=1))
        tasks = [_task(world, name, idempotency_key=name) for name in "ab"]
        assert await _together(world, tasks) == FULL
        for name in "ab":
            world.store.set_limits(Limits())
            answer = await world.try_admit(name, source=Source.TASK, idempotency_key=name)
            assert isinstance(answer, Granted)
            assert (answer.seq, answer.fresh) == (1, True), "nor a place, nor an owner"

    @over_the_store
    async def test_f1_only_waiting_tasks_take_room(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=2, max_queue_per_agent=2))
        for number in range(2):
            run = await world.admit(f"r{number}", source=Source.TASK)
            await world.record(world.start(run))
        ended = await world.admit("e", source=Source.TASK)
        await world.carry_through(ended)
        mixed = [_task(world, "m", source=Source.MESSAGE) for _ in range(5)]
        tasks = [_task(world, f"t{number}") for number in range(2)]
        await _kept(world, [*mixed, *tasks])
        assert await _together(world, [_task(world, "last")]) == FULL
        await _kept(world, [_task(world, "m", source=Source.MESSAGE)])

    @over_the_store
    async def test_d6_those_asked_for_before_take_no_room(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=3, max_queue_per_agent=3))
        earlier = await world.admit("e", source=Source.TASK, idempotency_key="k")
        first = _task(world, "a", idempotency_key="new")
        tasks = [
            _task(world, "k", idempotency_key="k"),
            first,
            _task(world, "b", idempotency_key="new"),
            _task(world, "c"),
        ]
        known, kept, twice, plain = await _kept(world, tasks)
        assert known == Duplicate(earlier.id)
        assert isinstance(kept, Granted)
        assert twice == Duplicate(first.id), "the same key again, among these"
        assert isinstance(plain, Granted)
        assert sorted(await world.listed()) == sorted([earlier.id, first.id, tasks[3].id])
        again = [_task(world, name, idempotency_key=name) for name in ("k", "new", "k")]
        answers = await _kept(world, again)
        assert answers == [Duplicate(earlier.id), Duplicate(first.id), Duplicate(earlier.id)]

    @over_the_store
    async def test_d6_one_that_was_asked_before_does_not_take_its_other_key(
        self, world: World
    ) -> None:
        known = await world.admit("e", message_id="7", route=CHAT)
        fields: dict[str, object] = {"source": Source.MESSAGE, "route": CHAT}
        runs = [
            _task(world, "a", message_id="7", idempotency_key="k", **fields),
            _task(world, "b", idempotency_key="k", **fields),
        ]
        first, second = await _kept(world, runs)
        assert first == Duplicate(known.id)
        assert isinstance(second, Granted)

    @over_the_store
    async def test_t5_none_is_kept_where_the_one_too_many_has_a_key_of_another(
        self, world: World
    ) -> None:
        world.store.set_limits(Limits(max_queue=2, max_queue_per_agent=2))
        known = await world.admit("e", source=Source.TASK, message_id="7", route=CHAT)
        tasks = [
            _task(world, "a", message_id="7", route=CHAT, idempotency_key="k"),
            _task(world, "b", route=CHAT, idempotency_key="k"),
            _task(world, "c"),
        ]
        assert await _together(world, tasks) == FULL
        assert await world.listed() == [known.id]
        answers = await _kept(world, tasks[:2])
        assert [type(answer) for answer in answers] == [Duplicate, Granted]

    @over_the_store
    async def test_d6_it_is_as_if_each_came_after_the_one_before(self, world: World) -> None:
        fields: dict[str, object] = {"source": Source.MESSAGE, "route": CHAT}
        runs = [
            _task(world, "a", idempotency_key="k", **fields),
            _task(world, "b", message_id="7", idempotency_key="k", **fields),
            _task(world, "c", message_id="7", **fields),
            _task(world, "c", message_id="7", **fields),
        ]
        first, second, third, fourth = await _kept(world, runs)
        assert isinstance(first, Granted)
        assert second == Duplicate(runs[0].id), "by its key; so its message is not taken yet"
        assert isinstance(third, Granted)
        assert fourth == Duplicate(runs[2].id)

    @over_the_store
    async def test_s8_its_message_leads_a_run_before_its_key_does(self, world: World) -> None:
        places = range(40)
        by_message = [_task(world, f"m{n}", message_id=str(n), route=CHAT) for n in places]
        by_key = [_task(world, f"k{n}", idempotency_key=str(n)) for n in places]
        await _kept(world, by_message)
        await _kept(world, by_key)
        both = [
            _task(world, "b", message_id=str(n), route=CHAT, idempotency_key=str(n)) for n in places
        ]
        expected = [Duplicate(run.id) for run in by_message]
        assert await _kept(world, both) == expected
        assert list(await asyncio.gather(*(ask(world.store, run) for run in both))) == expected

    @over_the_store
    async def test_s8_a_key_that_ended_is_free(self, world: World) -> None:
        earlier = await world.admit("e", source=Source.TASK, message_id="7")
        await world.carry_through(earlier)
        world.clock.advance(self.settings.dedupe + MINUTE)
        (answer,) = await _kept(world, [_task(world, "e", message_id="7")])
        assert isinstance(answer, Granted)

    @over_the_store
    async def test_f6_a_batch_is_listed_with_the_rest(self, world: World) -> None:
        tasks = [_task(world, f"t{number}") for number in range(50)]
        await _kept(world, tasks)
        page = await world.store.list(RunQuery(limit=20, source=Source.TASK))
        rest = await world.listed(limit=50, cursor=page.cursor, source=Source.TASK)
        ids = [view.id for view in page.runs] + rest
        assert ids == [task.id for task in reversed(tasks)]


class DurableTogetherContract(TogetherContract):
    """Of stores that outlive their process."""

    @over_the_store
    async def test_n15_a_repeated_call_is_answered_as_the_first_time(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=4, max_queue_per_agent=4))
        earlier = await world.admit("e", source=Source.TASK, idempotency_key="k")
        tasks = [
            _task(world, "a", idempotency_key="new"),
            _task(world, "a"),
            _task(world, "b", idempotency_key="k"),
            _task(world, "c", idempotency_key="new"),
            _task(world, "d"),
        ]
        claims = [True, True, True, True, False]
        first = await _kept(world, tasks, claims)
        for _ in range(2):
            again = await _kept(world, tasks, claims)
            assert [_lasting(answer) for answer in again] == [_lasting(one) for one in first]
            assert again[2] == Duplicate(earlier.id)
        assert len(await world.listed()) == 4, "also while there is room for no other"
        (holding,) = await world.store.news({SessionKey("a"): 0})
        assert [place.run for place in holding.places] == tasks[:2]
        assert await _together(world, [_task(world, "last")]) == FULL

    @over_the_store
    async def test_n15_a_repeated_call_is_not_turned_away_because_of_itself(
        self, world: World
    ) -> None:
        world.store.set_limits(Limits(max_queue=3, max_queue_per_agent=3))
        tasks = [_task(world, name) for name in "abc"]
        first = await _kept(world, tasks)
        again = await _kept(world, tasks)
        assert [_lasting(answer) for answer in again] == [_lasting(answer) for answer in first]
        root = await world.admit("root")
        await world.record(world.start(root))
        below = {"parent": root.id, "ancestors": (root.id,), "root": root.session}
        child = world.run("child", source=Source.DELEGATION, **below)
        await _kept(world, [child])
        await world.record(world.finish(root))
        (answer,) = await _kept(world, [child])
        assert isinstance(answer, Granted), "its parent has ended since"

    @over_the_store
    async def test_n15_of_the_same_call_at_once_one_is_kept(self, world: World) -> None:
        tasks = [_task(world, name, idempotency_key=name) for name in ("a", "b", "a")]
        calls = await asyncio.gather(*(_kept(world, tasks) for _ in range(5)))
        for answers in calls:
            assert [type(answer) for answer in answers] == [Granted, Granted, Duplicate]
        assert sorted(await world.listed()) == sorted(task.id for task in tasks[:2])

    @over_the_store
    async def test_t5_they_wait_for_the_next_process(self, world: World) -> None:
        tasks = [_task(world, session) for session in ("s", "s", "t")]
        await _kept(world, tasks)
        await world.restart()
        holdings = await world.claim_all()
        found = [place.run for name in "st" for place in holdings[SessionKey(name)].places]
        assert found == tasks

    @over_the_store
    async def test_n17_a_session_is_taken_only_where_it_is_wanted(self, world: World) -> None:
        await world.record(Remember(SessionKey("s"), MEMORY, (await world.order(StopAll())).epoch))
        tasks = [_task(world, session) for session in ("s", "u", "v", "v")]
        answers = await _kept(world, tasks, [False, False, True, True])
        owned, left, taken, _ = answers
        assert isinstance(owned, Granted), "it was this node's before"
        assert owned.memory == MEMORY
        assert left == Elsewhere(1, owned=False)
        assert isinstance(taken, Granted)
        assert list(await world.claim_all()) == ["u"]

    @over_the_store
    async def test_n15_what_no_database_takes_spoils_all_of_them_and_nothing_else(
        self, world: World
    ) -> None:
        good, half = _task(world, "good"), _task(world, "half \ud83d")
        neighbour = world.run("neighbour")
        refused, answer = await asyncio.gather(
            _together(world, [good, half]), ask(world.store, neighbour), return_exceptions=True
        )
        assert isinstance(refused, HeadwayError)
        assert isinstance(answer, Granted)
        assert await world.listed() == [neighbour.id]
        await _kept(world, [good])

    @over_the_store
    async def test_x3_what_a_stopped_run_asks_for_is_turned_away_whole(self, world: World) -> None:
        root = await world.admit("root")
        await world.record(world.start(root))
        child = {"parent": root.id, "ancestors": (root.id,), "root": root.session}
        (kept,) = await _kept(world, [_task(world, "kept", **child)])
        assert isinstance(kept, Granted)
        await world.record(world.finish(root))
        late = [_task(world, "plain"), _task(world, "late", **child)]
        assert await _together(world, late) == TurnedAway(STOPPED)
        assert len(await world.listed()) == 2

    @over_the_store
    async def test_f1_beside_single_ones_the_limit_is_exact(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=20, max_queue_per_agent=20))
        batches = [
            [_task(world, f"b{number}-{place}") for place in range(3)] for number in range(6)
        ]
        singles = [_task(world, f"s{number}") for number in range(7)]
        said = await asyncio.gather(
            *(_together(world, batch) for batch in batches),
            *(ask(world.store, task) for task in singles),
        )
        taken = sum(3 for answer in said[:6] if not isinstance(answer, TurnedAway))
        taken += sum(1 for answer in said[6:] if isinstance(answer, Granted))
        assert 18 <= taken <= 20
        assert len(await world.listed(state=State.QUEUED, limit=100)) == taken
        single = await ask(world.store, _task(world, "one more"))
        assert isinstance(single, Granted) is (taken < 20)


class SharedTogetherContract(Suite):
    """Of stores that several nodes share."""

    @over_the_nodes
    async def test_f1_the_limits_hold_over_all_nodes(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        for _ in range(ROUNDS):
            for node in (a, b):
                node.store.set_limits(Limits(max_queue=10, max_queue_per_agent=10))
            said = await asyncio.gather(
                *(
                    _together(node, [_task(node, f"{node.name}{n}-{p}") for p in range(4)])
                    for n in range(4)
                    for node in (a, b)
                )
            )
            kept = [answers for answers in said if not isinstance(answers, TurnedAway)]
            assert len(kept) == 2
            waiting = await a.store.list(RunQuery(state=State.QUEUED))
            assert len(waiting.runs) == 8
            assert not (await b.store.list(RunQuery(state=State.REJECTED))).runs
            for node in (a, b):
                await _end_all(node)

    @over_the_nodes
    async def test_n6_each_goes_to_who_has_its_session_and_others_are_told(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        await a.admit("owned")
        b.hints.clear()
        a.hints.clear()
        tasks = [_task(b, session) for session in ("owned", "mine", "free")]
        owned, mine, free = await _kept(b, tasks, [True, True, False])
        assert owned == Elsewhere(2, owned=True)
        assert isinstance(mine, Granted)
        assert free == Elsewhere(1, owned=False)
        await a.heard(Hint.NEWS)
        assert [place.run for place in (await a.news("owned", 1)).places] == [tasks[0]]
        assert list(await a.claim_all()) == ["free"]

    @over_the_nodes
    async def test_n16_work_that_nobody_has_is_told(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        await _kept(a, [_task(a, "s"), _task(a, "t")], [False, False])
        await b.heard(Hint.WORK)
        assert sorted(await b.claim_all()) == ["s", "t"]

    @over_the_nodes
    async def test_n4_a_dead_node_is_given_nothing(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        await b.bury(a)
        answers = await _kept(a, [_task(a, "s"), _task(a, "t")])
        assert answers == [Elsewhere(1, owned=False)] * 2
        assert sorted(await b.claim_all()) == ["s", "t"]

    @over_the_nodes
    async def test_n21_who_is_no_node_adds_and_takes_nothing(self, cluster: Cluster) -> None:
        a = await cluster.node("a")
        guest = await cluster.guest()
        answers = await _kept(guest, [_task(guest, "s"), _task(guest, "t")])
        assert answers == [Elsewhere(1, owned=False)] * 2
        assert sorted(await a.claim_all()) == ["s", "t"]

    @over_the_nodes
    async def test_d6_over_all_nodes_one_of_the_same_is_taken(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        for turn in range(ROUNDS):
            keys = [f"{turn}-{number}" for number in range(4)]
            batches = [
                (node, [_task(node, f"{node.name}{key}", idempotency_key=key) for key in order])
                for node, order in ((a, keys), (b, keys[::-1]))
            ]
            said = await asyncio.gather(*(_kept(node, tasks) for node, tasks in batches))
            taken = {
                str(task.idempotency_key): task.id
                for (_, tasks), answers in zip(batches, said, strict=True)
                for task, answer in zip(tasks, answers, strict=True)
                if isinstance(answer, Granted)
            }
            assert sorted(taken) == keys
            for (_, tasks), answers in zip(batches, said, strict=True):
                for task, answer in zip(tasks, answers, strict=True):
                    if isinstance(answer, Duplicate):
                        assert answer.run_id == taken[str(task.idempotency_key)]
        listed = await a.store.list(RunQuery(limit=1_000))
        assert len(listed.runs) == 4 * ROUNDS

    @over_the_nodes
    async def test_n15_crossing_batches_do_not_block_each_other(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        names = [f"s{number:02}" for number in range(20)]
        for _ in range(3):
            batches = [
                (node, [_task(node, name, source=Source.MESSAGE) for name in order])
                for node, order in ((a, names), (b, names[::-1]), (a, names[::-1]), (b, names))
            ]
            said = await asyncio.gather(*(_kept(node, runs) for node, runs in batches))
            assert [len(answers) for answers in said] == [20] * 4
        assert len((await a.store.list(RunQuery(limit=1_000))).runs) == 240


def _task(world: World, session: str = "s", **fields: object) -> Run:
    return world.run(session, **{"source": Source.TASK, **fields})


async def _together(
    world: World, runs: list[Run], claims: list[bool] | None = None
) -> list[Admission] | TurnedAway:
    said = await world.store.admit_together(runs, claims or [True] * len(runs))
    return said if isinstance(said, TurnedAway) else list(said)


async def _kept(world: World, runs: list[Run], claims: list[bool] | None = None) -> list[Admission]:
    """What became of each, where all are kept."""
    answers = await _together(world, runs, claims)
    assert not isinstance(answers, TurnedAway), answers
    assert len(answers) == len(runs)
    for run, answer in zip(runs, answers, strict=True):
        if isinstance(answer, Granted):
            world.hold(run, answer)
    return answers


def _granted(answer: Admission) -> Granted:
    assert isinstance(answer, Granted), answer
    return answer


def _lasting(answer: Admission) -> Admission:
    """An answer as it comes again: what is fresh is so only once."""
    if isinstance(answer, Granted):
        return msgspec.structs.replace(answer, fresh=False)
    return answer


async def _end_all(node: Node) -> None:
    """End what this node has, so that the next round finds room."""
    for holding in await node.store.news({}, complete=True):
        node.take(holding)
        for place in holding.places:
            await node.record(node.finish(place.run, STOPPED, attempt=0))
