"""Where Prometheus looks."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.metrics import MEDIA_TYPE
from headway.gateway.operations import metrics

TAG = "Health"

_EXAMPLE = """\
# HELP headway_lane_running Runs that go in a lane.
# TYPE headway_lane_running gauge
headway_lane_running{lane="main"} 3.0
"""

handlers = [
    Endpoint("GET", "/metrics", metrics.metrics, TAG, media=MEDIA_TYPE, answer_example=_EXAMPLE),
]
