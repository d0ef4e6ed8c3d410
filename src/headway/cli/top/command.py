"""The command line of `headway top`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.options import AsJson, ServerUrl, TokenText, place_of

if TYPE_CHECKING:
    import asyncio

    from rich.console import Console

    from headway.cli.options import Place
    from headway.cli.top.board import Board
    from headway.cli.top.watcher import Watcher

_FRAMES_PER_SECOND = 4
_PICTURE = (110, 34)


def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="Show it once, and end.")] = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg", help="Watch for some seconds, then write what is seen as a picture."
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, max=3600, hidden=True, help="How long before the picture.")
    ] = 5,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Watch a server: lanes, agents, sessions, nodes and what happens, live. q ends it.

    Without a terminal it is shown once. A server that goes away is waited for.
    """
    from headway.cli.opening import check_client
    from headway.wiring import run

    with errors_told():
        check_client()
        place = place_of(server, token)
        if picture is not None:
            run(_paint(place, picture, seconds))
        elif as_json:
            _tell_json(run(_once(place)))
        elif once or not sys.stdout.isatty():
            _print(run(_once(place)))
        else:
            try:
                run(_live(place))
            except KeyboardInterrupt:
                return


async def _once(place: "Place") -> "Board":
    from headway.cli.opening import calling
    from headway.cli.top.watcher import Watcher

    async with calling(place) as client:
        watcher = Watcher(client)
        await watcher.remember()
        return await watcher.look()


async def _live(place: "Place") -> None:
    import asyncio
    from contextlib import AsyncExitStack

    from rich.console import Console

    from headway.cli.keys import has_keyboard, keyboard
    from headway.cli.opening import calling
    from headway.cli.top.watcher import Watcher

    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(calling(place))
        watcher = Watcher(client)
        await watcher.look()
        typed = await stack.enter_async_context(keyboard()) if has_keyboard() else None
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(watcher.listen()), group.create_task(watcher.look_on())]
            await _show(watcher, Console(), typed)
            for task in tasks:
                task.cancel()


async def _show(watcher: "Watcher", console: "Console", typed: "asyncio.Queue[str] | None") -> None:
    """Draw again and again on the terminal's other screen, until somebody has seen enough."""
    import asyncio

    from rich.live import Live

    from headway.cli.top.picture import Picture

    hint = "q ends it" if typed is not None else "Ctrl-C ends it"
    with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        while typed is None or typed.empty() or not _is_end(typed.get_nowait()):
            live.update(Picture(watcher.board, hint=hint), refresh=True)
            await asyncio.sleep(1 / _FRAMES_PER_SECOND)


def _is_end(keys: str) -> bool:
    return any(key in "qQ\x04" for key in keys)


def _print(board: "Board") -> None:
    from rich.console import Console

    from headway.cli.top.picture import Picture

    console = Console()
    console.print(Picture(board), soft_wrap=False)


def _tell_json(board: "Board") -> None:
    from headway.cli.answers import as_json as json_of
    from headway.cli.printing import print_all

    told = {
        "stats": board.stats,
        "sessions": board.sessions,
        "nodes": board.nodes,
        "workers": board.workers,
    }
    print_all(json_of(told))


async def _paint(place: "Place", path: Path, seconds: float) -> None:
    import asyncio
    import io

    from rich.console import Console

    from headway.calls import in_thread
    from headway.cli.demo.audience import SVG_FORMAT as SVG
    from headway.cli.opening import calling
    from headway.cli.top.picture import Picture
    from headway.cli.top.watcher import Watcher
    from headway.model.errors import InvalidInput

    async with calling(place) as client:
        watcher = Watcher(client)
        await watcher.look()
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(watcher.listen())
            await asyncio.sleep(seconds)
            board = await watcher.look()
            listening.cancel()
    width, height = _PICTURE
    console = Console(
        file=io.StringIO(), record=True, width=width, height=height, force_terminal=True
    )
    console.print(Picture(board))
    svg = console.export_svg(title="headway top", code_format=SVG, unique_id="headway-top")
    try:
        await in_thread(path.write_text, svg, "utf-8")
    except OSError as wrong:
        raise InvalidInput(
            "--picture", str(path), f"a file that can be written ({wrong})"
        ) from None
