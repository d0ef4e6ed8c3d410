"""The simulator: random histories in virtual time, each step checked against a second model.

    python -m headway.testing.simulator --seed 42 --steps 150      one history, step by step
    python -m headway.testing.simulator --seeds 0..2000            many, only failures are shown

A seed always gives the same history, so a failing one can be sent around and replayed.
"""

import argparse
import sys
from collections.abc import Sequence

from headway.testing.simulation.history import History
from headway.testing.simulation.play import DEFAULT_STEPS, Finding, describe, simulate
from headway.testing.simulation.violation import Violation


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="headway.testing.simulator", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, help="play one history and show every step")
    which.add_argument("--seeds", type=_range, metavar="A..B", help="play many, show failures")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS)
    parser.add_argument("--failures", type=int, default=1, help="stop after so many")
    chosen = parser.parse_args(arguments)
    if chosen.seed is not None:
        return _replay(chosen.seed, chosen.steps)
    failures = 0
    for seed in chosen.seeds:
        try:
            simulate(seed, chosen.steps)
        except Finding as finding:
            sys.stdout.write(f"{finding}\n\n")
            failures += 1
            if failures == chosen.failures:
                break
    sys.stdout.write(f"{failures} failures\n")
    return 1 if failures else 0


def _replay(seed: int, steps: int) -> int:
    history = History(seed)
    try:
        for _ in range(steps):
            history.step()
        history.settle()
    except Violation as violation:
        end = f"violated: {violation}"
    else:
        end = "every invariant held"
    for line in describe(history.driver):
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"seed {seed}: {end}\n")
    return 0 if end == "every invariant held" else 1


def _range(text: str) -> range:
    first, dots, last = text.partition("..")
    if not dots:
        raise argparse.ArgumentTypeError("must be like 0..2000")
    return range(int(first), int(last))


if __name__ == "__main__":
    sys.exit(main())
