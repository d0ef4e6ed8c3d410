"""Times as people say and read them: `tomorrow 9am` in, `Tue 17 Nov 09:00 America/Sao_Paulo (in 2 days)` out.

Reading is strict: a text means one instant, or it is refused with examples. Nothing is guessed: not the half of
the day of "at 9", not the hour of "tomorrow", not which number of "10/11" is the month.

A weekday is the next one to come, today's if its time is still ahead; "next friday" is never today. A span such
as "in 2 days" is real time, 48 hours, also over a change of the clocks. A wall time that a change of the clocks
leaves out means the instant right after the gap, and one that comes twice means the first (C-4).
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import NoReturn

from headway.core.schedule import instant_at, local, zone_name
from headway.model.errors import InvalidInput
from headway.model.time import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    Instant,
    Span,
    instant_of,
)
from headway.model.value import Value

_LONGEST_TEXT = 100
_LONGEST: Span = 1_000 * 366 * DAY
_EVENING = time(17)

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_UNITS: dict[str, Span] = {
    "ms": MILLISECOND,
    "s": SECOND,
    "sec": SECOND,
    "second": SECOND,
    "m": MINUTE,
    "min": MINUTE,
    "minute": MINUTE,
    "h": HOUR,
    "hr": HOUR,
    "hour": HOUR,
    "d": DAY,
    "day": DAY,
    "week": 7 * DAY,
}

_EXAMPLES = (
    'a time such as "in 20 minutes", "tomorrow 9am", "monday 17:30", "24 dec 18:00", '
    '"2026-12-24 18:00" or "18:00"'
)
_NO_CLOCK = 'a day and a time of day, such as "tomorrow 9am"'
_HALF_CLOCK = "a time of day with am, pm or minutes, such as 9am or 21:00"
_WHICH_MIDNIGHT = "00:00 and the day that begins then: a day has two midnights"
_NOT_TONIGHT = "a time from 17:00 on to be tonight"
_OTHER_WEEKDAY = "a date that falls on the day of the week it names"
_TOO_FAR = "at most a thousand years away"

_PART = (
    r"(?:(\d{1,9}(?:\.\d{1,6})?) ?(ms|s|m|h|d|(?:sec|second|min|minute|hr|hour|day|week)s?)"
    r"|(an?|half an) (second|minute|hour|day|week))(?![a-z])"
)
_SPAN_PART = re.compile(_PART, re.ASCII)
_SPAN = re.compile(rf"(?:in )?{_PART}(?:(?: and)? ?{_PART})*(?: from now)?", re.ASCII)
_ZONE_NAME = re.compile(r"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+|UTC|GMT|utc|gmt", re.ASCII)
_CLOCK = r"\d{1,2}(?::\d{2}(?::\d{2})?)? ?[ap]\.?m\.?|\d{1,2}:\d{2}(?::\d{2})?|noon|midday|midnight"
_DAY_CLOCK = re.compile(rf"(?:(?P<day>\S.*?) )?(?:at )?(?P<clock>{_CLOCK})", re.ASCII)
_CLOCK_DAY = re.compile(rf"(?P<clock>{_CLOCK})(?: on)? (?P<day>\S.*)", re.ASCII)
_HALF_PAST = re.compile(r"(?:(?P<day>\S.*?) )?(?:at )?\d{1,2}(?: o'clock)?", re.ASCII)
_TWELVE = re.compile(r"(\d{1,2})(?::(\d{2})(?::(\d{2}))?)? ?([ap])\.?m\.?", re.ASCII)
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})[t ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)"
    r" ?(z|[+-]\d{2}:?\d{2}|[+-]\d{2})?",
    re.ASCII,
)
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NUMBER = r"(?P<number>\d{1,2})(?:st|nd|rd|th)?"
_NAMED = r"(?P<month>[a-z]{3,9})"
_YEAR = r"(?: (?P<year>\d{4}))?"
_DATES = (
    re.compile(rf"(?:(?P<weekday>[a-z]{{3,9}}) )?{_NUMBER}(?: of)? {_NAMED}{_YEAR}", re.ASCII),
    re.compile(rf"(?:(?P<weekday>[a-z]{{3,9}}) )?{_NAMED} {_NUMBER}{_YEAR}", re.ASCII),
)
_AHEAD = {"tomorrow": 1, "day after tomorrow": 2, "the day after tomorrow": 2}
_WEEKDAY = re.compile(r"(?:(on|this|coming|next) )?([a-z]{3,9})", re.ASCII)
_YEARS = range(1970, 9_900)
_LEAP_CYCLE = 9
"""Within so many years every date comes again, 29 February too."""


class _Asked(Value, frozen=True):
    """What was said, and what it is understood by."""

    text: object
    field: str
    now: Instant
    zone: str

    @property
    def today(self) -> date:
        return local(self.now, self.zone).date()

    def wall(self, day: date, clock: time) -> Instant:
        """When the wall clock shows this."""
        if not _YEARS.start <= day.year < _YEARS.stop:
            self.refuse(f"in the years {_YEARS.start} to {_YEARS.stop - 1}")
        return instant_at(datetime.combine(day, clock, tzinfo=UTC), self.zone)

    def refuse(self, allowed: str = _EXAMPLES) -> NoReturn:
        raise InvalidInput(self.field, self.text, allowed)


def read_time(text: object, now: Instant, zone: str, field: str = "at") -> Instant:
    """The instant that a person means, on the wall clock of the zone unless the text names another.

    It may lie in the past; whether that is allowed is for the caller to say.
    """
    asked = _Asked(text, field, now, zone_name(zone))
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        asked.refuse()
    words = text.replace(",", " ").split()
    if len(words) > 1 and _ZONE_NAME.fullmatch(words[-1]):
        named = words.pop()
        named = named.upper() if named.lower() in {"utc", "gmt"} else named
        asked = _Asked(text, field, now, zone_name(named, field))
    said = " ".join(words).lower().removeprefix("at ")
    try:
        if _SPAN.fullmatch(said):
            return now + _span(said, asked)
        if found := _ISO.fullmatch(said):
            return _iso(found[1], found[2], found[3], asked)
        return _day_and_clock(said, asked)
    except (OverflowError, ValueError):
        asked.refuse()


def show_time(instant: Instant, zone: str, now: Instant) -> str:
    """An instant for people: on the wall clock of a zone, which is always named, and how far away it is."""
    away = instant - now
    distance = f"in {show_span(away)}" if away > 0 else f"{show_span(-away)} ago"
    if abs(away) < SECOND:
        distance = "now"
    return f"{show_wall(instant, zone, now)} ({distance})"


def show_wall(instant: Instant, zone: str, now: Instant | None = None) -> str:
    """`Tue 17 Nov 09:00 America/Sao_Paulo`; with the year unless it is that of `now`."""
    shown = local(instant, zone_name(zone))
    weekday, month = _WEEKDAYS[shown.weekday()][:3].title(), _MONTHS[shown.month - 1][:3].title()
    same_year = now is not None and local(now, zone).year == shown.year
    year = "" if same_year else f" {shown.year}"
    clock = f"{shown:%H:%M:%S}" if shown.second else f"{shown:%H:%M}"
    # Where the clocks go back an hour comes twice; only the offset tells which one this is.
    twice = shown.replace(fold=0).utcoffset() != shown.replace(fold=1).utcoffset()
    offset = shown.isoformat()[-6:] if twice else ""
    return f"{weekday} {shown.day} {month}{year} {clock}{offset} {zone}"


def show_span(span: Span) -> str:
    """A span for people, as exact as they need it: `45 seconds`, `1 hour 30 minutes`, `2 days`."""
    seconds, minutes = _nearest(span, SECOND), _nearest(span, MINUTE)
    if seconds < 60:
        return _counted(seconds, "second")
    if minutes < 60:
        return _counted(minutes, "minute")
    if span < 6 * HOUR:
        hours, rest = divmod(minutes, 60)
        return _counted(hours, "hour") + (f" {_counted(rest, 'minute')}" if rest else "")
    if span < 36 * HOUR:
        return _counted(_nearest(span, HOUR), "hour")
    return _counted(_nearest(span, DAY), "day")


def _nearest(span: Span, unit: Span) -> int:
    return (span + unit // 2) // unit


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _span(said: str, asked: _Asked) -> Span:
    total = 0.0
    for number, unit, article, named in _SPAN_PART.findall(said):
        if number:
            total += float(number) * (_UNITS.get(unit) or _UNITS[unit.removesuffix("s")])
        else:
            total += _UNITS[named] / (2 if article.startswith("half") else 1)
    if total > _LONGEST:
        asked.refuse(_TOO_FAR)
    return round(total)


def _iso(day: str, clock: str, offset: str | None, asked: _Asked) -> Instant:
    if offset is None:
        return asked.wall(date.fromisoformat(day), time.fromisoformat(clock))
    moment = datetime.fromisoformat(f"{day}T{clock}{offset.upper()}")
    asked.wall(moment.date(), moment.time())
    return instant_of(moment, asked.field)


def _day_and_clock(said: str, asked: _Asked) -> Instant:
    found = _DAY_CLOCK.fullmatch(said) or _CLOCK_DAY.fullmatch(said)
    if found is None:
        half = _HALF_PAST.fullmatch(said)
        if half and (half["day"] is None or _is_day(half["day"], asked)):
            asked.refuse(_HALF_CLOCK)
        asked.refuse(_NO_CLOCK if _is_day(said, asked) else _EXAMPLES)
    clock = _clock(found["clock"])
    return _on_day(found["day"], clock, found["clock"] == "midnight", asked)


def _is_day(said: str, asked: _Asked) -> bool:
    try:
        _on_day(said, _EVENING, False, asked)
    except (InvalidInput, ValueError):
        return False
    return True


def _clock(said: str) -> time:
    if said in {"noon", "midday"}:
        return time(12)
    if said == "midnight":
        return time(0)
    if found := _TWELVE.fullmatch(said):
        hour, minute, second, half = found.groups()
        if not 1 <= int(hour) <= 12:
            raise ValueError(said)
        return time(int(hour) % 12 + (12 if half == "p" else 0), int(minute or 0), int(second or 0))
    hour, minute, second = (*said.split(":"), "0")[:3]
    return time(int(hour), int(minute), int(second))


def _on_day(day: str | None, clock: time, midnight: bool, asked: _Asked) -> Instant:
    today = asked.today
    if day is None:
        return _first_after(asked, (today, today + timedelta(1)), clock)
    if day in {"today", "tonight"}:
        if day == "tonight" and clock < _EVENING and not midnight:
            asked.refuse(_NOT_TONIGHT)
        return asked.wall(today + timedelta(midnight), clock)
    if midnight:
        asked.refuse(_WHICH_MIDNIGHT)
    if day in _AHEAD:
        return asked.wall(today + timedelta(_AHEAD[day]), clock)
    if _ISO_DAY.fullmatch(day):
        return asked.wall(date.fromisoformat(day), clock)
    found = _WEEKDAY.fullmatch(day)
    if found and (weekday := _place(found[2], _WEEKDAYS)) is not None:
        ahead = (weekday - today.weekday()) % 7
        if found[1] == "next":
            return asked.wall(today + timedelta(ahead or 7), clock)
        days = (today + timedelta(ahead), today + timedelta(ahead + 7))
        return _first_after(asked, days, clock)
    return _on_date(day, clock, asked)


def _on_date(day: str, clock: time, asked: _Asked) -> Instant:
    """`24 dec`, `dec 24th 2026`, `thu 24 december`."""
    found = next((found for form in _DATES if (found := form.fullmatch(day))), None)
    month = _place(found["month"], _MONTHS) if found else None
    if found is None or month is None:
        asked.refuse()
    number, this_year = int(found["number"]), asked.today.year
    years = range(this_year, this_year + _LEAP_CYCLE)
    if found["year"]:
        years = range(int(found["year"]), int(found["year"]) + 1)
    days = [date(year, month + 1, number) for year in years if _exists(year, month + 1, number)]
    if not days:
        asked.refuse()
    instant = asked.wall(days[0], clock)
    if not found["year"]:
        instant = _first_after(asked, days[:2], clock)
    weekday = found["weekday"]
    if weekday and _place(weekday, _WEEKDAYS) != local(instant, asked.zone).weekday():
        asked.refuse(_OTHER_WEEKDAY)
    return instant


def _exists(year: int, month: int, number: int) -> bool:
    try:
        date(year, month, number)
    except ValueError:
        return False
    return True


def _first_after(asked: _Asked, days: Iterable[date], clock: time) -> Instant:
    """On the first of these days on which the time is still ahead."""
    instants = [asked.wall(day, clock) for day in days]
    return next((instant for instant in instants if instant > asked.now), instants[-1])


def _place(name: str, names: tuple[str, ...]) -> int | None:
    """Where a name stands in a list; its first three letters are enough, and `tues`, `thurs`, `sept`."""
    for place, known in enumerate(names):
        if name == known or name in {known[:3], known[:4], known[:5]}:
            return place
    return None
