"""The memory store keeps the contract of all stores."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headway import Settings
from headway.ports import Store
from headway.store.memory import MemoryStore
from headway.testing import VirtualClock
from tests.contract.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    @asynccontextmanager
    async def opened(self, settings: Settings, clock: VirtualClock) -> AsyncIterator[Store]:
        store = MemoryStore(settings, clock)
        await store.open()
        yield store
        await store.close()

    def test_d2_memory_promises_nothing_beyond_the_process(self) -> None:
        assert not MemoryStore(Settings(), VirtualClock()).durable
