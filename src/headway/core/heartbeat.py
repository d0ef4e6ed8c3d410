"""The rules of heartbeats: when an agent may be woken, what it is told, and who hears its answer (H-1 to H-4).

Each rule is a plain function of what it is given. In doubt an agent is woken, and in doubt its words are
delivered: a wake-up for nothing costs a little money, a reminder or an alert that nobody sees costs trust.
"""

import re
from hashlib import blake2b
from itertools import pairwise
from typing import TypeAlias
from zoneinfo import ZoneInfo

from headway.core.acknowledgement import INVISIBLE, without_token
from headway.core.schedule import zone_name
from headway.model.errors import InvalidInput
from headway.model.heartbeat import DEFAULT_PROMPT, HeartbeatSettings
from headway.model.hours import ActiveHours
from headway.model.run import AgentName, Route
from headway.model.schedule import UTC_ZONE, Every
from headway.model.time import DAY, MILLISECOND, MINUTE, SECOND, Instant, Span, as_datetime
from headway.model.value import Value
from headway.model.words import HeartbeatSkip

COALESCE: Span = 250 * MILLISECOND
"""Wakes of one agent within this span are one."""
SPACING: Span = 30 * SECOND
"""The least span between two starts of one agent's heartbeat."""
REPEAT_WINDOW: Span = DAY
"""A text that was delivered within this span is not delivered again."""


class Skip(Value, frozen=True):
    """The agent is not woken."""

    reason: HeartbeatSkip


class Go(Value, frozen=True):
    """The agent is woken and told this."""

    prompt: str


Look: TypeAlias = Skip | Go


class Silent(Value, frozen=True):
    """Nobody is told what the agent answered."""

    reason: HeartbeatSkip


class Alert(Value, frozen=True):
    """This is delivered, together with the attachments of the reply if it has some."""

    text: str


Verdict: TypeAlias = Silent | Alert


def look(settings: HeartbeatSettings, checklist: str | None, now: Instant) -> Look:
    """Whether an agent is woken now, and with which words (H-2).

    `checklist` is the text of its checklist, None if there is none. A missing one is enough if the settings
    bring a prompt of their own; one that is there and empty says that there is nothing to do.
    """
    if settings.hours is not None and not in_hours(settings.hours, now):
        return Skip(HeartbeatSkip.OUTSIDE_HOURS)
    said = settings.prompt.strip()
    if checklist is None:
        return Go(said) if said else Skip(HeartbeatSkip.NO_CHECKLIST)
    if not has_content(checklist):
        return Skip(HeartbeatSkip.EMPTY_CHECKLIST)
    return Go(f"{said or DEFAULT_PROMPT}\n\n---\n\n{checklist.strip()}")


def judge(reply: str, has_attachments: bool, ack_max_chars: int) -> Verdict:
    """Whether anybody is told what an agent answered, and in which words (H-3).

    Attachments are always delivered. The rest beside the token is counted as it would be delivered, in
    characters as Python counts them: code points, so that a letter with a combining accent is two, and an
    emoji of a family joined from three people is five.
    """
    rest = without_token(reply)
    if rest is None:
        if not has_attachments and _is_blank(reply):
            return Silent(HeartbeatSkip.EMPTY_REPLY)
        return Alert(reply)
    if has_attachments or len(rest) > ack_max_chars:
        return Alert(rest)
    return Silent(HeartbeatSkip.ALL_WELL)


_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})", re.ASCII)
_HOURS = "two times of day such as 09:00-17:30 or 22:00-06:00"
_START = "a time of day from 00:00 to 23:59"
_END = "a time of day from 00:00 to 24:00"


def read_hours(value: object, zone: object = UTC_ZONE, field: str = "hours") -> ActiveHours:
    """Active hours from what a person wrote: `22:00-06:00`, or a pair of two times.

    What is wrong is named: `hours`, `hours.start`, `hours.end`, or `tz` for the zone.
    """
    match value:
        case str():
            parts = re.split(r"\s*[-–]\s*", value.strip())
        case (str(), str()):
            parts = [str(part).strip() for part in value]
        case _:
            parts = []
    if len(parts) != 2:
        raise InvalidInput(field, value, _HOURS)
    start = _minutes(parts[0], 1439, f"{field}.start", _START)
    end = _minutes(parts[1], 1440, f"{field}.end", _END)
    if start == end:
        raise InvalidInput(field, value, "two times that differ; 00:00-24:00 is the whole day")
    return ActiveHours(start, end, zone_name(zone))


def in_hours(hours: ActiveHours, now: Instant) -> bool:
    """Whether the wall clock of the zone is in the hours: the start is, the end is not.

    In a night that changes the clocks, what the clock skips is never seen and what it repeats is seen twice.
    """
    local = as_datetime(now).astimezone(ZoneInfo(hours.zone))
    minute = local.hour * 60 + local.minute
    if hours.start < hours.end:
        return hours.start <= minute < hours.end
    return minute >= hours.start or minute < hours.end


def next_in_hours(hours: ActiveHours, now: Instant) -> Instant:
    """The first instant from now on that is in the hours, for showing it to people."""
    if in_hours(hours, now):
        return now
    zone = ZoneInfo(hours.zone)
    local = as_datetime(now).astimezone(zone)
    minute_at = now - local.second * SECOND - local.microsecond
    at = minute_at + (hours.start - local.hour * 60 - local.minute) % 1440 * MINUTE
    if as_datetime(at).astimezone(zone).utcoffset() == local.utcoffset():
        return at
    # The clocks change before that, so the hours may come sooner or later, or not until the day after.
    at = minute_at + MINUTE
    while not in_hours(hours, at):
        at += MINUTE
    return at


def wake_in_hours(
    hours: ActiveHours, agent: AgentName, now: Instant, next_at: Instant | None
) -> Instant | None:
    """When to wake an agent whose cadence passes over its hours; None if the cadence falls into the next of them.

    "Once a day, between 8 and 10" shall wake it once a day, wherever in the day its phase is.
    """
    opens_at = next_in_hours(hours, now)
    lasts = (hours.end - hours.start) % 1440 * MINUTE or DAY
    if next_at is not None and next_at < opens_at + lasts:
        return None
    return opens_at + phase(agent, lasts // 2)


def phase(agent: AgentName, interval: Span) -> Span:
    """Where in the interval an agent is woken: the same on every node and after every restart.

    Agents of one interval are spread over it. A longer interval keeps an agent's share of it.
    """
    drawn = int.from_bytes(blake2b(agent.encode(errors="surrogatepass"), digest_size=8).digest())
    return drawn * interval >> 64


def cadence(agent: AgentName, settings: HeartbeatSettings) -> Every:
    """When an agent is woken, whatever becomes of each time: every interval since 1970, shifted by its phase."""
    zone = UTC_ZONE if settings.hours is None else settings.hours.zone
    return Every(settings.interval, phase(agent, settings.interval), zone)


def next_wake(
    asked_at: Instant,
    last_start_at: Instant | None,
    manual: bool,
    pending_at: Instant | None = None,
) -> Instant:
    """When a wake that was asked for beside the cadence happens (H-4).

    A moment later, so that others can join it; and not too soon after the latest start, unless a person
    asks. With one pending already, the two are one at the earlier instant.
    """
    at = asked_at + COALESCE
    if last_start_at is not None and not manual:
        # A start in the future means that the clock went back: it counts as one just now.
        at = max(at, min(last_start_at, asked_at) + SPACING)
    return at if pending_at is None else min(at, pending_at)


def _minutes(text: str, last: int, field: str, allowed: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None or int(found[2]) > 59 or (at := int(found[1]) * 60 + int(found[2])) > last:
        raise InvalidInput(field, text, allowed)
    return at


_WITHOUT_INVISIBLE = dict.fromkeys(map(ord, INVISIBLE))
_MARKERS = re.compile(r"(?:[\s>]|[-*+•](?=\s|\Z)|[0-9]{1,9}[.)](?=\s|\Z)|\[[ xX]?\](?=\s|\Z))*+")
_EMPTY_LINE = re.compile(
    r"""
      \#{1,6} (?:\s.*)?                                    # a heading
    | (?:-\s*){3,} | (?:\*\s*){3,} | (?:_\s*){3,} | =+   # a line across the page
    | (?:`{3,} | ~{3,}) .*                                # the edge of a block of code
    """,
    re.VERBOSE,
)
_UNDERLINE = re.compile(r"\s*={2,}\s*")


def has_content(checklist: str) -> bool:
    """Whether there is anything to look after on a checklist (H-2).

    Blank lines, headings, comments, empty bullets and boxes, lines across the page and the edges of code blocks
    are nothing. A comment that is never closed is taken for text, and so is a title underlined with dashes.
    """
    lines = _without_comments(checklist.translate(_WITHOUT_INVISIBLE)).splitlines()
    return any(
        _has_content(line) and not _UNDERLINE.fullmatch(below)
        for line, below in pairwise([*lines, ""])
    )


def _has_content(line: str) -> bool:
    text = line.strip()
    if _EMPTY_LINE.fullmatch(text):
        return False
    found = _MARKERS.match(text)
    return found is None or found.end() < len(text)


def _without_comments(text: str) -> str:
    kept, at = [], 0
    # `<!-->` is a whole comment too, so the end may overlap the start.
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 2)) >= 0:
        # What stood on two lines stays on two.
        kept += [text[at:start], "\n" if "\n" in text[start:end] else ""]
        at = end + 3
    return "".join([*kept, text[at:]])


def text_key(agent: AgentName, route: Route | None, text: str) -> str:
    """The same for two alerts of one agent to one place that differ in nothing but white space (H-2)."""
    places = ("",) if route is None else (route.channel, route.account, route.peer, route.thread)
    digest = blake2b(digest_size=16)
    for part in (agent, *places, " ".join(text.split())):
        data = part.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()


def _is_blank(text: str) -> bool:
    return not text.translate(_WITHOUT_INVISIBLE).strip()
