"""Replays histories of a simulated cluster.

python -m headway.testing.cluster --seed 42         one history, everything that happened
python -m headway.testing.cluster --seeds 0..500    many, only failures are shown

With `--rush` each history has many short runs besides, and nodes that store their starts ahead.
"""

import argparse
import sys
from collections.abc import Sequence

from headway.testing.cluster.play import ClusterFinding, simulate_cluster


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="headway.testing.cluster", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, help="play one history and show all of it")
    which.add_argument("--seeds", type=_range, metavar="A..B", help="play many, show failures")
    parser.add_argument("--rush", action="store_true", help="many short runs, started ahead")
    chosen = parser.parse_args(arguments)
    if chosen.seed is not None:
        return _replay(chosen.seed, rush=chosen.rush)
    failures = 0
    for seed in chosen.seeds:
        try:
            simulate_cluster(seed, rush=chosen.rush)
        except ClusterFinding as finding:
            sys.stdout.write(f"seed {seed}: {finding.violation}\n")
            failures += 1
    sys.stdout.write(f"{failures} failures\n")
    return 1 if failures else 0


def _replay(seed: int, *, rush: bool) -> int:
    try:
        log, end = simulate_cluster(seed, rush=rush).log, "every promise was kept"
    except ClusterFinding as finding:
        log, end = finding.log, f"broken: {finding.violation}"
    for line in log:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"seed {seed}: {end}\n")
    return 0 if end == "every promise was kept" else 1


def _range(text: str) -> range:
    first, dots, last = text.partition("..")
    if not dots:
        raise argparse.ArgumentTypeError("must be like 0..500")
    return range(int(first), int(last))


if __name__ == "__main__":
    sys.exit(main())
