"""The memory store keeps the contract of all stores."""

from collections.abc import Iterator
from contextlib import contextmanager

from headway import Settings, State
from headway.model.time import MINUTE
from headway.store.memory import MemoryStore
from headway.testing import VirtualClock
from tests.contract.outbox_contract import OutboxContract
from tests.contract.store_contract import StoreContract
from tests.contract.timetable_contract import TimetableContract
from tests.contract.together_contract import TogetherContract
from tests.contract.vault_contract import VaultContract
from tests.contract.workers_contract import WorkersContract
from tests.contract.world import Maker, Suite, World, over_the_store


class _InMemory(Suite):
    @contextmanager
    def database(self) -> Iterator[Maker]:
        yield MemoryStore


class TestMemoryTimetable(_InMemory, TimetableContract, OutboxContract):
    pass


class TestMemoryTogether(_InMemory, TogetherContract):
    pass


class TestMemoryVault(_InMemory, VaultContract):
    pass


class TestMemoryWorkers(_InMemory, WorkersContract):
    pass


class TestMemoryStore(_InMemory, StoreContract):
    @over_the_store
    async def test_s4_a_run_that_only_its_key_kept_goes_with_the_key(self, world: World) -> None:
        settings = Settings(retained_runs=1, dedupe=MINUTE)
        world.store = MemoryStore(settings, world.clock)
        runs = [await world.admit(f"s{number}", message_id=str(number)) for number in range(5)]
        for run in runs:
            await world.carry_through(run)
        assert len(await world.listed()) == 5
        world.clock.advance(MINUTE)
        await world.admit("s", message_id="6")
        assert len(await world.listed(state=State.DONE)) == 1

    def test_d2_memory_promises_nothing_beyond_the_process(self) -> None:
        assert not MemoryStore(Settings(), VirtualClock()).durable
