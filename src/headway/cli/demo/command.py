"""The command line of `headway demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from headway.cli.demo.performance import Performance


def demo(
    fast: Annotated[
        bool,
        typer.Option("--fast", help="Tell it in virtual time: lines of text, done in a moment."),
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=4, max=600, help="About how long the story takes.")
    ] = 20.0,
    seed: Annotated[
        int, typer.Option(help="Decides how long each turn takes. Same seed, same story.")
    ] = 7,
    picture: Annotated[
        Path | None,
        typer.Option(dir_okay=False, hidden=True, help="Write the busiest frame as SVG instead."),
    ] = None,
) -> None:
    """Watch Headway at work: a dozen chats, five agents and three lanes, in twenty seconds.

    The story runs on a real scheduler in memory; only the people and the
    agents are pretended. On a terminal it is a moving picture, elsewhere one
    line for each notable event.

    It ends with figures, and with what Headway promises held against every
    event it published: the exit code is 1 if a promise was broken.
    """
    from rich.console import Console

    from headway.cli.demo.audience import Photographer, Reader
    from headway.cli.demo.performance import Performance
    from headway.testing import run_virtual

    console = Console()
    if picture is not None:
        photographer = Photographer()
        run_virtual(Performance(photographer, seconds=seconds, seed=seed).play())
        photographer.save(picture)
    elif fast:
        performance = Performance(Reader(console), seconds=seconds, seed=seed)
        run_virtual(performance.play())
        _conclude(console, performance)
    else:
        _conclude(console, _play_in_real_time(console, seconds, seed))


def _play_in_real_time(console: "Console", seconds: float, seed: int) -> "Performance":
    """As a moving picture if the terminal can show one, else as lines. Ctrl-C cuts it short."""
    from contextlib import nullcontext, suppress

    from rich.live import Live

    from headway import run
    from headway.cli.demo.audience import Reader, Watcher
    from headway.cli.demo.performance import Performance
    from headway.cli.demo.picture import fits

    if fits(console):
        screen = Live(console=console, screen=True, auto_refresh=False)
        performance = Performance(Watcher(screen), seconds=seconds, seed=seed)
    else:
        screen = None
        performance = Performance(Reader(console), seconds=seconds, seed=seed)
    with screen or nullcontext(), suppress(KeyboardInterrupt):
        run(performance.play())
    return performance


def _conclude(console: "Console", performance: "Performance") -> None:
    from headway.cli.demo.summary import summary

    verdicts = performance.record.promises.verdicts()
    console.print(summary(performance.record.tallies(), verdicts))
    if not all(verdict.kept for verdict in verdicts):
        raise typer.Exit(1)
