"""The channel `terminal`: what a person sees."""

import asyncio
import io
import os
from collections.abc import Awaitable, Callable
from typing import TextIO

import pytest
from rich.console import Console

from headway import Delivery, Route
from headway.channels import TerminalChannel
from headway.ports import Channel
from tests.unit.channels.letters import CHAT, PICTURE, letter

WIPE = "\r\x1b[2K"
OTHER = Route("chat", account="bot", peer="43")


def shown(*deliveries: Delivery) -> str:
    stream = io.StringIO()

    async def main() -> None:
        channel = TerminalChannel(stream)
        assert isinstance(channel, Channel)
        for delivery in deliveries:
            await channel.send(delivery)

    asyncio.run(main())
    return stream.getvalue()


def on_screen(*steps: Callable[[TerminalChannel], Awaitable[None]], width: int = 80) -> list[str]:
    """What each step adds to the screen of a real terminal, without colours."""
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=True, color_system=None, width=width, legacy_windows=False
    )
    added: list[str] = []

    async def main() -> None:
        channel = TerminalChannel(console)
        for step in steps:
            before = len(stream.getvalue())
            await step(channel)
            added.append(stream.getvalue()[before:])

    asyncio.run(main())
    return added


def test_who_speaks_to_whom_and_what() -> None:
    assert shown(letter("hello\nyou")) == "bot → 42 (7): hello\nyou\n"
    assert shown(letter("x", route=Route("terminal"))) == "terminal: x\n"
    assert shown(letter("x", route=Route("terminal", peer="ann"))) == "terminal → ann: x\n"


def test_attachments_are_named() -> None:
    text = shown(letter("", PICTURE))
    assert text == "bot → 42 (7): \n  + cat.png (image/png) https://example.com/cat.png\n"


def test_long_lines_and_markup_are_left_as_they_are() -> None:
    text = "[bold]not bold[/bold] :smile: " + "x" * 500
    assert shown(letter(text)) == f"bot → 42 (7): {text}\n"


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;without an end", "]0;without an end"),
        ("over\rwritten\b\b\a", "overwritten"),
        ("\x9b31mred", "31mred"),
        ("a\r\nb\tc", "a\nb       c"),
        ("half \ud800 pair", "half \ufffd pair"),
    ],
)
def test_an_agent_cannot_command_the_terminal(said: str, seen: str) -> None:
    assert shown(letter(said, route=Route("t"))) == f"t: {seen}\n"


def test_a_name_cannot_command_the_terminal_either() -> None:
    assert shown(letter("x", route=Route("t", "a\x1b[2J\nb", "\x1bc", "\r"))) == "a b → c (): x\n"


def test_a_terminal_without_such_a_character_shows_a_question_mark() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, "ascii", write_through=True)
    asyncio.run(TerminalChannel(stream).send(letter("ü!")))
    assert written.getvalue() == b"bot ? 42 (7): ?!\n"


def test_a_delivery_that_comes_again_is_printed_once() -> None:
    once, other = letter("one", id="1"), letter("two", id="2")
    assert shown(once, other, once).count("\n") == 2


def test_s10_typing_is_shown_and_ended() -> None:
    seen = on_screen(
        lambda channel: channel.typing(CHAT, True),
        lambda channel: channel.typing(CHAT, True),
        lambda channel: channel.typing(OTHER, True),
        lambda channel: channel.typing(CHAT, False),
        lambda channel: channel.typing(OTHER, False),
        lambda channel: channel.typing(OTHER, False),
    )
    assert seen == [
        "bot → 42 (7) is typing…",
        f"{WIPE}bot → 42 (7) is typing…",
        f"{WIPE}bot → 42 (7) (and 1 more) is typing…",
        f"{WIPE}bot → 43 is typing…",
        WIPE,
        "",
    ]


def test_s10_an_empty_delivery_ends_typing_and_prints_nothing() -> None:
    seen = on_screen(
        lambda channel: channel.typing(CHAT, True),
        lambda channel: channel.send(letter("", id="run-1.empty")),
        lambda channel: channel.send(letter("later", id="run-2.reply")),
    )
    assert seen == ["bot → 42 (7) is typing…", WIPE, "bot → 42 (7): later\n"]
    assert shown(letter("")) == ""


def test_a_message_stands_above_who_still_types() -> None:
    seen = on_screen(
        lambda channel: channel.typing(OTHER, True),
        lambda channel: channel.send(letter()),
        lambda channel: channel.typing(OTHER, False),
    )
    assert seen[1:] == [f"{WIPE}bot → 42 (7): hello\nbot → 43 is typing…", WIPE]


def test_the_line_about_typing_never_wraps() -> None:
    (line,) = on_screen(lambda channel: channel.typing(CHAT, True), width=12)
    assert line == "bot → 42 (…"


def test_typing_is_not_written_to_what_is_no_terminal() -> None:
    stream = io.StringIO()
    channel = TerminalChannel(stream)
    asyncio.run(channel.typing(CHAT, True))
    asyncio.run(channel.send(letter()))
    assert stream.getvalue() == "bot → 42 (7): hello\n"


def test_a_terminal_that_is_closed_keeps_the_delivery_in_the_outbox() -> None:
    """Rich would end the program here."""

    async def main(stream: TextIO) -> None:
        channel = TerminalChannel(stream)
        for _ in range(2):
            with pytest.raises(BrokenPipeError):
                await channel.send(letter())

    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w")
    try:
        asyncio.run(main(stream))
    finally:
        with pytest.raises(BrokenPipeError):
            stream.close()


def test_a_given_console_that_is_closed_does_not_end_the_program() -> None:
    class Closed(Console):
        def print(self, *objects: object, **options: object) -> None:
            raise SystemExit(1)

    async def main() -> None:
        channel = TerminalChannel(Closed(file=io.StringIO()))
        for _ in range(2):
            with pytest.raises(BrokenPipeError):
                await channel.send(letter())

    asyncio.run(main())
