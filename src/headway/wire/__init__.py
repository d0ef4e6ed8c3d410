"""What goes over the wire: requests and answers as JSON, the same for HTTP, RPC and the client.

Names are in camelCase, instants in RFC 3339 UTC, durations as people write them (`1h30m`). A request with a field
that does not exist is refused. This room only converts: it may import values and pure rules, and decides nothing.
"""

import atexit
import gc

# msgspec 0.22 may crash when the interpreter's last collection frees structs whose fields have bounds (its issue
# 717): all is done by then, but the exit code would be wrong. What is alive at the end need not be collected.
atexit.register(gc.freeze)
