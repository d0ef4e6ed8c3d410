"""A report on the terminal: the table and the verdicts for people, the last line for programs."""

import json
import sys
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.harness.report import Report, rounded, shown

_PIPED_WIDTH = 120


def progress(message: str) -> None:
    """Say on stderr what long work is busy with; stdout is the report's alone."""
    print(f"  {message}", file=sys.stderr, flush=True)


def print_report(title: str, report: Report, *, quick: bool) -> None:
    """Print the table, the verdicts and, as the last line, the figures as JSON."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPED_WIDTH)
    console.print(_table(title, report))
    for note in report.notes:
        console.print(Text(note, style="dim"))
    if quick:
        console.print(Text("Quick run: these numbers show that the bench works, nothing more."))
    for verdict in report.verdicts():
        console.print(Text(str(verdict), style="green" if verdict.holds else "bold red"))
    print_figures(report.name, report.figures)


def print_figures(name: str, figures: Mapping[str, float]) -> None:
    """Print the line that programs read. It is plain, so no terminal width can break it."""
    line = {"bench": name, "figures": {key: rounded(value) for key, value in figures.items()}}
    print(json.dumps(line, allow_nan=False), flush=True)


def _table(title: str, report: Report) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(report.columns):
        numeric = bool(report.rows) and not any(isinstance(row[index], str) for row in report.rows)
        table.add_column(column, justify="right" if numeric else "left")
    for row in report.rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    return table
