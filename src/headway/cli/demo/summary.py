"""What the demo came to: a table of figures, and the promises with what was seen of them."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headway.cli.demo.cast import AGENTS
from headway.cli.demo.promises import Verdict
from headway.cli.demo.record import Tally
from headway.model.time import SECOND

_FIGURES = ("runs", "done", "merged", "cancelled", "dropped", "failed")
_SHOWN_BREACHES = 5


def summary(tallies: dict[str, Tally], verdicts: Iterable[Verdict]) -> RenderableType:
    """Both tables, one below the other."""
    return Group("", _figures(tallies), "", *(_promise(verdict) for verdict in verdicts), "")


def _figures(tallies: dict[str, Tally]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("agent")
    for name in (*_FIGURES, "mean wait"):
        table.add_column(name, justify="right")
    total = Tally()
    for agent in sorted(tallies, key=list(AGENTS).index):
        tally = tallies[agent]
        table.add_row(Text(agent, AGENTS[agent]), *_cells(tally))
        for figure in _FIGURES:
            setattr(total, figure, getattr(total, figure) + getattr(tally, figure))
        total.waits += tally.waits
    table.add_row(Text("all", "bold"), *(Text(cell, "bold") for cell in _cells(total)))
    return table


def _cells(tally: Tally) -> list[str]:
    counts = [str(getattr(tally, figure) or "-") for figure in _FIGURES]
    return [*counts, f"{tally.mean_wait / SECOND:.2f} s"]


def _promise(verdict: Verdict) -> RenderableType:
    mark = Text.assemble(("kept   ", "green") if verdict.kept else ("BROKEN ", "bold red"))
    line = Text.assemble(mark, verdict.promise, (f" ({verdict.seen})", "dim"))
    breaches = [
        Padding(Text(breach, "red"), (0, 0, 0, 7)) for breach in verdict.broken[:_SHOWN_BREACHES]
    ]
    return Group(line, *breaches)
