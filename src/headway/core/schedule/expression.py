"""Which wall times a cron expression matches. Of zones and of changes of the clock it knows nothing.

The minutes, hours, months and days that match are bits of whole numbers: the next one is found by a shift.
"""

import re
from calendar import isleap, monthrange
from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError

from headway.core.schedule.zones import Wall
from headway.model.errors import InvalidInput
from headway.model.value import Value

_FIELDS = (
    ("minute", "0-59", 59),
    ("hour", "0-23", 23),
    ("day-of-month", "1-31 or L for the last one", 31),
    ("month", "1-12 or JAN-DEC", 12),
    ("day-of-week", "0-7 or SUN-SAT, where 0 and 7 are Sunday", 7),
)
_STEP = re.compile(r"/([0-9]+)")
_RANGE_OF_ONE = re.compile(r"\b(\w+)-\1/[0-9]+")
_UNTIL_SUNDAY = re.compile(r"(?<!SUN)-SUN\b")
_LONGEST = 256
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_MINUTES_A_DAY = 1_440
_FIRST_ORDINAL = date(1970, 1, 1).toordinal()
_LAST_ORDINAL = date.max.toordinal()
_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ALL_MONTHS = sum(1 << month for month in range(1, 13))
_MOST_MONTHS = 12 * 41
"""What matches at all matches within 40 years: a 29 February on a given weekday, around the year 2100."""


class Expression(Value, frozen=True):
    """A cron expression of five fields, ready to be asked."""

    minutes: int
    hours: int
    months: int
    day: str
    weekday: str
    real_time: bool
    """It has a wildcard minute or hour: it follows real time through changes of the clock (C-4)."""
    every_day: bool

    def first(self, wall: Wall) -> Wall | None:
        """The first match that is not before `wall`."""
        day, rest = divmod(-(-wall // 60), _MINUTES_A_DAY)
        found = self._next_day(day)
        if found == day:
            hour, minute = divmod(rest, 60)
            if self.hours >> hour & 1 and (bits := self.minutes >> minute):
                return (day * _MINUTES_A_DAY + rest + _lowest(bits)) * 60
            if bits := self.hours >> hour + 1:
                hour += 1 + _lowest(bits)
                return (day * _MINUTES_A_DAY + hour * 60 + _lowest(self.minutes)) * 60
            found = self._next_day(day + 1)
        if found is None:
            return None
        return (found * _MINUTES_A_DAY + _lowest(self.hours) * 60 + _lowest(self.minutes)) * 60

    def last(self, wall: Wall) -> Wall | None:
        """The last match that is not after `wall`."""
        day, rest = divmod(wall // 60, _MINUTES_A_DAY)
        found = self._day_before(day)
        if found == day:
            hour, minute = divmod(rest, 60)
            if self.hours >> hour & 1 and (bits := self.minutes & (2 << minute) - 1):
                return (day * _MINUTES_A_DAY + hour * 60 + _highest(bits)) * 60
            if bits := self.hours & (1 << hour) - 1:
                hour = _highest(bits)
                return (day * _MINUTES_A_DAY + hour * 60 + _highest(self.minutes)) * 60
            found = self._day_before(day - 1)
        if found is None:
            return None
        return (found * _MINUTES_A_DAY + _highest(self.hours) * 60 + _highest(self.minutes)) * 60

    def count(self, begin: Wall, end: Wall) -> int:
        """How many matches there are from `begin` until just before `end`."""
        if begin >= end:
            return 0
        since, morning = divmod(-(-begin // 60), _MINUTES_A_DAY)
        until, evening = divmod(-(-end // 60), _MINUTES_A_DAY)
        a_day = self.hours.bit_count() * self.minutes.bit_count()
        return (
            a_day * self._days(since, until)
            - (self._earlier(morning) if self._next_day(since) == since else 0)
            + (self._earlier(evening) if self._next_day(until) == until else 0)
        )

    def _earlier(self, rest: int) -> int:
        """How many matches a day has before that minute of it."""
        hour, minute = divmod(rest, 60)
        matches = (self.hours & (1 << hour) - 1).bit_count() * self.minutes.bit_count()
        if self.hours >> hour & 1:
            matches += (self.minutes & (1 << minute) - 1).bit_count()
        return matches

    def _next_day(self, day: int) -> int | None:
        """The first day that matches, not before `day`; days are counted from 1970."""
        if self.every_day:
            return day
        ordinal = day + _FIRST_ORDINAL
        if ordinal > _LAST_ORDINAL:
            return None
        start = date.fromordinal(ordinal)
        year, month = start.year, start.month
        first = day - start.day + 1
        bits = self._month(year, month, first) & -1 << start.day
        for _ in range(_MOST_MONTHS):
            if bits:
                return first - 1 + _lowest(bits)
            first += _length(year, month)
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            bits = self._month(year, month, first)
        return None

    def _day_before(self, day: int) -> int | None:
        """The last day that matches, not after `day`."""
        if self.every_day:
            return day
        start = date.fromordinal(day + _FIRST_ORDINAL)
        year, month = start.year, start.month
        first = day - start.day + 1
        bits = self._month(year, month, first) & (2 << start.day) - 1
        for _ in range(_MOST_MONTHS):
            if bits:
                return first - 1 + _highest(bits)
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)
            first -= _length(year, month)
            bits = self._month(year, month, first)
        return None

    def _days(self, since: int, until: int) -> int:
        """How many days match from `since` until just before `until`."""
        if self.every_day:
            return until - since
        start = date.fromordinal(since + _FIRST_ORDINAL)
        year, month = start.year, start.month
        first = since - start.day + 1
        bits = self._month(year, month, first) & -1 << start.day
        days = 0
        while (following := first + _length(year, month)) <= until:
            days += bits.bit_count()
            first = following
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            bits = self._month(year, month, first)
        return days + (bits & (2 << until - first) - 1).bit_count()

    def _month(self, year: int, month: int, first: int) -> int:
        """The days of a month that match, as bits 1 to 31. `first` is its first day, from 1970."""
        if not self.months >> month & 1:
            return 0
        # 1970 began on a Thursday.
        return days_of_month(self.day, self.weekday, (first + 3) % 7, _length(year, month))


@lru_cache(maxsize=16_384)
def parse(text: str) -> Expression:
    """The expression, read; refused if it is none, or can never match (C-3)."""
    if len(text) > _LONGEST:
        raise _refusal(text, f"of at most {_LONGEST} characters")
    parts = text.upper().split()
    if len(parts) == 6:
        raise _refusal(text, "of five fields: there is none for seconds")
    if len(parts) != 5:
        raise _refusal(text, f"of five fields, and this has {len(parts)}")
    parts[4] = _UNTIL_SUNDAY.sub("-7", parts[4])
    # cronsim reads a range of one with a step as if it had no end.
    parts = [_RANGE_OF_ONE.sub(r"\1", part) for part in parts]
    for part, (name, _, most) in zip(parts, _FIELDS, strict=True):
        if not all(1 <= int(step) <= most for step in _STEP.findall(part)):
            raise _refusal(text, f"whose {name} has steps of 1 to {most}, not {_shown(part)}")
    minute, hour, day, month, weekday = parts
    try:
        fields = CronSim(" ".join(parts), _ANY_TIME)
    except CronSimError as error:
        raise _complaint(text, parts, str(error)) from None
    expression = Expression(
        minutes=_bits(fields.minutes),
        hours=_bits(fields.hours),
        months=_bits(fields.months),
        day=day,
        weekday=weekday,
        real_time=minute.startswith("*") or hour.startswith("*"),
        every_day=(day, month, weekday) == ("*", "*", "*"),
    )
    if expression.first(0) is None:
        raise _refusal(text, "that fires on some day, and this never does")
    return expression


def _complaint(text: str, parts: list[str], error: str) -> InvalidInput:
    """What cronsim found wrong, in our words: it names the field and no more."""
    for part, (name, allowed, _) in zip(parts, _FIELDS, strict=True):
        if not error.endswith(name):
            continue
        if name == "day-of-month" and _is_day(part):
            return _refusal(text, "that fires on some day, and this never does")
        return _refusal(
            text, f"whose {name} is {allowed}, in lists, ranges and steps, not {_shown(part)}"
        )
    return _refusal(text, "of five fields")


def _shown(part: str) -> str:
    return repr(part if len(part) <= 24 else f"{part[:21]}...")


def _is_day(part: str) -> bool:
    try:
        CronSim(f"0 0 {part} * *", _ANY_TIME)
    except CronSimError:
        return False
    return True


def _refusal(text: str, allowed: str) -> InvalidInput:
    return InvalidInput("schedule", text, f"a cron expression {allowed}")


@lru_cache(maxsize=8_192)
def days_of_month(day: str, weekday: str, starts_on: int, length: int) -> int:
    """The days that match in a month of that length which starts on that weekday (0 is Monday).

    There are 28 kinds of months in all, so almost every question is answered from memory.
    """
    rule = CronSim(f"0 0 {day} * {weekday}", _ANY_TIME)
    year, month = _month_like(starts_on, length)
    return _bits(
        number for number in range(1, length + 1) if rule.match_day(date(year, month, number))
    )


@lru_cache(maxsize=28)
def _month_like(starts_on: int, length: int) -> tuple[int, int]:
    return next(
        (year, month)
        for year in range(2000, 2028)
        for month in range(1, 13)
        if monthrange(year, month) == (starts_on, length)
    )


def _length(year: int, month: int) -> int:
    return 29 if month == 2 and isleap(year) else _LENGTHS[month]


def _bits(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _highest(bits: int) -> int:
    return bits.bit_length() - 1
