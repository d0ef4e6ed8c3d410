"""A scene as a picture for the terminal: calm, everything in its place, from 80 × 24 upwards."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, OverflowMethod, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from headway.cli.demo.cast import AGENTS
from headway.cli.demo.record import Note
from headway.cli.demo.scene import Doing, LaneRow, Row, Scene
from headway.model.time import SECOND

_ROOMY_LINES = 30
_WIDE_COLUMNS = 100
_MARGIN = 1
_SMALLEST = (64, 16)
"""Columns and lines below which lines of text serve better than a picture."""


@dataclass(frozen=True)
class _Glyphs:
    slot: str
    free: str
    waiting: str
    passed: str
    ahead: str
    running: str
    queued: str
    typing: str
    done: str
    cut: str
    idle: str
    times: str
    overflow: OverflowMethod


_UNICODE = _Glyphs("▆▆▆", "───", "■", "━", "─", "●", "○", "◌", "✓", "×", "·", "×", "ellipsis")
_ASCII = _Glyphs("###", "---", ".", "=", "-", "*", "o", "~", "v", "x", " ", "x", "crop")


def fits(console: Console) -> bool:
    """Whether this console can show a moving picture."""
    columns, lines = _SMALLEST
    return (
        console.is_terminal
        and not console.is_dumb_terminal
        and console.width >= columns
        and console.height >= lines
    )


class Picture:
    """Draws a scene as large as the console is."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._glyphs = _UNICODE

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self._glyphs = _ASCII if options.ascii_only else _UNICODE
        width = options.max_width - 2 * _MARGIN
        lines = options.height or console.height
        roomy = lines >= _ROOMY_LINES
        gap = [""] if roomy else []
        parts = Group(
            *self._header(width),
            "",
            *(self._lane(lane) for lane in self._scene.lanes),
            *gap,
            self._crew(),
            "",
            *gap,
            self._body(width),
        )
        drawn = console.render_lines(
            Padding(parts, (0, _MARGIN)), options.update(height=None), pad=False
        )
        for line in drawn[:lines]:
            yield from line
            yield Segment.line()

    def _header(self, width: int) -> Iterator[Text]:
        scene = self._scene
        clock = f"{scene.elapsed_s:.1f} s"
        title = Text.assemble(("Headway ", "bold"), ("demo", "dim"))
        title.append(" " * (width - len(title) - len(clock)))
        title.append(clock, "dim")
        yield title
        passed = min(width, round(width * scene.elapsed_s / scene.seconds))
        glyphs = self._glyphs
        yield Text.assemble(
            (glyphs.passed * passed, "#5f9ee8"), (glyphs.ahead * (width - passed), "dim")
        )
        yield Text(scene.title, "bold")
        yield Text(scene.line, "dim", no_wrap=True, overflow=self._glyphs.overflow)

    def _lane(self, lane: LaneRow) -> Text:
        line = Text(f"{lane.name:<10}", no_wrap=True, overflow="crop")
        glyphs = self._glyphs
        places = [*lane.slots, *[None] * lane.width]
        free = lane.width - sum(agent is not None for agent in places)
        for agent in places:
            if agent is not None:
                line.append(f"{glyphs.slot} ", AGENTS[agent])
            elif free > 0:
                free -= 1
                line.append(f"{glyphs.free} ", "dim")
        line.append(f"{lane.running}/{lane.width}  ", "dim" if lane.running == 0 else "")
        if lane.waiting:
            line.append(f"{len(lane.waiting)} waiting ", "dim")
            for agent in lane.waiting:
                line.append(glyphs.waiting, AGENTS[agent])
        return line

    def _crew(self) -> Text:
        line = Text(" " * 10, no_wrap=True, overflow="crop")
        for agent, running in self._scene.crew.items():
            line.append(f"{self._glyphs.slot[0]} ", AGENTS[agent])
            line.append(f"{agent} ", "" if running else "dim")
            line.append(f"{running or ' '}  ", "bold")
        return line

    def _body(self, width: int) -> Table:
        """Chats on the left, the ticker on the right, the newest line first."""
        wide = width >= _WIDE_COLUMNS
        left = width // 2 if wide else width * 19 // 40
        body = Table.grid(padding=(0, 2, 0, 0))
        body.add_column(width=left - 2)
        body.add_column(width=width - left)
        body.add_row(self._rows(wide), self._ticker())
        return body

    def _rows(self, wide: bool) -> Table:
        table = Table.grid(padding=(0, 1, 0, 0))
        table.add_column(width=1)
        table.add_column(width=7)
        if wide:
            table.add_column(width=10)
        table.add_column(no_wrap=True, overflow=self._glyphs.overflow, ratio=1)
        table.expand = True
        for row in self._scene.rows:
            colour = AGENTS[row.agent]
            glyph, style = self._mark(row, colour)
            cells = [
                Text(glyph, style),
                Text(row.name, "" if row.doing is not Doing.IDLE else "dim"),
            ]
            if wide:
                cells.append(Text(row.agent, colour if row.doing is not Doing.IDLE else "dim"))
            table.add_row(*cells, self._state(row, colour))
        return table

    def _mark(self, row: Row, colour: str) -> tuple[str, str]:
        glyphs = self._glyphs
        match row.doing:
            case Doing.RUNNING:
                return glyphs.running, colour
            case Doing.QUEUED:
                return glyphs.queued, colour
            case Doing.TYPING:
                return glyphs.typing, colour
            case Doing.DONE:
                return glyphs.done, "dim"
            case Doing.CUT:
                return glyphs.cut, "#d0737a"
            case Doing.IDLE:
                return glyphs.idle, "dim"

    def _state(self, row: Row, colour: str) -> Text:
        style = "" if row.doing is Doing.RUNNING else "dim"
        behind = row.waiting - 1 if row.doing is Doing.QUEUED else row.waiting
        if behind <= 0:
            return Text(row.text, style)
        return Text.assemble((f"{row.text} ", style), (self._glyphs.waiting * behind, colour))

    def _ticker(self) -> Table:
        table = Table.grid(padding=(0, 1, 0, 0))
        table.add_column(width=5, justify="right", style="dim")
        table.add_column(ratio=1)
        table.expand = True
        for age, note in enumerate(reversed(self._scene.notes)):
            at = f"{(note.at - self._scene.began_at) / SECOND:.1f}"
            table.add_row(at, self._note(note, fresh=age < 2))
        return table

    def _note(self, note: Note, *, fresh: bool) -> Text:
        subject, colon, rest = note.text.rpartition(": ")
        text = Text(style="" if fresh else "dim")
        text.append(subject + colon, "bold" if fresh else "")
        text.append(rest)
        if note.count > 1:
            text.append(f" {self._glyphs.times}{note.count}")
        return text
