"""The results page: every report of one run of all benches, as Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bench.harness.report import Cell, Report, rounded, shown


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one bench: its report, or None when it broke."""

    name: str
    title: str
    report: Report | None
    lacks_package: bool = False
    """Whether it was not measured because a package that it needs is not installed."""


def render(
    results: Sequence[Result],
    *,
    measured_at: datetime,
    machine: Mapping[str, str],
    versions: Mapping[str, str],
) -> str:
    """The whole page."""
    parts = [
        "# Bench results",
        "Written by `make bench`. Compare figures only with others of the same machine.",
        _table(
            ("measured", f"{measured_at:%Y-%m-%d %H:%M} UTC"),
            [*machine.items(), *versions.items()],
        ),
    ]
    for result in results:
        parts += _section(result)
    return "\n\n".join(parts) + "\n"


def _section(result: Result) -> list[str]:
    head = f"## {result.name}: {result.title}"
    report = result.report
    if result.lacks_package:
        return [head, "Not measured: a package that it needs was not installed."]
    if report is None:
        return [head, "**The bench broke and has no figures.**"]
    parts = [head, _table(report.columns, report.rows)]
    parts += report.notes
    if verdicts := report.verdicts():
        parts.append("\n".join(f"- {_marked(str(verdict))}" for verdict in verdicts))
    figures = [(f"`{name}`", rounded(value)) for name, value in report.figures.items()]
    parts.append(_table(("figure", "value"), figures))
    return parts


def _marked(verdict: str) -> str:
    word, _, rest = verdict.partition(":")
    return f"**{word}**:{rest}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    rules = [
        "---:" if rows and not any(isinstance(row[index], str) for row in rows) else "---"
        for index in range(len(columns))
    ]
    lines = [columns, rules, *([shown(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
