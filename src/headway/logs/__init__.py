"""The log of a server: the catalogue of events as lines of JSON, on stderr and in a file that is rotated (O-3).

A `Log` hears every event of a bus that is tapped with it (`bus.tap(log.hear)`) and whatever libraries say through
`logging`, and writes them from a thread of its own: neither a slow terminal nor a full disk ever holds the server
up. What it cannot write in time it counts and leaves out. The room may import the model and nothing else. If it is
wrong, a night's trouble leaves no trace, or the log itself becomes the trouble.
"""

from headway.logs.log import Log, open_log
from headway.logs.reading import Tail, line_matches, newest_lines

__all__ = ["Log", "Tail", "line_matches", "newest_lines", "open_log"]
