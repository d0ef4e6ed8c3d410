"""Agents that are commands and wait to be told to go on, for `headway worker --agents …waiting_agents:hw`.

Each command writes a line into a file when it begins, so that it can be counted how often one was started.
"""

import os
import sys

from headway import Headway

FOLDER = "HEADWAY_TEST_FOLDER"
WAITS = """
import os, sys, time
folder, name = sys.argv[1:]
with open(os.path.join(folder, "begun"), "a") as begun:
    print(name, os.getpid(), os.environ["HEADWAY_FENCE"], file=begun)
print("waiting", flush=True)
while not os.path.exists(os.path.join(folder, "go")):
    time.sleep(0.01)
print("over", flush=True)
sys.exit(7)
"""

hw = Headway()
hw.command_agent(
    "waiter",
    [sys.executable, "-c", WAITS, os.environ.get(FOLDER, "."), "{run_id}"],
    grace="500ms",
)
