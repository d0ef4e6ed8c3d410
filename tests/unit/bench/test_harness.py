"""The bench harness: what it finds, how it judges, and the line that programs read."""

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import bench
from bench.harness import Report, catalogue, command
from bench.harness.plot import draw
from bench.harness.report import Op, Verdict, rounded, shown
from bench.harness.results import Result, render

TINY = '''
"""A bench that measures nothing, at once."""

from bench.harness import Report, progress

TITLE = "Nothing, measured"


def run(quick: bool) -> Report:
    progress("measuring nothing")
    return Report(
        name="tiny",
        columns=("what", "runs/s"),
        rows=[("Headway", 1234.5678), ("peer", 99)],
        figures={"runs_per_s": 1234.5678, "ratio": 0.123456, "quick": float(quick)},
        peers=[("Headway", 1234.5678), ("peer", 99.0)],
        unit="runs/s",
        limits={"runs_per_s": (">=", 5000), "ratio": ("<", 0.5)},
    )
'''
LONG = TINY.replace("(quick: bool)", "(quick: bool, minutes: float | None = None)").replace(
    '"quick": float(quick)', '"minutes": minutes or 0.0'
)
NEEDY = 'from bench.harness import need\nTITLE = "Needy"\n\n\ndef run(quick):\n    need("no-such-package")\n'
BROKEN = 'TITLE = "Broken"\n\n\ndef run(quick):\n    raise RuntimeError("broken")\n'


def tiny_report() -> Report:
    return Report(
        name="tiny",
        columns=("what", "runs/s"),
        rows=[("Headway", 1234.5678), ("a|b", 99)],
        figures={"runs_per_s": 1234.5678},
        peers=[("Headway", 1234.5678), ("peer", 99.0)],
        unit="runs/s",
        limits={"runs_per_s": (">=", 5000)},
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the harness and one tiny bench, and nothing else."""
    source = Path(bench.__file__).parent
    target = tmp_path / "bench"
    shutil.copytree(source / "harness", target / "harness")
    for name in ("__init__.py", "__main__.py"):
        shutil.copy(source / name, target / name)
    (target / "tiny.py").write_text(TINY, encoding="utf-8")
    (target / "_shared.py").write_text("", encoding="utf-8")
    return tmp_path


def invoke(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


class TestOneBench:
    def test_the_last_line_is_the_figures_as_json(self, project: Path) -> None:
        ran = invoke(project, "tiny")
        assert json.loads(ran.stdout.splitlines()[-1]) == {
            "bench": "tiny",
            "figures": {"runs_per_s": 1235, "ratio": 0.1235, "quick": 0},
        }

    def test_progress_goes_to_stderr(self, project: Path) -> None:
        ran = invoke(project, "tiny")
        assert "measuring nothing" in ran.stderr
        assert "measuring nothing" not in ran.stdout

    def test_a_missed_limit_is_said_and_fails_nothing(self, project: Path) -> None:
        ran = invoke(project, "tiny")
        assert ran.returncode == 0, ran.stderr
        assert "short of: runs_per_s >= 5,000 (measured 1,235, off by 75.3%)" in ran.stdout
        assert "ok: ratio < 0.5000 (measured 0.1235)" in ran.stdout

    def test_quick_reaches_the_bench_and_is_said(self, project: Path) -> None:
        ran = invoke(project, "tiny", "--quick")
        assert json.loads(ran.stdout.splitlines()[-1])["figures"]["quick"] == 1
        assert "Quick run" in ran.stdout

    def test_a_name_that_does_not_exist_is_answered_with_those_that_do(self, project: Path) -> None:
        ran = invoke(project, "huge")
        assert ran.returncode == 2
        assert "no bench 'huge'; there are: tiny" in ran.stderr

    def test_a_bench_must_report_under_its_own_name(self) -> None:
        misnamed = catalogue.Bench("other", "Other", lambda quick: tiny_report())
        with pytest.raises(catalogue.NotABench, match="reported as 'tiny'"):
            misnamed.measure(quick=True)


class TestAllBenches:
    def test_each_is_measured_and_written_down(self, project: Path) -> None:
        ran = invoke(project, "all")
        assert ran.returncode == 0, ran.stderr
        page = (project / "bench" / "RESULTS.md").read_text(encoding="utf-8")
        assert "## tiny: Nothing, measured" in page
        assert "| Headway | 1,235 |" in page
        assert "**short of**: runs_per_s >= 5,000" in page
        last = json.loads(ran.stdout.splitlines()[-1])
        assert last["bench"] == "all"
        assert last["figures"]["tiny.runs_per_s"] == 1235

    def test_a_quick_run_writes_no_results(self, project: Path) -> None:
        ran = invoke(project, "all", "--quick")
        assert ran.returncode == 0, ran.stderr
        assert not (project / "bench" / "RESULTS.md").exists()

    def test_one_that_breaks_does_not_take_the_others_along(self, project: Path) -> None:
        (project / "bench" / "broken.py").write_text(BROKEN, encoding="utf-8")
        ran = invoke(project, "all")
        assert ran.returncode == 1
        page = (project / "bench" / "RESULTS.md").read_text(encoding="utf-8")
        assert "The bench broke" in page
        assert "| Headway | 1,235 |" in page


class TestCatalogue:
    def test_lists_benches_and_neither_packages_nor_private_modules(self, project: Path) -> None:
        ran = invoke(project, "--list")
        assert ran.stdout == "tiny  Nothing, measured\n"

    def test_every_bench_of_this_project_loads(self) -> None:
        for name in catalogue.names():
            assert catalogue.load(name).title

    def test_a_module_without_a_title_is_told_what_it_lacks(self, project: Path) -> None:
        (project / "bench" / "shared.py").write_text("", encoding="utf-8")
        ran = invoke(project, "shared")
        assert ran.returncode != 0
        assert "call it bench/_shared.py" in ran.stderr


class TestReport:
    @pytest.mark.parametrize(
        ("op", "value", "holds"),
        [
            ("<", 1.0, False),
            ("<", 0.9, True),
            ("<=", 1.0, True),
            ("<=", 1.1, False),
            (">", 1.0, False),
            (">", 1.1, True),
            (">=", 1.0, True),
            (">=", 0.9, False),
        ],
    )
    def test_a_limit_holds_or_not(self, op: Op, value: float, holds: bool) -> None:
        verdict = Verdict(figure="ratio", value=value, op=op, bound=1.0)
        assert verdict.holds is holds
        assert str(verdict).startswith("ok: " if holds else "short of: ")

    def test_a_limit_without_its_figure_is_refused(self) -> None:
        with pytest.raises(ValueError, match="no figure"):
            Report(name="x", columns=(), rows=(), figures={}, limits={"speed": (">", 1)})

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_a_figure_that_is_no_number_is_refused(self, value: float) -> None:
        with pytest.raises(ValueError, match="no number"):
            Report(name="x", columns=(), rows=(), figures={"speed": value})

    def test_a_row_of_another_length_is_refused(self) -> None:
        with pytest.raises(ValueError, match="1 columns"):
            Report(name="x", columns=("a",), rows=[("b", 1)], figures={})

    @pytest.mark.parametrize(
        ("value", "figure", "text"),
        [
            (0.0, 0, "0"),
            (2.0, 2, "2"),
            (0.000123456, 0.0001235, "0.0001235"),
            (0.37, 0.37, "0.3700"),
            (12.34567, 12.35, "12.35"),
            (999.96, 1000, "1,000"),
            (123456.7, 123457, "123,457"),
            (-12.34567, -12.35, "-12.35"),
        ],
    )
    def test_numbers_keep_the_digits_a_timing_deserves(
        self, value: float, figure: float, text: str
    ) -> None:
        assert rounded(value) == figure
        assert shown(value) == text


class TestPage:
    def test_says_when_and_on_what(self) -> None:
        page = render(
            [Result("tiny", "Nothing", tiny_report())],
            measured_at=datetime(2030, 1, 2, 3, 4, tzinfo=UTC),
            machine={"cpu": "Abacus"},
            versions={"python": "CPython 3.11"},
        )
        assert "| measured | 2030-01-02 03:04 UTC |" in page
        assert "| cpu | Abacus |" in page
        assert "| what | runs/s |\n| --- | ---: |" in page
        assert "a\\|b" in page


class TestPicture:
    def test_is_the_same_file_for_the_same_numbers_on_white(self, tmp_path: Path) -> None:
        first, second = tmp_path / "a" / "first.svg", tmp_path / "second.svg"
        draw("Nothing", tiny_report(), first)
        draw("Nothing", tiny_report(), second)
        assert first.read_bytes() == second.read_bytes()
        assert "fill: #ffffff" in first.read_text(encoding="utf-8")

    def test_goes_where_the_documents_look_for_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(command, "_ROOT", tmp_path)
        monkeypatch.setattr(command, "PICTURES", tmp_path / "docs" / "pictures")
        command._draw("Nothing", tiny_report(), quick=False)
        assert (tmp_path / "docs" / "pictures" / "bench-tiny.svg").exists()


def test_minutes_reach_a_bench_that_has_them(project: Path) -> None:
    (project / "bench" / "tiny.py").write_text(LONG)
    ran = invoke(project, "tiny", "--minutes", "2.5")
    assert json.loads(ran.stdout.splitlines()[-1])["figures"]["minutes"] == 2.5


def test_minutes_are_refused_by_a_bench_without_them(project: Path) -> None:
    ran = invoke(project, "tiny", "--minutes", "1")
    assert ran.returncode == 2
    assert "--minutes" in ran.stderr


def test_a_missing_package_is_named_and_all_goes_on_without_it(project: Path) -> None:
    (project / "bench" / "needy.py").write_text(NEEDY)
    alone = invoke(project, "needy")
    assert alone.returncode == 3
    assert "no-such-package" in alone.stderr
    every = invoke(project, "all")
    assert every.returncode == 0
    assert "not measured" in every.stderr
    assert "Not measured" in (project / "bench" / "RESULTS.md").read_text()
