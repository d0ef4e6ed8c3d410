"""What only the memory store does: it forgets, so that it never grows without bound."""

import asyncio
from collections.abc import Sized

from headway import Outcome, Settings, State
from headway.core.actions import Finish, Release, Remember, Start
from headway.model.places import Order, StopAll
from headway.model.run import AgentName, LaneName, Run, RunId, SessionKey, SessionMemory
from headway.model.time import DAY, MINUTE, SECOND
from headway.model.words import Source
from headway.ports import Granted
from headway.store.memory import MemoryStore
from headway.testing import VirtualClock

DONE = Outcome(State.DONE)


def _run(number: int, **fields: object) -> Run:
    said: dict[str, object] = {
        "id": RunId(f"run-{number}"),
        "agent": AgentName("a"),
        "session": SessionKey(f"s{number}"),
        "source": Source.MESSAGE,
        "lane": LaneName("main"),
        "priority": 0,
        "submitted_at": 0,
        **fields,
    }
    return Run(**said)  # type: ignore[arg-type]


async def _carry_through(store: MemoryStore, clock: VirtualClock, run: Run) -> None:
    granted = store.admit(run)
    assert isinstance(granted, Granted)
    await store.record(
        [
            Start(run, 1, 1, granted.epoch, clock.now()),
            Finish(run, DONE, 1, granted.epoch, clock.now()),
            Release(run.session, granted.epoch, granted.seq),
        ]
    )


def _sizes(store: MemoryStore) -> dict[str, int]:
    sizes = {name: len(value) for name, value in vars(store).items() if isinstance(value, Sized)}
    return {name: size for name, size in sizes.items() if size}


def test_s4_with_no_retention_nothing_is_left_of_a_finished_run() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(Settings(retention=0, task_retention=0), clock)
        for number in range(100):
            await _carry_through(store, clock, _run(number))
            await _carry_through(store, clock, _run(1000 + number, source=Source.TASK))
        assert _sizes(store) == {}

    asyncio.run(main())


def test_s4_finished_runs_are_bounded_by_number() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(Settings(retained_runs=10), clock)
        for number in range(100):
            await _carry_through(store, clock, _run(number))
        assert max(_sizes(store).values()) <= 10
        assert await store.find(RunId("run-99")) is not None
        assert await store.find(RunId("run-0")) is None

    asyncio.run(main())


def test_s8_ids_of_messages_are_forgotten_after_the_window() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(Settings(retention=0), clock)
        for number in range(1000):
            await _carry_through(store, clock, _run(number, message_id=str(number)))
            clock.advance(2 * SECOND)
        assert max(_sizes(store).values()) <= 20 * 60 / 2 + 1
        clock.advance(20 * MINUTE)
        await _carry_through(store, clock, _run(1001, message_id="last"))
        assert max(_sizes(store).values()) == 1

    asyncio.run(main())


def test_s9_cutoffs_are_forgotten_after_their_time_and_options_are_not() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(Settings(cutoff_memory=DAY), clock)
        for number in range(50):
            key = SessionKey(f"s{number}")
            granted = await store.order(Order(key, key, StopAll()))
            assert isinstance(granted, Granted)
            memory = SessionMemory(cutoff_at=clock.now(), cutoff_id=number)
            await store.record(
                [Remember(key, memory, granted.epoch), Release(key, granted.epoch, granted.seq)]
            )
            clock.advance(MINUTE)
        clock.advance(DAY)
        key = SessionKey("last")
        granted = await store.order(Order(key, key, StopAll()))
        assert isinstance(granted, Granted)
        await store.record(
            [
                Remember(key, SessionMemory(overflow=("x",)), granted.epoch),
                Release(key, granted.epoch, granted.seq),
            ]
        )
        assert max(_sizes(store).values()) == 1
        assert await store.memory_of(key) == SessionMemory(overflow=("x",))

    asyncio.run(main())
