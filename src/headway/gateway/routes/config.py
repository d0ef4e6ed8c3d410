"""Where the config of a running server is seen, and read anew."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import config

TAG = "Config"

handlers = [
    Endpoint(
        "GET",
        "/config",
        config.show_config,
        TAG,
        refusals=(404,),
        answer_example={
            "settings": [
                {
                    "key": "lanes.main.width",
                    "value": 30,
                    "source": "headway.toml line 12",
                    "variable": "HEADWAY_LANE_MAIN",
                    "live": True,
                }
            ]
        },
    ),
    Endpoint(
        "POST",
        "/config/reload",
        config.reload_config,
        TAG,
        refusals=(404,),
        answer_example={"changed": ["lanes.main"], "needsRestart": []},
    ),
]
