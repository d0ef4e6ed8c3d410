"""Agents in panes, for processes of their own: `headway worker --agents tests.e2e.workers.pane_agents:hw`."""

import os
import sys

from headway import Headway

SOCKET, GO = "HEADWAY_TEST_SOCKET", "HEADWAY_TEST_GO"
WAITS = """
import os, sys, time
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
print("over", flush=True)
sys.exit(4)
"""

hw = Headway()
hw.tmux_agent(
    "coder",
    [sys.executable, "-c", WAITS, os.environ.get(GO, "nowhere")],
    socket=os.environ.get(SOCKET, "headway"),
)
