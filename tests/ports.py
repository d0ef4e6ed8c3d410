"""Ports for the servers of tests.

A port that is only looked up is soon given to somebody else: four test processes look at once. So whoever asks
here keeps a socket bound to it, which does not listen: the system gives the port to nobody who asks for any, and a
server that names it may have it, as all servers here set `SO_REUSEADDR`. Until then a caller is refused.
"""

import atexit
import socket


def free_port() -> int:
    """A port of this machine that belongs to this process until it ends."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    atexit.register(kept.close)
    return int(kept.getsockname()[1])
