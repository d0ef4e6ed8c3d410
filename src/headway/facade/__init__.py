"""What a user holds: `Headway`. Agents are registered on it, work is sent to it, and it shows what it is doing.

It checks what it is told and gives it to the engine; it decides nothing. `registry` remembers what was registered
until there is an engine, `chat` carries out chat commands, `batch` takes many requests at once, and `reloading`
finds what differs between two settings. The room may use everything below it, and only the gateway, the command
line and tests stand above.
"""

from headway.facade.headway import Headway
from headway.facade.options import AgentOptions, LimitChoices, QueueChoices

__all__ = ["AgentOptions", "Headway", "LimitChoices", "QueueChoices"]
