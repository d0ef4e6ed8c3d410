"""Where replies go, and what travels with them, as JSON."""

from collections.abc import Sequence

from headway.model.outcome import Attachment
from headway.model.run import Route
from headway.wire.base import Answer, Request
from headway.wire.names import Line, Name


class RouteRequest(Request, frozen=True, kw_only=True, omit_defaults=True):
    """Where a reply goes."""

    channel: Name
    to: Line = ""
    thread: Line = ""
    account: Line = ""


class RouteAnswer(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """Where a reply goes."""

    channel: str
    to: str = ""
    thread: str = ""
    account: str = ""


class AttachmentAnswer(Answer, frozen=True, kw_only=True):
    """Something that travels with a text; its bytes are where `url` says."""

    name: str
    media_type: str
    url: str


def route_answer(route: Route) -> RouteAnswer:
    return RouteAnswer(
        channel=route.channel, to=route.peer, thread=route.thread, account=route.account
    )


def attachment_answers(attachments: Sequence[Attachment]) -> tuple[AttachmentAnswer, ...]:
    return tuple(
        AttachmentAnswer(name=one.name, media_type=one.media_type, url=one.url)
        for one in attachments
    )
