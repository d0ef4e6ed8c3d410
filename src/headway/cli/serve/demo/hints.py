"""What to try while the demo runs: lines that can be copied as they are."""

import os
import shutil
import sys
from pathlib import Path

from headway.cli.serve.demo.agents import BROWSER, CHANNEL, SUPPORT

_DEFAULT = "http://127.0.0.1:8787"


def hints(url: str) -> tuple[str, ...]:
    """For a server that is reached there."""
    headway = _program()
    there = "" if url == _DEFAULT else f" --server {url}"
    json = "-H 'Content-Type: application/json'"
    task = f'{{"agentId": "{BROWSER}", "action": "click", "selector": "#buy"}}'
    message = f'{{"agentId": "{SUPPORT}", "channel": "{CHANNEL}", "peer": "you", "text": "hello"}}'
    return (
        "",
        "try, in another terminal:",
        f"  {headway} top{there}",
        f"  {headway} chat {SUPPORT}{there}",
        f"  curl -s {url}/tasks {json} -d '{task}'",
        f"  curl -s '{url}/messages?wait=10s' {json} -d '{message}'",
        f"  curl -sN {url}/events",
        f"and {url}/docs in a browser. Ctrl-C ends it.",
        "",
    )


def _program() -> str:
    """How `headway` is called from here: by its name if the shell finds it."""
    started = Path(sys.argv[0])
    found = shutil.which("headway")
    if found is not None and (not started.exists() or Path(found).samefile(started)):
        return "headway"
    if started.name.startswith("headway") and started.exists():
        near = os.path.relpath(started)
        return str(started) if near.startswith(os.pardir) else near
    return "headway"
