"""In which order the runs of a session stand that the store has: for a new owner, and for who only looks."""

from collections.abc import Iterable

from headway.model.places import Place, Standing
from headway.model.words import Source


def standing_of(place: Place) -> Standing:
    """Where it stands; one that just came and queued stands at its number."""
    return Standing(place.seq) if place.standing is None else place.standing


def was_collected(place: Place) -> bool:
    """Messages that were merged as the first of them was to start; those of a window have a standing."""
    return place.standing is None and bool(place.run.merged_from)


def line_of(places: Iterable[Place]) -> list[Place]:
    """In the order in which they stood, heartbeats behind messages (F-4).

    A run that has begun stood in front of all that came after it, so it needs no rule of its own (R-5).
    """
    line = sorted(places, key=_line_key)
    messages = [at for at, place in enumerate(line) if place.run.source is Source.MESSAGE]
    last = messages[-1] if messages else -1
    stepping_back = [p for p in line[: last + 1] if p.run.source is Source.HEARTBEAT]
    staying = [p for p in line[: last + 1] if p.run.source is not Source.HEARTBEAT]
    return [*staying, *stepping_back, *line[last + 1 :]]


def _line_key(place: Place) -> tuple[bool, int, int, bool, int]:
    standing = standing_of(place)
    heartbeat = place.run.source is Source.HEARTBEAT
    return not was_collected(place), standing.after, standing.turn, heartbeat, place.seq
