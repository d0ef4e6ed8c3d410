"""A channel that prints what is said, for a person at a terminal."""

import re
import threading
from collections import OrderedDict
from typing import TextIO

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from headway.calls import in_thread
from headway.channels.letter import is_empty
from headway.model.outcome import Attachment
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.text import whole

_REMEMBERED = 1_000
"""So many of the latest deliveries are known again when they come twice."""
_WIPE_LINE = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
_COMMANDS_TO_THE_TERMINAL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, moves of the cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # any other control character but tab and line feed
)


class _Screen(Console):
    """Raises when nobody reads any more. Rich's own way is to end the program."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError("the terminal is closed")


class TerminalChannel:
    """Prints who says it and to whom, then the text; on a real terminal also who is typing.

    An agent's words are only shown: what in them would command the terminal is left out.
    """

    def __init__(self, to: Console | TextIO | None = None) -> None:
        self._console = to if isinstance(to, Console) else _Screen(file=to)
        self._one_at_a_time = threading.Lock()
        self._typing: dict[Route, None] = {}
        """Where an agent is at work, the longest first."""
        self._has_line = False
        """Whether the screen shows who is typing: that is wiped before anything is printed."""
        self._printed: OrderedDict[str, None] = OrderedDict()
        self._gone = False
        """Nobody reads any more what goes to the console that was given."""

    async def send(self, delivery: Delivery) -> None:
        if is_empty(delivery):
            await self.typing(delivery.route, False)
        else:
            await in_thread(self._print, delivery)

    async def typing(self, route: Route, on: bool) -> None:
        # Noted here, in the order of the calls: the threads that draw may overtake each other.
        if on:
            self._typing.setdefault(route)
        else:
            self._typing.pop(route, None)
        if self._console.is_terminal:
            await in_thread(self._draw)

    def _print(self, delivery: Delivery) -> None:
        """In a thread, because a terminal that is paused blocks."""
        with self._one_at_a_time:
            if delivery.id in self._printed:
                return
            self._wipe()
            self._put(_as_text(delivery, self._console.encoding), "\n")
            self._printed[delivery.id] = None
            if len(self._printed) > _REMEMBERED:
                self._printed.popitem(last=False)
            self._show_typing()

    def _draw(self) -> None:
        with self._one_at_a_time:
            self._wipe()
            self._show_typing()

    def _show_typing(self) -> None:
        at_work = list(self._typing)
        if at_work and self._console.is_terminal:
            others = f" (and {len(at_work) - 1} more)" if len(at_work) > 1 else ""
            line = f"{_who(at_work[0])}{others} is typing…"
            text = _styled(_fitting(line, self._console.encoding), "dim")
            # A line that wraps could not be wiped.
            text.truncate(self._console.width - 1, overflow="ellipsis")
            self._has_line = True
            self._put(text, "")

    def _wipe(self) -> None:
        if self._has_line:
            self._has_line = False
            self._console.control(_WIPE_LINE)

    def _put(self, text: Text, end: str) -> None:
        try:
            if not self._gone:
                self._console.print(text, end=end, soft_wrap=True)
        except SystemExit:
            self._gone = True
        if self._gone:
            raise BrokenPipeError("the terminal is closed")


def _as_text(delivery: Delivery, encoding: str) -> Text:
    text = _styled(_fitting(f"{_who(delivery.route)}: ", encoding), "bold")
    text.append(_fitting(_harmless(delivery.text), encoding))
    for attachment in delivery.attachments:
        text.append(_fitting(f"\n  + {_described(attachment)}", encoding), "dim")
    return text


def _styled(words: str, style: str) -> Text:
    return Text.assemble((words, style))


def _fitting(text: str, encoding: str) -> str:
    """With a question mark for each character that the terminal cannot show."""
    return text.encode(encoding, "replace").decode(encoding)


def _who(route: Route) -> str:
    """Who speaks there, to whom, and in which thread: as much as the route says."""
    who = route.account or route.channel
    to = f" → {route.peer}" if route.peer else ""
    thread = f" ({route.thread})" if route.thread else ""
    return _harmless(f"{who}{to}{thread}").replace("\n", " ")


def _described(attachment: Attachment) -> str:
    where = f" {attachment.url}" if attachment.url else ""
    return _harmless(f"{attachment.name} ({attachment.media_type}){where}").replace("\n", " ")


def _harmless(text: str) -> str:
    return _COMMANDS_TO_THE_TERMINAL.sub("", whole(text).replace("\r\n", "\n"))
