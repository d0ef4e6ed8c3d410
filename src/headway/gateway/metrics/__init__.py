"""Numbers about this server, for Prometheus (O-3).

What happens is counted from the catalogue of events, in plain tables and on the loop's own thread, because it is
on the way of every run; what is just now is asked of the façade when somebody looks. Labels are closed: lanes,
words of the vocabulary, paths of the routes. Agents and sessions are none: there may be any number of them.
"""

from headway.gateway.metrics.metrics import Metrics
from headway.gateway.metrics.page import MEDIA_TYPE, MetricsPage

__all__ = ["MEDIA_TYPE", "Metrics", "MetricsPage"]
