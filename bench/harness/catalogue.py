"""Which benches there are: every plain module directly in the package, found by looking."""

import importlib
import inspect
import pkgutil
from dataclasses import dataclass
from typing import Protocol, cast

import bench
from bench.harness.report import Report


class UnknownBench(LookupError):
    """The caller named a bench that does not exist."""


class NotABench(TypeError):
    """A module stands where benches stand and lacks what makes it one."""


class HasNoLength(ValueError):
    """The caller said how long a bench shall take that takes as long as it takes."""


class Run(Protocol):
    """The function every bench has."""

    def __call__(self, quick: bool) -> Report: ...


class LongRun(Protocol):
    """The function of a bench that goes on for as long as it is told."""

    def __call__(self, quick: bool, minutes: float | None = None) -> Report: ...


@dataclass(frozen=True, slots=True)
class Bench:
    """One bench, loaded."""

    name: str
    title: str
    run: Run

    def measure(self, *, quick: bool, minutes: float | None = None) -> Report:
        """Run the bench, and see that it reports under its own name."""
        if minutes is None:
            report = self.run(quick=quick)
        elif "minutes" in inspect.signature(self.run).parameters:
            report = cast(LongRun, self.run)(quick=quick, minutes=minutes)
        else:
            raise HasNoLength(f"bench {self.name!r} takes as long as it takes: no --minutes")
        if report.name != self.name:
            raise NotABench(f"bench {self.name!r} reported as {report.name!r}")
        return report


def names() -> list[str]:
    """The names of all benches, in order."""
    return sorted(
        module.name
        for module in pkgutil.iter_modules(bench.__path__)
        if not module.ispkg and not module.name.startswith("_")
    )


def load(name: str) -> Bench:
    """The bench of that name; dashes stand for underscores."""
    name = name.replace("-", "_")
    if name not in names():
        raise UnknownBench(f"no bench {name!r}; there are: {', '.join(names()) or 'none yet'}")
    module = importlib.import_module(f"bench.{name}")
    title = getattr(module, "TITLE", None)
    run = getattr(module, "run", None)
    if not isinstance(title, str) or not callable(run):
        raise NotABench(
            f"bench/{name}.py needs TITLE: str and run(quick: bool) -> Report;"
            f" if it is a part that benches share, call it bench/_{name}.py"
        )
    return Bench(name=name, title=title, run=cast(Run, run))
