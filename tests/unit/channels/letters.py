"""Deliveries for the tests of channels."""

from headway import Attachment, Delivery, Route
from headway.model.run import RunId, SessionKey

CHAT = Route("chat", account="bot", peer="42", thread="7")
PICTURE = Attachment("cat.png", "image/png", "https://example.com/cat.png")


def letter(
    text: str = "hello",
    *attachments: Attachment,
    id: str = "run-1.reply",
    route: Route = CHAT,
) -> Delivery:
    return Delivery(
        id,
        route,
        text,
        RunId("run-1"),
        SessionKey("chat:42"),
        3,
        attachments,
        first_at=1_800_000_000_123_456,
    )
