"""The channels that come with Headway: `hw.add_channel("hook", WebhookChannel(url, secret))`.

Each is an adapter of `ports.Channel`. May import `ports`, `calls`, `core` and `model`, and of the runtime only its
clock. A channel that returns from `send` has the delivery for good: it leaves the outbox. One that is not sure
raises, and the same delivery, of the same id, comes again.
"""

from headway.channels.log import LogChannel
from headway.channels.posting import WebhookFailed
from headway.channels.signing import sign, verify_signature
from headway.channels.terminal import TerminalChannel
from headway.channels.webhook import WebhookChannel

__all__ = [
    "LogChannel",
    "TerminalChannel",
    "WebhookChannel",
    "WebhookFailed",
    "sign",
    "verify_signature",
]
