"""Where lanes are looked at, resized, paused and cleared."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import lanes

TAG = "Lanes"
LANE = {
    "name": "main",
    "width": 30,
    "reserve": 5,
    "clusterLimit": None,
    "runsPerMinute": None,
    "tokensPerMinute": None,
    "paused": False,
    "running": 30,
    "waiting": 12,
    "started": 4711,
}

handlers = [
    Endpoint(
        "GET",
        "/lanes",
        lanes.list_lanes,
        TAG,
        answer_example={"lanes": [LANE], "cursor": None},
    ),
    Endpoint("GET", "/lanes/{name}", lanes.get_lane, TAG, refusals=(404,), answer_example=LANE),
    Endpoint(
        "PUT",
        "/lanes/{name}",
        lanes.set_lane,
        TAG,
        refusals=(404, 409),
        asked_example={"width": 30, "reserve": 5},
        answer_example=LANE,
    ),
    Endpoint(
        "POST",
        "/lanes/{name}/clear",
        lanes.clear_lane,
        TAG,
        refusals=(404,),
        answer_example={"name": "main", "cleared": 12},
    ),
    Endpoint(
        "POST",
        "/lanes/{name}/pause",
        lanes.pause_lane,
        TAG,
        refusals=(404,),
        answer_example={**LANE, "width": 0, "paused": True},
    ),
    Endpoint(
        "POST",
        "/lanes/{name}/resume",
        lanes.resume_lane,
        TAG,
        refusals=(404, 409),
        answer_example=LANE,
    ),
]
