"""schemathesis over the served OpenAPI document, with all its checks, against a real server.

Nothing may answer with a 5xx, with a status or a body that the document does not have, take what it forbids,
refuse what it allows, or answer without a token. `make fuzz` does the same for longer.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = os.environ.get("HEADWAY_FUZZ_EXAMPLES", "3")
SEED = os.environ.get("HEADWAY_FUZZ_SEED", "5")
STORES = ["memory", "sqlite"] if EXAMPLES != "3" else ["memory"]


@contextmanager
def serving(folder: Path, store: str) -> Iterator[dict[str, str]]:
    """A server in a folder of its own, until the end of the block."""
    address = "memory://" if store == "memory" else f"sqlite:///{folder}/headway.db"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.unit.gateway.fuzz_server", address],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.stdin.close()
    assert process.returncode == 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", STORES)
def test_t2_whatever_is_asked_has_a_documented_answer(store: str, tmp_path: Path) -> None:
    with serving(tmp_path, store) as server:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server['url']}/openapi.json"]
        command += ["--checks", "all", "--max-examples", EXAMPLES, "--seed", SEED]
        command += ["--header", f"Authorization:Bearer {server['token']}"]
        command += ["--generation-deterministic", "--no-color"]
        command += ["--exclude-path", "/runs/{runId}/output", "--warnings", "off"]
        command += ["--suppress-health-check", "all", "--continue-on-failure"]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "SCHEMATHESIS_HOOKS": "tests.unit.gateway.fuzz_hooks",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
