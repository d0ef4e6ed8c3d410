"""Server-sent events: what goes over the line, and when a stream ends."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from headway.gateway.stream import sse
from headway.gateway.stream.journal import Journal
from headway.gateway.stream.listener import Listener
from headway.testing import virtual_time
from tests.unit.gateway.stream.happenings import BOOT, everything, journal, noted, started


def listener(kept: Journal, after: str | None = None, backlog: int = 10) -> Listener:
    return Listener(kept, kept.start(after), backlog, everything)


async def rest(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


def fields(block: bytes) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in block.decode().strip().splitlines())


def test_a_block_has_an_id_a_name_and_one_line_of_data() -> None:
    kept = journal()
    kept.note(started(1, session="two\nlines"))
    block = sse.block(kept.entry(1))
    assert block.endswith(b"\n\n")
    assert block.count(b"\n") == 4, "a line break in a value cannot break the block"
    said = fields(block)
    assert (said["id"], said["event"]) == (f"{BOOT}-1", "RunStarted")
    assert msgspec.json.decode(said["data"])["session"] == "two\nlines"


@virtual_time
async def test_it_begins_with_the_id_to_come_back_with() -> None:
    """A client that is cut off before its first event misses nothing either."""
    kept = noted(3)
    chunks = sse.told(listener(kept))
    assert fields(await anext(chunks)) == {"retry": "2000", "id": f"{BOOT}-3"}
    kept.note(started(4))
    assert fields(await anext(chunks))["id"] == f"{BOOT}-4"
    await chunks.aclose()


@virtual_time
async def test_many_events_are_sent_at_once_but_not_all_in_one() -> None:
    kept = noted(2_000, memory=10_000)
    sent = [chunk async for chunk in sse.told(listener(kept, f"{BOOT}-0"), follow=False)]
    assert 3 < len(sent) < 20
    assert max(map(len, sent)) < 2 * sse.CHUNK
    assert b"".join(sent).count(b"event: RunStarted") == 2_000


@virtual_time
async def test_a_quiet_stream_shows_that_it_lives_and_moves_the_id_on() -> None:
    kept = journal()
    rare = Listener(kept, kept.start(None), 10, lambda _: False)
    chunks = sse.told(rare)
    await anext(chunks)
    kept.note(started(1))
    began = asyncio.get_running_loop().time()
    sign = await anext(chunks)
    assert asyncio.get_running_loop().time() - began >= sse.KEEP_ALIVE_S
    assert sign.startswith(b": ")
    assert f"id: {BOOT}-1\n".encode() in sign
    await chunks.aclose()


@virtual_time
async def test_a_stream_shows_that_it_lives_also_while_much_happens_that_it_does_not_want() -> None:
    kept = journal()
    chunks = sse.told(Listener(kept, kept.start(None), 10, lambda _: False))
    await anext(chunks)

    async def busy() -> None:
        for number in range(1, 100):
            kept.note(started(number))
            await asyncio.sleep(1)

    async with asyncio.TaskGroup() as group:
        happens = group.create_task(busy())
        async with asyncio.timeout(sse.KEEP_ALIVE_S + 1):
            sign = await anext(chunks)
        happens.cancel()
    assert sign.startswith(b": ")
    assert f"id: {BOOT}-15\n".encode() in sign
    await chunks.aclose()


@virtual_time
async def test_who_is_too_slow_is_cut_off_with_a_word() -> None:
    kept = journal(1_000)
    chunks = sse.told(listener(kept, backlog=10))
    await anext(chunks)
    for number in range(11):
        kept.note(started(number))
    assert await rest(chunks) == sse.TOO_SLOW


@virtual_time
async def test_the_end_of_the_node_ends_the_stream_after_the_last_event() -> None:
    kept = journal()
    chunks = sse.told(listener(kept))
    await anext(chunks)
    kept.note(started(1))
    kept.close()
    assert (await rest(chunks)).count(b"event: RunStarted") == 1


@virtual_time
async def test_without_following_it_ends_with_what_there_is() -> None:
    chunks = sse.told(listener(noted(3), f"{BOOT}-1"), follow=False)
    assert (await rest(chunks)).count(b"event: RunStarted") == 2
