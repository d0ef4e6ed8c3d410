"""What users may import from `headway.testing`: no more, no less."""

import subprocess
import sys

from headway import testing


def test_the_public_names() -> None:
    assert testing.__all__ == [
        "Finding",
        "Inline",
        "Invariant",
        "TimeStandsStill",
        "VirtualClock",
        "VirtualLoop",
        "run_virtual",
        "simulate",
        "virtual_time",
    ]
    assert all(hasattr(testing, name) for name in testing.__all__)


def test_the_simulator_is_a_command_that_warns_of_nothing() -> None:
    command = [sys.executable, "-W", "error", "-m", "headway.testing.simulator"]
    ran = subprocess.run(
        [*command, "--seeds", "0..1", "--steps", "5"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "0 failures\n", "")
