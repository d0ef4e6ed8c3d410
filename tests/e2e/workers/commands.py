"""Agents that are commands: one that writes for ever, one that ends by itself."""

import sys

from headway import Headway

_LOUD = "import time\nwhile True:\n    print('tick')\n    time.sleep(0.05)"
_QUICK = "import sys, time\nprint('bye')\ntime.sleep(1.5)\nsys.exit(3)"

hw = Headway()
hw.command_agent("loud", (sys.executable, "-u", "-c", _LOUD), grace="1s")
hw.command_agent("quick", (sys.executable, "-c", _QUICK))
