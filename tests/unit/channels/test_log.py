"""The channel `log`: lines of JSON."""

import asyncio
import io
import json
import logging
import os

import pytest

from headway import Delivery
from headway.channels import LogChannel
from headway.ports import Channel
from tests.unit.channels.letters import CHAT, PICTURE, letter

HELLO = {
    "at": "2027-01-15T08:00:00.123Z",
    "id": "run-1.reply",
    "channel": "chat",
    "account": "bot",
    "to": "42",
    "thread": "7",
    "text": "hello",
    "attachments": [],
    "runId": "run-1",
    "session": "chat:42",
}


async def lines_of(*deliveries: Delivery) -> list[dict[str, object]]:
    stream = io.StringIO()
    channel = LogChannel(stream)
    assert isinstance(channel, Channel)
    await channel.typing(CHAT, True)
    for delivery in deliveries:
        await channel.send(delivery)
    await channel.typing(CHAT, False)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_each_delivery_is_one_line_with_its_id() -> None:
    first, second = asyncio.run(lines_of(letter(), letter("two\nlines", PICTURE, id="run-2.reply")))
    assert first == HELLO
    picture = {"name": "cat.png", "mediaType": "image/png", "url": "https://example.com/cat.png"}
    assert second == HELLO | {"id": "run-2.reply", "text": "two\nlines", "attachments": [picture]}


def test_s10_an_empty_delivery_is_marked_as_such() -> None:
    (line,) = asyncio.run(lines_of(letter("")))
    assert line == HELLO | {"text": "", "empty": True}


@pytest.mark.parametrize(
    "text", ["ünï 😀", "a\u2028b\x85c\x1cd", "\x00\x1b[31m", "half \ud800 pair"]
)
def test_no_character_breaks_the_line_or_the_stream(text: str) -> None:
    async def main() -> bytes:
        written = io.BytesIO()
        stream = io.TextIOWrapper(written, "ascii", write_through=True)
        await LogChannel(stream).send(letter(text))
        stream.detach()
        return written.getvalue()

    (line,) = asyncio.run(main()).decode("ascii").splitlines()
    assert json.loads(line)["text"] == text.replace("\ud800", "\ufffd")


def test_a_logger_gets_the_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    asyncio.run(LogChannel(logging.getLogger("said")).send(letter("100 %s")))
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("said", "INFO")
    assert json.loads(record.getMessage()) == HELLO | {"text": "100 %s"}


def test_without_a_stream_it_is_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(LogChannel().send(letter()))
    assert json.loads(capsys.readouterr().err) == HELLO


def test_a_closed_stream_keeps_the_delivery_in_the_outbox() -> None:
    stream = io.StringIO()
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        asyncio.run(LogChannel(stream).send(letter()))


def test_a_pipe_that_nobody_reads_does_not_hold_up_the_loop() -> None:
    async def main() -> None:
        reader, writer = os.pipe()
        with os.fdopen(writer, "w") as stream:
            channel = LogChannel(stream)
            sending = asyncio.gather(
                channel.send(letter("x" * 50_000)), channel.send(letter("y" * 50_000))
            )
            await asyncio.sleep(0)
            assert not sending.done(), "the pipe is full, and yet this goes on"
            read = await asyncio.to_thread(_read_lines, reader, 2)
            await sending
        assert sorted(json.loads(line)["text"][0] for line in read) == ["x", "y"]

    asyncio.run(main())


def _read_lines(reader: int, count: int) -> list[str]:
    with os.fdopen(reader) as stream:
        return [stream.readline() for _ in range(count)]
