"""The client of a Headway server: everything that its HTTP API and its RPC do, as typed calls.

It sends the structs of `wire` and gets them back; errors come back as the families that the library itself raises,
so that who asks a server and who asks a `Headway` in his own process handles them alike. It decides nothing: the
server says what is allowed. If this room is wrong, a caller believes in work that no server has taken.

    async with Client("http://127.0.0.1:8787", token="hw_…") as client:
        taken = await client.tasks.submit(TaskRequest(agent_id="browser", action="click"))
        ended = await client.runs.wait(taken.task_id)
"""

from headway.client.client import DEFAULT_URL, Client
from headway.client.errors import NoServer, ServerFailed, ServerRefused, ServerUnavailable
from headway.client.rpc import Frame, Rpc
from headway.client.streams import Heard

__all__ = [
    "DEFAULT_URL",
    "Client",
    "Frame",
    "Heard",
    "NoServer",
    "Rpc",
    "ServerFailed",
    "ServerRefused",
    "ServerUnavailable",
]
