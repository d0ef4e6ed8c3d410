"""What is to be said on channels, as JSON."""

from typing import Annotated, Literal

from msgspec import Meta

from headway.core.callback_url import CALLBACK, shown_url
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.time import instant_text
from headway.wire.base import Answer, Limit, Moment, Request, maybe_moment
from headway.wire.names import LetterCursor, Name, Number
from headway.wire.places import AttachmentAnswer, RouteAnswer, attachment_answers, route_answer

LetterState = Literal["dead", "waiting"]
SoughtState = Literal["dead", "waiting", "all"]


class LettersQuery(Request, frozen=True, kw_only=True):
    """Which deliveries to list."""

    state: Annotated[
        SoughtState,
        Meta(description="What was given up, what still waits, or both."),
    ] = "dead"
    channel: Name | None = None
    limit: Limit = 100
    cursor: LetterCursor | None = None


class LetterPath(Request, frozen=True, kw_only=True):
    """Which delivery."""

    id: Name


class LetterAnswer(Answer, frozen=True, kw_only=True):
    """Something to be said on a channel: it waits, or was given up."""

    id: Annotated[str, Meta(description="Stable: a channel that sees it twice can tell.")]
    state: LetterState
    route: RouteAnswer
    text: str
    attachments: tuple[AttachmentAnswer, ...]
    run_id: str
    session: str
    tries: Number
    first_at: Annotated[Moment, Meta(description="When it was first to be said.")]
    error: Annotated[str, Meta(description="Why the latest try failed.")]
    next_at: Annotated[
        Moment | None, Meta(description="When it is tried next; null: it was given up.")
    ] = None


class LetterPage(Answer, frozen=True, kw_only=True):
    """Deliveries, the oldest first."""

    letters: tuple[LetterAnswer, ...]
    cursor: LetterCursor | None = None


class LetterRetried(Answer, frozen=True, kw_only=True):
    """A dead letter that is due again, as if it were new."""

    id: str
    retried: Literal[True] = True


def letter_answer(delivery: Delivery) -> LetterAnswer:
    """What lies in the outbox: if nobody tries it again, it was given up."""
    return LetterAnswer(
        id=delivery.id,
        state="dead" if delivery.due_at is None else "waiting",
        route=route_answer(_shown(delivery.route)),
        text=delivery.text,
        attachments=attachment_answers(delivery.attachments),
        run_id=delivery.run_id,
        session=delivery.session,
        tries=delivery.tries,
        first_at=instant_text(delivery.first_at),
        error=delivery.error,
        next_at=maybe_moment(delivery.due_at),
    )


def _shown(route: Route) -> Route:
    """The address of a callback may hold a secret of whoever is called: what follows its `?` is not shown."""
    return Route(CALLBACK, peer=shown_url(route.peer)) if route.channel == CALLBACK else route
