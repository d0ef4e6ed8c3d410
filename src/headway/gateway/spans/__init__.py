"""OpenTelemetry: one span for each run that begins here, its attempts below it, below those the agent's own.

Off unless the program has set up a tracer provider before the server opens: the module with the agents does, or
`opentelemetry-instrument headway serve`. As long as nobody has, nothing is imported and no run pays for it. A run
that never begins has no span.
"""

import sys
from collections.abc import Callable

from headway.facade import Headway


def open_spans(hw: Headway) -> Callable[[], None] | None:
    """Begin to tell of runs, if there is a tracer to tell. The answer ends it; None: there is none."""
    if "opentelemetry.trace" not in sys.modules:
        # Whoever sets up a provider has imported it.
        return None
    from headway.gateway.spans.recorder import Recorder, tracer  # noqa: PLC0415 - an optional part

    found = tracer()
    return None if found is None else Recorder(hw, found).open()
