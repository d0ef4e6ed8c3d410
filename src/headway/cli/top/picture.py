"""A board as a picture for the terminal: calm, everything in its place, from 60 × 15 upwards."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from headway.cli.answers import one_line
from headway.cli.times import ago
from headway.cli.top.board import Board, Note
from headway.model.time import Instant, as_datetime
from headway.model.words import WorkerState
from headway.wire.lanes import LaneAnswer

_MARGIN = 1
_WIDE = 100
_GUTTER = 3
_BAR = 24


@dataclass(frozen=True)
class _Glyphs:
    full: str
    reserved: str
    free: str
    times: str
    alive: str
    ended: str


_UNICODE = _Glyphs("█", "▒", "░", "×", "●", "○")
_ASCII = _Glyphs("#", "+", ".", "x", "*", "o")


class Picture:
    """Draws a board as large as the console is."""

    def __init__(self, board: Board, *, hint: str = "") -> None:
        self._board = board
        self._hint = hint
        self._glyphs = _UNICODE

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self._glyphs = _ASCII if options.ascii_only else _UNICODE
        width = options.max_width - 2 * _MARGIN
        lines = options.height or console.height
        head = Group(*self._head(width))
        body = self._body(width, lines)
        above = [
            *self._drawn(console, options, head),
            *self._drawn(console, options, body),
        ]
        room = lines - len(above)
        drawn = above + self._drawn(console, options, self._notes(max(room, 0), width))
        for line in drawn[:lines]:
            yield from line
            yield Segment.line()

    def _drawn(
        self, console: Console, options: ConsoleOptions, part: RenderableType
    ) -> list[list[Segment]]:
        return console.render_lines(
            Padding(part, (0, _MARGIN)), options.update(height=None), pad=False
        )

    # The head.

    def _head(self, width: int) -> Iterator[Text]:
        board, stats = self._board, self._board.stats
        clock = f"{as_datetime(board.at).astimezone():%H:%M:%S}"
        title = Text.assemble(("Headway", "bold"), ("  top", "dim"))
        if stats is not None:
            node = f"   node {stats.node} {stats.name}, up {ago(stats.started_at, board.at)}"
            title.append(one_line(node.strip("\n")).rjust(len(node)), "")
            if stats.draining:
                title.append("  draining", "bold yellow")
        title.append(f"   {board.url}", "dim")
        title.truncate(max(0, width - len(clock) - 2), overflow="ellipsis")
        title.append(" " * max(1, width - title.cell_len - len(clock)))
        title.append(clock, "dim")
        yield title
        if board.trouble:
            trouble = Text(board.trouble, "bold red")
            trouble.truncate(width, overflow="ellipsis")
            yield trouble
        yield self._totals(width)
        yield Text()

    def _totals(self, width: int) -> Text:
        stats = self._board.stats
        if stats is None:
            return Text("waiting for the server …", "dim")
        limits = stats.limits
        running = sum(lane.running for lane in stats.lanes)
        waiting = sum(lane.waiting for lane in stats.lanes)
        parts = [
            (f"{running}", " running"),
            (f"{waiting}", " waiting"),
            (f"{stats.sessions}", " session" if stats.sessions == 1 else " sessions"),
            (f"{stats.inflight}/{limits.max_inflight}", " tasks"),
            (f"{stats.queued}/{limits.max_queue}", " queued"),
        ]
        if workers := self._board.workers:
            busy = sum(worker.state is WorkerState.BUSY for worker in workers)
            what = "worker" if len(workers) == 1 else "workers"
            parts.append((f"{len(workers)}", f" {what}, {busy} busy"))
        if self._board.per_second is not None:
            parts.append((f"{self._board.per_second:.1f}", " done/s"))
        line = Text()
        for number, what in parts:
            if line.cell_len + len(number) + len(what) > width:
                break
            line.append(number, "bold")
            line.append(f"{what}   ", "dim")
        if self._hint and line.cell_len + len(self._hint) <= width:
            line.append(" " * max(0, width - line.cell_len - len(self._hint)))
            line.append(self._hint, "dim")
        line.rstrip()
        return line

    # The body.

    def _body(self, width: int, lines: int) -> RenderableType:
        if self._board.stats is None:
            return Text()
        news = min(len(self._board.notes), lines // 3)
        room = max(8, lines - 4 - news)
        if width < _WIDE:
            return self._narrow(width, room)
        half = (width - _GUTTER) // 2
        columns = Table.grid(padding=(0, _GUTTER, 0, 0), pad_edge=False)
        columns.add_column(width=half)
        columns.add_column(width=width - half - _GUTTER)
        lanes = self._lanes(half)
        nodes = self._nodes()
        left = Group(lanes, "", self._agents(room - lanes.row_count - 3))
        right = Group(nodes, "", self._sessions(room - nodes.row_count - 3))
        columns.add_row(left, right)
        return Group(columns, "")

    def _narrow(self, width: int, room: int) -> RenderableType:
        """One below the other; what does not fit is left to the wide picture."""
        lanes = self._lanes(width)
        left = room - lanes.row_count - 2
        parts: list[RenderableType] = [lanes, ""]
        half = max(2, (left - 3) // 2)
        if left >= 3:
            parts += [self._agents(half), ""]
        if left >= 7:
            parts += [self._sessions(left - half - 4), ""]
        return Group(*parts)

    def _lanes(self, width: int) -> Table:
        table = _table("lane", ("", "left"), "busy", "waiting", "started")
        bar = max(6, min(_BAR, width - 40))
        assert self._board.stats is not None
        for lane in self._board.stats.lanes:
            table.add_row(
                _cell(lane.name, 16),
                self._bar(lane, bar),
                Text("paused", "yellow") if lane.paused else f"{lane.running}/{lane.width}",
                _number(lane.waiting, "yellow"),
                str(lane.started),
            )
        return table

    def _bar(self, lane: LaneAnswer, cells: int) -> Text:
        """How full a lane is: a cell is a slot, or more than one where it is wide."""
        width = max(lane.width, lane.running)
        cells = min(cells, width)
        if not width:
            return Text()
        full = -(-lane.running * cells // width)
        kept = min(cells - full, lane.reserve * cells // width)
        glyphs = self._glyphs
        crowded = lane.waiting > 0 and lane.running >= lane.width
        return Text.assemble(
            (glyphs.full * full, "yellow" if crowded else "green"),
            (glyphs.free * (cells - full - kept), "dim"),
            (glyphs.reserved * kept, "dim cyan"),
        )

    def _agents(self, room: int) -> Table:
        table = _table("agent", "running", "waiting", "tasks", "queued")
        assert self._board.stats is not None
        loads = sorted(
            self._board.stats.agents, key=lambda load: (-load.running, -load.waiting, load.agent_id)
        )
        for load in loads[: max(1, room)]:
            table.add_row(
                _cell(load.agent_id, 24),
                _number(load.running, "green"),
                _number(load.waiting, "yellow"),
                _number(load.inflight),
                _number(load.queued, "yellow"),
            )
        return table

    def _nodes(self) -> Table:
        table = _table("node", ("name", "left"), "up", "holds", "running")
        for node in self._board.nodes:
            alive = node.state == "alive"
            mark = Text(self._glyphs.alive if alive else self._glyphs.ended)
            mark.stylize("green" if alive else "red")
            table.add_row(
                Text.assemble(mark, f" {node.node}"),
                _cell(node.name, 24),
                ago(node.since, self._board.at),
                str(node.sessions),
                _number(node.running, "green"),
            )
        return table

    def _sessions(self, room: int) -> Table:
        table = _table("session", "running", "waiting")
        found = self._board.conversations
        more = self._board.alone
        shown = found if len(found) + bool(more) <= room else found[: max(1, room - 1)]
        for session in shown:
            table.add_row(
                _cell(session.key, 48),
                _number(session.running_count, "green"),
                _number(session.waiting_count + session.debouncing_count, "yellow"),
            )
        rest = [
            f"{len(found) - len(shown)} more" if len(shown) < len(found) else "",
            f"{more} run{'' if more == 1 else 's'} without one" if more else "",
        ]
        said = ", ".join(part for part in rest if part)
        if said or not found:
            table.add_row(Text(f"and {said}" if found else said or "none has work", "dim"), "", "")
        return table

    # What happens.

    def _notes(self, room: int, width: int) -> RenderableType:
        return Group(*(self._note(note, width) for note in self._board.notes[:room]))

    def _note(self, note: Note, width: int) -> Text:
        line = Text(no_wrap=True)
        line.append(f"{_time(note.at)}  ", "dim")
        line.append(f"{one_line(note.who, 20):<20}  ", "bold")
        line.append(note.what, "red" if note.bad else "")
        if note.count > 1:
            line.append(f" {self._glyphs.times}{note.count}", "dim")
        line.truncate(width, overflow="ellipsis")
        return line


def _table(first: str, *columns: str | tuple[str, str]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    for column in columns:
        justify = "left" if isinstance(column, tuple) else "right"
        table.add_column(no_wrap=True, justify=justify)  # type: ignore[arg-type]
    names: Sequence[str] = [column if isinstance(column, str) else column[0] for column in columns]
    table.add_row(*_headings((first, *names)))
    return table


def _headings(names: Iterable[str]) -> Iterator[Text]:
    for name in names:
        yield Text(name, "dim")


def _cell(text: str, longest: int) -> Text:
    return Text(one_line(text, longest))


def _number(count: int, style: str = "") -> Text:
    """Zeroes are quiet, so that the eye finds what there is."""
    return Text(str(count), style if count else "dim")


def _time(at: Instant) -> str:
    return f"{as_datetime(at).astimezone():%H:%M:%S}"
