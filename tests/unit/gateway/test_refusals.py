"""Ten thousand refused submissions cost bounded memory and can be paged through (F-6)."""

import asyncio
import gc
import tracemalloc
from pathlib import Path

import httpx
import msgspec
import pytest

from headway import Headway, Settings, Turn
from headway.model.server import MIB
from headway.model.settings import Limits
from tests.unit.gateway.calling import client, opened, raw

REFUSED = 10_000
AT_ONCE = 100
TASK = msgspec.json.encode({"agentId": "a", "action": "x", "params": {"some": "thing"}})


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_f6_ten_thousand_refused_submissions_take_less_than_20_mb(
    store: str, tmp_path: Path
) -> None:
    async def main() -> None:
        hw = Headway(
            None if store == "memory" else f"sqlite:///{tmp_path}/headway.db",
            settings=Settings(limits=Limits(max_inflight=1, max_queue=1)),
        )
        go_on = asyncio.Event()

        @hw.agent("a")
        async def waits(turn: Turn) -> None:
            await go_on.wait()

        async with opened(hw) as gateway:

            async def ask() -> int:
                status, head, _ = await raw(gateway, "POST", "/tasks", TASK)
                if status == 429:
                    assert int(head[b"retry-after"]) >= 1
                return status

            async def ask_often(count: int) -> set[int]:
                found: set[int] = set()
                for _ in range(count // AT_ONCE):
                    found |= set(await asyncio.gather(*(ask() for _ in range(AT_ONCE))))
                return found

            assert await ask_often(AT_ONCE * 2) == {202, 429}
            tracemalloc.start()
            try:
                before = _in_use()
                assert await ask_often(REFUSED) == {429}
                grown = _in_use() - before
            finally:
                tracemalloc.stop()
            assert grown < 20 * MIB, f"{grown / MIB:.1f} MiB"
            async with client(gateway) as http:
                await _page_through(http)
            go_on.set()

    asyncio.run(main())


async def _page_through(http: httpx.AsyncClient) -> None:
    seen: set[str] = set()
    cursor = ""
    while True:
        params = {"state": "rejected", "limit": "100"} | ({"cursor": cursor} if cursor else {})
        page = (await http.get("/tasks", params=params)).json()
        assert len(page["tasks"]) <= 100
        ids = {task["taskId"] for task in page["tasks"]}
        assert not ids & seen
        seen |= ids
        cursor = page["cursor"]
        if not cursor:
            break
    assert len(seen) >= 500


def _in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
