"""One history, played to its end; and how it reads if something was wrong with it."""

from collections.abc import Iterator, Sequence

import msgspec

from headway.core.actions import Action
from headway.core.kernel import Kernel
from headway.model.run import Run
from headway.model.time import SECOND
from headway.testing.simulation.driver import Driver
from headway.testing.simulation.history import History
from headway.testing.simulation.telling import BEGINNING
from headway.testing.simulation.violation import Violation

DEFAULT_STEPS = 150
SHOWN_STEPS = 12


class Finding(Exception):
    """A history in which an invariant did not hold, with its last steps."""

    def __init__(
        self, seed: int, step: int, violation: Violation, last_steps: Sequence[str]
    ) -> None:
        self.seed = seed
        self.step = step
        self.violation = violation
        self.invariant = violation.invariant
        lines = "\n".join(last_steps)
        super().__init__(f"seed {seed}, step {step}: {violation}\n{lines}")


def simulate(seed: int, steps: int = DEFAULT_STEPS, *, kernel: type[Kernel] = Kernel) -> Driver:
    """Play one history to its end. Raises `Finding` at the first step that breaks an invariant."""
    history = History(seed, kernel=kernel)
    step = 0
    try:
        for step in range(1, steps + 1):  # noqa: B007 - told by the finding
            history.step()
        history.settle()
    except Violation as violation:
        shown = list(describe(history.driver))[-SHOWN_STEPS:]
        raise Finding(seed, step, violation, shown) from violation
    return history.driver


def describe(driver: Driver) -> Iterator[str]:
    """What was done and what came of it, a line each."""
    for now, what, actions in driver.log:
        text = " ".join(_shown(part) for part in what)
        came = "; ".join(_shown_action(action) for action in actions)
        if came or what[0] != "time passes":
            yield f"{(now - BEGINNING) / SECOND:9.3f}  {text}" + (f"  ->  {came}" if came else "")


def _shown(part: object) -> str:
    if isinstance(part, Run):
        plain = Run(part.id, part.agent, part.session, part.source, part.lane, part.priority, 0)
        said = {
            name: value
            for name, value in msgspec.structs.asdict(part).items()
            if name not in {"id", "submitted_at", "text"}
            and (value != getattr(plain, name) or name in _ALWAYS_SHOWN)
        }
        return f"{part.id} " + " ".join(f"{name}={_brief(value)}" for name, value in said.items())
    return _brief(part)


def _brief(value: object) -> str:
    if isinstance(value, msgspec.Struct):
        said = {
            name: inner
            for name, inner in msgspec.structs.asdict(value).items()
            if inner not in (None, "", ())
        }
        inside = " ".join(f"{name}={_brief(inner)}" for name, inner in said.items())
        return f"{type(value).__name__}({inside})"
    return str(value)


def _shown_action(action: Action) -> str:
    parts = []
    for name in action.__struct_fields__:
        value = getattr(action, name)
        if name in {"epoch", "at"} or value in (None, ""):
            continue
        parts.append(value.id if isinstance(value, Run) else _brief(value))
    return f"{type(action).__name__}({' '.join(parts)})"


_ALWAYS_SHOWN = frozenset({"agent", "session", "source", "lane", "priority"})
