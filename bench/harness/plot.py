"""The picture of a report: one bar for each peer.

Drawn on white, so that it reads the same on a light and on a dark page, and without a date or
random ids, so that drawing the same numbers again changes no file.
"""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.harness.report import Report, shown

_OURS = "#2563eb"
_THEIRS = "#94a3b8"
_INK = "#1f2937"


def draw(title: str, report: Report, path: Path) -> None:
    """Write the bar chart of `report.peers` to `path` as SVG."""
    if not report.peers:
        raise ValueError(f"{report.name}: the report names no peers, so there is nothing to draw")
    labels = [label for label, _ in report.peers]
    values = [value for _, value in report.peers]
    colours = [_OURS if label.lower().startswith("headway") else _THEIRS for label in labels]

    with mpl.rc_context({"svg.hashsalt": report.name, "font.size": 11, "text.color": _INK}):
        figure = Figure(figsize=(8, 1.1 + 0.5 * len(labels)), layout="constrained")
        axes = figure.subplots()
        bars = axes.barh(labels, values, color=colours, height=0.65)
        axes.bar_label(bars, labels=[shown(float(value)) for value in values], padding=5)
        axes.set_title(title, loc="left", fontweight="bold", pad=12)
        axes.invert_yaxis()
        axes.margins(x=0.14)
        axes.set_xlabel(report.unit, color=_INK)
        axes.xaxis.set_ticks([])
        axes.tick_params(axis="y", length=0, colors=_INK)
        for side in ("top", "right", "bottom"):
            axes.spines[side].set_visible(False)
        axes.spines["left"].set_color(_THEIRS)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", facecolor="white", metadata={"Date": None})
