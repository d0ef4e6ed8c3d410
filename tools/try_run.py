"""Tries `make run` as a newcomer would: starts it, asks it a few things, ends it, and looks how it ended.

    python -m tools.try_run

It uses a port that is free and a data folder of its own, so a server that runs already is not disturbed.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LISTENS = re.compile(r"listens on (http://\S+)")
_WITHIN_S = 300.0
"""From nothing: the environment may have to be made first."""
_LOOK_EVERY_S = 0.05
_ENDS_WITHIN_S = 30.0


class NotAsPromised(Exception):
    """Something was not as the README says."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output")
        process = start(output, Path(folder))
        try:
            url = wait_for_address(process, output)
            look_around(url)
            code = end(process)
        except NotAsPromised as wrong:
            say(f"{wrong}\n--- it printed:\n{output.read_text(encoding='utf-8')}")
            return 1
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    say(f"make run: started, answered, ended with {code}")
    return 0 if code == 0 else 1


def start(output: Path, folder: Path) -> "subprocess.Popen[bytes]":
    """`make run`, in a process group of its own, with nobody at the keyboard."""
    said = {"XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}
    with output.open("wb") as file:
        return subprocess.Popen(
            ["make", "run", "ARGS=--port 0"],
            cwd=ROOT,
            env={**_environment(), **said},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )


def wait_for_address(process: "subprocess.Popen[bytes]", output: Path) -> str:
    for _ in range(round(_WITHIN_S / _LOOK_EVERY_S)):
        found = _LISTENS.search(output.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found[1]
        if process.poll() is not None:
            raise NotAsPromised(f"make run ended with {process.returncode}")
        time.sleep(_LOOK_EVERY_S)
    raise NotAsPromised(f"make run did not listen within {_WITHIN_S:.0f} s")


def look_around(url: str) -> None:
    """What the hints of the demo suggest."""
    expect(url, "/healthz", 200)
    expect(url, "/readyz", 200)
    expect(url, "/openapi.json", 200)
    expect(url, "/metrics", 200)
    task = expect(url, "/tasks", 202, {"agentId": "browser", "action": "click", "selector": "#buy"})
    expect(url, f"/tasks/{task['taskId']}", 200)
    message = {"agentId": "echo", "session": "try", "text": "hello"}
    answer = expect(url, "/messages?wait=20s", 200, message)
    if "hello" not in json.dumps(answer):
        raise NotAsPromised(f"echo answered {answer}")
    expect(url, "/tasks", 400, {"agentId": "browser"})
    expect(url, "/lanes", 200)


def expect(
    url: str, path: str, status: int, body: Mapping[str, object] | None = None
) -> Mapping[str, object]:
    """Ask, and insist on the status. Answers what came, if it is a JSON object."""
    request = urllib.request.Request(
        url + path,
        None if body is None else json.dumps(body).encode(),
        {} if body is None else {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            found, content = response.status, response.read()
    except urllib.error.HTTPError as refused:
        found, content = refused.code, refused.read()
    except OSError as away:
        raise NotAsPromised(f"{path}: {away}") from None
    if found != status:
        raise NotAsPromised(f"{path}: {found} instead of {status}: {content[:500]!r}")
    try:
        parsed = json.loads(content)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def end(process: "subprocess.Popen[bytes]") -> int:
    """SIGTERM to the server alone: `make` then ends with the server's own exit code."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    if not children:
        raise NotAsPromised("make has no child: the server is gone")
    os.kill(int(children[0]), signal.SIGTERM)
    try:
        return process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        raise NotAsPromised(f"it did not end within {_ENDS_WITHIN_S:.0f} s of SIGTERM") from None


def _environment() -> dict[str, str]:
    """Ours, without settings of Headway that would change what is tried."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
