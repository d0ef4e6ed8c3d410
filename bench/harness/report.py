"""What a bench found: a table to read, figures to compare, limits to hold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

Cell = str | int | float
Op = Literal["<", "<=", ">", ">="]
Peer = tuple[str, float]
Limit = tuple[Op, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings of one bench.

    `figures` are the numbers that later runs are compared with. `limits` bound some of them.
    `peers` are the bars of the picture, all in `unit`; a label that begins with "Headway" is ours.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    figures: Mapping[str, float]
    peers: Sequence[Peer] = ()
    unit: str = ""
    limits: Mapping[str, Limit] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.name}: {len(self.columns)} columns, but a row is {row!r}")
        for name, value in self.figures.items():
            if not math.isfinite(value):
                raise ValueError(
                    f"{self.name}: figure {name!r} is {value}, which is no number to report"
                )
        for name in self.limits:
            if name not in self.figures:
                raise ValueError(f"{self.name}: a limit names {name!r}, which is no figure")

    def verdicts(self) -> list["Verdict"]:
        """Each limit, held against its figure."""
        return [
            Verdict(figure=name, value=self.figures[name], op=op, bound=bound)
            for name, (op, bound) in self.limits.items()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One limit and the figure it bounds."""

    figure: str
    value: float
    op: Op
    bound: float

    @property
    def holds(self) -> bool:
        match self.op:
            case "<":
                return self.value < self.bound
            case "<=":
                return self.value <= self.bound
            case ">":
                return self.value > self.bound
            case ">=":
                return self.value >= self.bound
            case _:
                assert_never(self.op)

    def __str__(self) -> str:
        required = f"{self.figure} {self.op} {shown(self.bound)}"
        if self.holds:
            return f"ok: {required} (measured {shown(self.value)})"
        return f"short of: {required} (measured {shown(self.value)}{self._by_how_much()})"

    def _by_how_much(self) -> str:
        if not self.bound:
            return ""
        off = abs(self.value - self.bound) / abs(self.bound)
        return f", off by {off:.1%}"


def rounded(value: float) -> float | int:
    """As many digits as a timing deserves: whole from 1,000 up, else four significant ones."""
    if value == 0 or float(value).is_integer() or abs(value) >= 1000:
        return round(value)
    return round(value, 3 - math.floor(math.log10(abs(value))))


def shown(cell: Cell) -> str:
    """A cell as a reader wants it: text as it is, numbers rounded and with thousands apart."""
    match cell:
        case str():
            return cell
        case bool():
            return "yes" if cell else "no"
        case int():
            return f"{cell:,}"
        case float():
            short = rounded(cell)
            if isinstance(short, int):
                return f"{short:,}"
            return f"{short:,.{max(0, 3 - math.floor(math.log10(abs(short))))}f}"
        case _:
            assert_never(cell)
