"""Where one sees how the machines are that nodes run on."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import machine

TAG = "Machines"
_SNAPSHOT = {
    "host": "web-1",
    "node": 3,
    "at": "2026-11-15T09:34:00.000Z",
    "cpu": 37.5,
    "cores": 8,
    "memoryUsed": 6_442_450_944,
    "memoryTotal": 17_179_869_184,
    "load": 2.41,
    "workers": 4,
    "lanes": [{"name": "main", "width": 30, "running": 4, "waiting": 0}],
}

handlers = [
    Endpoint(
        "GET", "/machine", machine.get_machines, TAG, answer_example={"machines": [_SNAPSHOT]}
    ),
    Endpoint(
        "GET",
        "/machine/snapshots",
        machine.list_snapshots,
        TAG,
        answer_example={"snapshots": [_SNAPSHOT], "cursor": None},
    ),
]
