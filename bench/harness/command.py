"""The commands of `python -m bench`."""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import bench
from bench.harness import catalogue
from bench.harness.machine import describe_machine, describe_versions
from bench.harness.packages import PackageMissing
from bench.harness.report import Report
from bench.harness.results import Result, render
from bench.harness.screen import print_figures, print_report, progress

_BENCHES = Path(bench.__file__).resolve().parent
_ROOT = _BENCHES.parent
RESULTS = _BENCHES / "RESULTS.md"
PICTURES = _ROOT / "docs" / "pictures"
_PACKAGE_MISSING = 3
"""The exit code of a bench that could not be measured for want of a package."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks; the exit code is 0 unless a bench broke, lacks a package or is none."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        return _list()
    if options.name is None:
        parser.error("name a bench, or `all`; --list shows them")
    if options.name == "all":
        return _run_all(quick=options.quick, plot=options.plot)
    try:
        return _run_one(
            catalogue.load(options.name),
            quick=options.quick,
            plot=options.plot,
            minutes=options.minutes,
            report_to=options.report_to,
        )
    except (catalogue.UnknownBench, catalogue.HasNoLength) as wrong:
        parser.error(str(wrong))
    except PackageMissing as missing:
        progress(str(missing))
        return _PACKAGE_MISSING


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Headway.")
    parser.add_argument("name", nargs="?", help="a bench, or `all`")
    parser.add_argument("--list", action="store_true", help="show the benches")
    parser.add_argument("--quick", action="store_true", help="only show that it works")
    parser.add_argument("--plot", action="store_true", help="draw docs/pictures/bench-NAME.svg")
    parser.add_argument("--minutes", type=float, help="how long, for benches such as chaos")
    # How `all` gets the whole report of a bench that ran in its own process.
    parser.add_argument("--report-to", type=Path, help=argparse.SUPPRESS)
    return parser


def _list() -> int:
    names = catalogue.names()
    width = max(map(len, names), default=0)
    for name in names:
        print(f"{name:<{width}}  {catalogue.load(name).title}")
    if not names:
        print("There are no benches yet.")
    return 0


def _run_one(
    found: catalogue.Bench,
    *,
    quick: bool,
    plot: bool,
    minutes: float | None,
    report_to: Path | None,
) -> int:
    report = found.measure(quick=quick, minutes=minutes)
    if report_to is not None:
        report_to.write_bytes(msgspec.json.encode(report))
    if plot:
        _draw(found.title, report, quick=quick)
    print_report(found.title, report, quick=quick)
    return 0


def _draw(title: str, report: Report, *, quick: bool) -> None:
    if not report.peers:
        progress(f"{report.name} names no peers: no picture")
        return
    from bench.harness.plot import draw

    path = PICTURES / f"bench-{report.name}.svg"
    draw(f"{title} (quick run)" if quick else title, report, path)
    progress(f"drew {path.relative_to(_ROOT)}")


def _run_all(*, quick: bool, plot: bool) -> int:
    names = catalogue.names()
    results: list[Result] = []
    for number, name in enumerate(names, start=1):
        progress(f"[{number}/{len(names)}] {name}")
        results.append(_run_apart(name, quick=quick, plot=plot))
    if quick:
        progress("quick run: bench/RESULTS.md is left as it was")
    else:
        _write_results(results)
    print_figures(
        "all",
        {
            f"{result.name}.{figure}": value
            for result in results
            if result.report is not None
            for figure, value in result.report.figures.items()
        },
    )
    missing = [result.name for result in results if result.lacks_package]
    if missing:
        progress(f"not measured for want of a package: {', '.join(missing)}")
    broken = [
        result.name for result in results if result.report is None and not result.lacks_package
    ]
    if broken:
        progress(f"broke: {', '.join(broken)}")
    return 1 if broken else 0


def _run_apart(name: str, *, quick: bool, plot: bool) -> Result:
    """Run a bench in a process of its own, so that no bench warms up or burdens the next."""
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as folder:
        report_to = Path(folder) / "report.json"
        command = [sys.executable, "-m", "bench", name, "--report-to", str(report_to)]
        command += ["--quick"] if quick else []
        command += ["--plot"] if plot else []
        code = subprocess.run(command, cwd=_ROOT, check=False).returncode
        report = None
        if code == 0:
            report = msgspec.json.decode(report_to.read_bytes(), type=Report)
    return Result(name, _title(name), report, lacks_package=code == _PACKAGE_MISSING)


def _title(name: str) -> str:
    """The title of a bench that may be too broken to be loaded."""
    try:
        return catalogue.load(name).title
    except Exception as broken:  # noqa: BLE001 - a bench may break in any way, and the page names it
        return f"cannot be loaded ({type(broken).__name__})"


def _write_results(results: Sequence[Result]) -> None:
    page = render(
        results,
        measured_at=datetime.now(UTC),
        machine=describe_machine(),
        versions=describe_versions(),
    )
    RESULTS.write_text(page, encoding="utf-8")
    progress(f"wrote {RESULTS.relative_to(_ROOT)}")
