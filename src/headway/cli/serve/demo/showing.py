"""Puts the demo on: hires its agents, and chooses how it is shown: lines for a person, or JSON for programs."""

import io
import sys
from typing import TextIO, cast

from headway.channels.log import LogChannel
from headway.cli.serve.demo.agents import CHANNEL, Pace, hire
from headway.cli.serve.demo.hints import hints
from headway.cli.serve.demo.traffic import Traffic
from headway.cli.serve.show import Show
from headway.facade import Headway

_SEED = 7


def put_on(headway: Headway, url: str, out: TextIO) -> Show:
    """A demo on this server. On a terminal a narrator tells it; elsewhere the log does, and so do the replies."""
    pace = Pace(_SEED)
    hire(headway, pace)
    if not out.isatty():
        headway.add_channel(CHANNEL, LogChannel())
        return Show((Traffic(headway, pace, _untold).run,), hints(url))
    from rich.console import Console

    from headway.cli.serve.demo.narrator import Narrator

    narrator = Narrator(headway, Console(file=out, highlight=False))
    headway.add_channel(CHANNEL, narrator)
    traffic = Traffic(headway, pace, narrator.tell)
    errors = cast("TextIO", OnlyErrors(sys.stderr))
    return Show((traffic.run, narrator.run), hints(url), errors)


class OnlyErrors(io.TextIOBase):
    """Lines of JSON between those of the narrator would be hard to read: only errors get through."""

    def __init__(self, to: TextIO) -> None:
        self._to = to

    def write(self, text: str) -> int:
        errors = [line for line in text.splitlines(keepends=True) if '"level":"error"' in line]
        if errors:
            self._to.write("".join(errors))
            self._to.flush()
        return len(text)


def _untold(who: str, what: str) -> None:
    """The log says it."""
    del who, what
