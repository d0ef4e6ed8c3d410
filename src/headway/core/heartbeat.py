"""The rules of heartbeats: when an agent may be woken, what it is told, and who hears its answer (H-1 to H-4).

Each rule is a plain function of what it is given. In doubt an agent is woken, and in doubt its words are
delivered: a wake-up for nothing costs a little money, a reminder or an alert that nobody sees costs trust.
"""

import re
from hashlib import blake2b
from itertools import pairwise
from typing import TypeAlias
from unicodedata import category, combining
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headway.model.errors import InvalidInput
from headway.model.heartbeat import DEFAULT_PROMPT, ActiveHours, HeartbeatSettings
from headway.model.run import AgentName, Route
from headway.model.schedule import UTC_ZONE, Every
from headway.model.time import DAY, MILLISECOND, MINUTE, SECOND, Instant, Span, as_datetime
from headway.model.value import Value
from headway.model.words import HeartbeatSkip

TOKEN = "HEARTBEAT_OK"
"""What an agent answers when nothing needs attention. In capitals only: `heartbeat_ok` is text."""

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
    return ActiveHours(start, end, _zone_name(zone))


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


def _zone_name(value: object) -> str:
    if isinstance(value, str):
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
        else:
            return value
    raise InvalidInput("tz", value, "an IANA time zone such as Europe/Paris, or UTC")


_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_WITHOUT_INVISIBLE = dict.fromkeys(map(ord, _INVISIBLE))
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


_TOKEN = re.compile(r"HEARTBEAT\\?_OK")
_TAG = r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^<>]{0,200})?/?>"
_ENTITY = r"&(?:[A-Za-z]{2,8}|\#[0-9]{1,6});"
_EDGE = re.compile(
    rf"""(?:
      {_TAG} | {_ENTITY}
    | (?:`{{3}}|~{{3}})[\w+.-]+[^\S\n]*\n   # a fence that names a language
    | (?<!\S)[0-9]{{1,3}}[.)](?=\s)        # a number of a list
    | \[[xX]\](?=\s)                      # a box that is ticked
    | \W | _
    )*+""",
    re.VERBOSE,
)
"""What may stand between the token and the edge of a reply: whatever has no letter and no digit, and markup."""
_MARKUP = re.compile(rf"{_TAG}|{_ENTITY}")
_CLOSING_TAG = re.compile(r"</([A-Za-z][A-Za-z0-9]*)\s*>")
_OPENING_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9]*)(?:\s[^<>]{0,200})?>")
_FENCE = re.compile(r"(`{3,}|~{3,})[\w+.-]*\Z")
_LONGEST_FENCE = 64
_MARKS = "*_~`\"'|="
"""What closes with the character that opened it. Brackets and quotes Unicode knows."""
_OPENING = frozenset({"Ps", "Pi", "Pf"})
_CLOSING = frozenset({"Pe", "Pf", "Pi"})
_LINE_MARKER = re.compile(r"\s*(?:[>+•#-]+|\*(?=\s)|[0-9]{1,3}[.)](?=\s))\s*(?:\[[ xX]?\]\s*)?")
_STOPS = r".,;:!?…–—\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"
_PUNCTUATION = re.compile(rf"[{_STOPS}]+|-+(?=\s|\Z)|[^\S\n]+[{_STOPS}|-]+(?=\s|\Z)")
_LINE_END = re.compile(r"[^\S\n]*(?:\n|\Z)")
_GAP = re.compile(r"[^\S\n]*(?:\n[^\S\n]*(?=\n))*+\n?")
_RULE = re.compile(r"[^\S\n]*(?:-{3,}|\*{3,}|_{3,})[^\S\n]*")
_MOST_TOKENS = 8
_DEEPEST = 24
"""Bounds, so that a reply of a million stars is judged as fast as any other."""


def without_token(reply: str) -> str | None:
    """What a reply says beside the token, or None if the token is neither at its start nor at its end (H-3).

    Start and end are where no letter and no digit come before or after, markup aside. With the token goes
    what belongs to it: markup and quotes that are around it alone, and the punctuation behind it. As a part of a
    longer word (`HEARTBEAT_OKAY`, `NOT_HEARTBEAT_OK`) it is not the token.
    """
    rest = _without_one(reply.strip().strip(_INVISIBLE).strip())
    if rest is None:
        return None
    for _ in range(_MOST_TOKENS - 1):
        shorter = _without_one(rest)
        if shorter is None:
            break
        rest = shorter
    return "" if _says_nothing(rest) else rest


def text_key(agent: AgentName, route: Route | None, text: str) -> str:
    """The same for two alerts of one agent to one place that differ in nothing but white space (H-2)."""
    places = ("",) if route is None else (route.channel, route.account, route.peer, route.thread)
    digest = blake2b(digest_size=16)
    for part in (agent, *places, " ".join(text.split())):
        data = part.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()


def _without_one(text: str) -> str | None:
    found = list(_TOKEN.finditer(text))
    if not found:
        return None
    left, right = text[: found[0].start()], text[found[0].end() :]
    if _EDGE.fullmatch(left) and not _in_a_word(left, right):
        left, right = _unwrapped(left, right)
        return (left + _trimmed_start(right)).strip("\n").rstrip()
    left, right = text[: found[-1].start()], text[found[-1].end() :]
    if _EDGE.fullmatch(right) and not _in_a_word(left, right):
        left, right = _unwrapped(left, right)
        return (_trimmed_end(left) + right).strip("\n").rstrip()
    return None


def _in_a_word(left: str, right: str) -> bool:
    """Whether a word goes on before or after the token, also over a hyphen, a slash or an apostrophe."""
    before, after = left.rstrip("_")[-2:], right.lstrip("_")[:2]
    if _is_lettered(before[-1:]) or _is_lettered(after[:1]) or (after and combining(after[0])):
        return True
    if before[-1:] in tuple("-/'’") and _is_lettered(before[:-1]):
        return True
    if after[:1] == ".":
        # `HEARTBEAT_OK.md` is a name of a file, `HEARTBEAT_OK.All is well` lacks but a space.
        return after[1:].islower() or after[1:].isdigit()
    return after[:1] in tuple("-/'’") and _is_lettered(after[1:])


def _is_lettered(character: str) -> bool:
    """Letters of scripts without capitals make no longer word: Chinese has no spaces between words."""
    return character.isdigit() or character.lower() != character.upper()


def _unwrapped(left: str, right: str) -> tuple[str, str]:
    """Both sides without what was around the token alone, and without the punctuation behind it."""
    for _ in range(_DEEPEST):
        punctuation = _PUNCTUATION.match(right)
        if punctuation is not None:
            right = right[punctuation.end() :]
        inner = _without_lines(left, right) or _without_pair(left, right)
        if inner is None:
            break
        left, right = inner
    return left, right


def _without_lines(left: str, right: str) -> tuple[str, str] | None:
    """Wrappings that may be on lines of their own: tags, fences, and the marker of a list or heading."""
    opened, closed = left.rstrip(), right.lstrip()
    fence_at = max(opened.rfind("\n") + 1, len(opened) - _LONGEST_FENCE)
    if (tag := _CLOSING_TAG.match(closed)) is not None:
        opening = _OPENING_TAG.fullmatch(opened, max(0, opened.rfind("<")))
        if opening is not None and opening[1].lower() == tag[1].lower():
            return opened[: opening.start()], closed[tag.end() :]
    elif (fence := _FENCE.search(opened, fence_at)) is not None and closed.startswith(fence[1]):
        return opened[: fence.start()], closed[len(fence[1]) :]
    elif _LINE_END.match(right) and _LINE_MARKER.fullmatch(left, left.rfind("\n") + 1):
        return left[: left.rfind("\n") + 1], right
    return None


def _without_pair(left: str, right: str) -> tuple[str, str] | None:
    """Wrappings of one character on each side, on the token's line."""
    opened, closed = left.rstrip(" \t"), right.lstrip(" \t")
    if not opened or not closed or not _closes(opened[-1], closed[0]):
        return None
    if closed != right and closed.lstrip(closed[0])[:1].isalnum():
        # After a space and before a letter it opens what follows.
        return None
    return opened[:-1], closed[1:]


def _closes(opener: str, closer: str) -> bool:
    if closer in _MARKS:
        return opener == closer
    if closer == ">":
        return opener == "<"
    return category(opener) in _OPENING and category(closer) in _CLOSING


def _trimmed_start(text: str) -> str:
    """Without the blank lines, and a line across the page, that set it apart from the token."""
    text = _GAP.sub("", text, count=1)
    line, _, below = text.partition("\n")
    return _GAP.sub("", below, count=1) if _RULE.fullmatch(line) else text


def _trimmed_end(text: str) -> str:
    """Without what led over to the token: a dash or colon on its line, or a line across the page above it."""
    text = text.rstrip(" \t")
    if not text.endswith("\n"):
        text = text.rstrip("-–—|,:")
    text = text.rstrip()
    above, _, line = text.rpartition("\n")
    return above.rstrip() if _RULE.fullmatch(line) else text


def _says_nothing(text: str) -> bool:
    return all(
        character in "`~+|=^$<>" or category(character)[0] in "PZC"
        for character in _MARKUP.sub("", text)
    )


def _is_blank(text: str) -> bool:
    return not text.translate(_WITHOUT_INVISIBLE).strip()
