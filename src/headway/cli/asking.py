"""Asks a server one thing and shows the answer: what most commands do, once or again and again."""

import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from headway.cli.answers import as_json
from headway.cli.exits import errors_told
from headway.cli.options import place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.client import Client

Said = TypeVar("Said")
LOOK_AGAIN_S = 1.0


def ask(
    server: str | None, token: str | None, question: "Callable[[Client], Awaitable[Said]]"
) -> Said:
    """The server's answer. An error is told and ends the command."""
    from headway.cli.opening import calling
    from headway.wiring import run

    async def asked() -> Said:
        async with calling(place_of(server, token)) as client:
            return await question(client)

    with errors_told():
        return run(asked())


def look(
    server: str | None,
    token: str | None,
    question: "Callable[[Client], Awaitable[Said]]",
    lines: Callable[[Said], str],
    *,
    json: bool,
    watch: bool = False,
) -> Said | None:
    """Show what the server answers; with `watch` each second, until Ctrl-C. Then nothing is returned."""
    if not watch:
        answer = ask(server, token, question)
        print_all(as_json(answer) if json else lines(answer))
        return answer
    show = _shows_lines if json or not sys.stdout.isatty() else _shows_in_place
    tell = _json_line if json else lines
    with suppress(KeyboardInterrupt):
        ask(server, token, lambda client: _look_on(client, question, show(tell)))
    return None


async def _look_on(
    client: "Client",
    question: "Callable[[Client], Awaitable[Said]]",
    show: Callable[[Said], None],
) -> None:
    import asyncio

    while True:
        show(await question(client))
        await asyncio.sleep(LOOK_AGAIN_S)


def _json_line(answer: object) -> str:
    import msgspec

    return msgspec.json.encode(answer).decode()


def _shows_lines(lines: Callable[[Said], str]) -> Callable[[Said], None]:
    """For pipes and programs: print it again only if it has changed."""
    before = ""

    def show(answer: Said) -> None:
        nonlocal before
        text = lines(answer)
        if text != before:
            print_all(text)
        before = text

    return show


def _shows_in_place(lines: Callable[[Said], str]) -> Callable[[Said], None]:
    """For a terminal: what is shown takes the place of what was."""
    from rich.console import Console
    from rich.control import Control
    from rich.text import Text

    console = Console()
    height = 0

    def show(answer: Said) -> None:
        nonlocal height
        text = Text(lines(answer), no_wrap=True, overflow="ellipsis")
        drawn = console.render_lines(text, pad=False)[: console.height - 1]
        if height:
            console.control(Control.move_to_column(0, -height))
            console.file.write("\x1b[J")
        for line in drawn:
            console.print(*(segment.text for segment in line), sep="", highlight=False)
        height = len(drawn)

    return show
