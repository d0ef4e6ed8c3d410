"""A delivery as programs outside read it."""

from headway.model.outcome import Attachment
from headway.model.places import Delivery
from headway.model.text import whole
from headway.model.value import Value


class Enclosure(Value, frozen=True, rename="camel"):
    """An attachment; its bytes are where the url says."""

    name: str
    media_type: str
    url: str


class Letter(Value, frozen=True, rename="camel", omit_defaults=True):
    """What is delivered, without what only the outbox needs to know."""

    id: str
    """The same each time it is tried: whoever has seen it need not take it again."""
    channel: str
    account: str
    to: str
    thread: str
    text: str
    attachments: tuple[Enclosure, ...]
    run_id: str
    session: str
    empty: bool = False
    """Nothing is said, and nothing more comes: whoever shows that an agent is typing ends it (S-10)."""


def letter_of(delivery: Delivery) -> Letter:
    route = delivery.route
    return Letter(
        delivery.id,
        route.channel,
        whole(route.account),
        whole(route.peer),
        whole(route.thread),
        whole(delivery.text),
        tuple(_enclosure(attachment) for attachment in delivery.attachments),
        delivery.run_id,
        whole(delivery.session),
        is_empty(delivery),
    )


def is_empty(delivery: Delivery) -> bool:
    return not delivery.text and not delivery.attachments


def _enclosure(attachment: Attachment) -> Enclosure:
    return Enclosure(whole(attachment.name), whole(attachment.media_type), whole(attachment.url))
