"""Firings against brute force: every minute of a while looked at, with a matcher that shares nothing with ours.

The brute force makes its expressions from sets of numbers, so that it need not read them. What it takes for
granted is only what `zoneinfo` says the wall clock shows at each minute.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from headway.core.schedule import (
    count,
    cron,
    instant_at,
    latest,
    local,
    missed,
    next_after,
    next_firing,
    offset,
)
from headway.core.schedule.zones import WINDOW
from headway.model.errors import InvalidInput
from headway.model.schedule import At, Cron, Every, Schedule
from headway.model.time import DAY, MINUTE, Instant, as_datetime, instant_of

SHORT = timedelta(days=2)
# Most of these whiles have a change of the clock in their middle.
PLACES = [
    ("America/New_York", datetime(2026, 3, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 10, 31, tzinfo=UTC)),
    (
        "America/New_York",
        datetime.fromtimestamp(53 * WINDOW, UTC).replace(hour=0, minute=0, second=0),
    ),
    ("America/Sao_Paulo", datetime(2018, 2, 17, tzinfo=UTC)),
    ("America/Sao_Paulo", datetime(2018, 11, 3, tzinfo=UTC)),
    ("Europe/Paris", datetime(2026, 3, 28, tzinfo=UTC)),
    ("Europe/Paris", datetime(2026, 10, 24, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, tzinfo=UTC)),
    ("Antarctica/Troll", datetime(2026, 3, 28, tzinfo=UTC)),
    ("Antarctica/Troll", datetime(2026, 10, 24, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 29, tzinfo=UTC)),
    ("Asia/Kolkata", datetime(2024, 2, 28, tzinfo=UTC)),
    ("UTC", datetime(2026, 12, 31, tzinfo=UTC)),
]


@dataclass(frozen=True)
class Field:
    """A field of an expression as it is written, and the numbers it means."""

    text: str
    means: frozenset[int]


@dataclass(frozen=True)
class Expression:
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def text(self) -> str:
        fields = (self.minute, self.hour, self.day, self.month, self.weekday)
        return " ".join(field.text for field in fields)

    @property
    def by_the_wall(self) -> bool:
        return not (self.minute.text.startswith("*") or self.hour.text.startswith("*"))

    def matches(self, wall: datetime) -> bool:
        if (
            wall.minute not in self.minute.means
            or wall.hour not in self.hour.means
            or wall.month not in self.month.means
        ):
            return False
        day = wall.day in self.day.means
        weekday = wall.isoweekday() % 7 in self.weekday.means
        if self.day.text.startswith("*") or self.weekday.text.startswith("*"):
            return day and weekday
        return day or weekday


def _number(number: int) -> str:
    return str(number)


def _name(names: tuple[str, ...]) -> Callable[[int], str]:
    return lambda number: names[number] or str(number)


_MONTHS = _name(
    ("", "jan", "feb", "MAR", "", "may", "jun", "jul", "AUG", "sep", "oct", "nov", "dec")
)
_WEEKDAYS = _name(("sun", "MON", "tue", "wed", "thu", "fri", "Sat", ""))


@st.composite
def _terms(draw: st.DrawFn, least: int, most: int, named: Callable[[int], str]) -> Field:
    """One term of a list: a star, a number or a range, with or without a step."""
    write = draw(st.sampled_from([_number, named]))
    kind = draw(st.sampled_from(["star", "number", "range"]))
    first = draw(st.integers(least, most))
    match kind:
        case "star":
            text, numbers = "*", range(least, most + 1)
        case "number":
            return Field(write(first), frozenset({first}))
        case _:
            last = draw(st.integers(first, most))
            text, numbers = f"{write(first)}-{write(last)}", range(first, last + 1)
    step = draw(st.sampled_from([0, 0, 1, 2, 3, 5, most]))
    # A range of a single number with a step goes on to the end in some crons, in ours as well.
    if not step or len(numbers) == 1:
        return Field(text, frozenset(numbers))
    return Field(f"{text}/{step}", frozenset(numbers[::step]))


@st.composite
def _fields(
    draw: st.DrawFn, least: int, most: int, named: Callable[[int], str] = _number, star: int = 1
) -> Field:
    if draw(st.integers(0, 3)) < star:
        return Field("*", frozenset(range(least, most + 1)))
    terms = draw(st.lists(_terms(least, most, named), min_size=1, max_size=3))
    numbers = frozenset[int]().union(*(term.means for term in terms))
    return Field(",".join(term.text for term in terms), numbers)


_NIGHTLY = [
    Field("2", frozenset({2})),
    Field("1-2", frozenset({1, 2})),
    Field("0,23", frozenset({0, 23})),
    Field("0-3", frozenset({0, 1, 2, 3})),
]


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    weekday = draw(_fields(0, 7, _WEEKDAYS, star=2))
    return Expression(
        draw(_fields(0, 59)),
        draw(_fields(0, 23) | st.sampled_from(_NIGHTLY)),
        draw(_fields(1, 31, star=2)),
        draw(_fields(1, 12, _MONTHS, star=3)),
        Field(weekday.text, frozenset(number % 7 for number in weekday.means)),
    )


@lru_cache(maxsize=len(PLACES))
def _timeline(zone: str, since: datetime) -> tuple[list[datetime], list[datetime]]:
    """Each minute of a while as an instant, and what the wall clock shows then."""
    minutes = [since + timedelta(minutes=number) for number in range(SHORT // timedelta(minutes=1))]
    info = ZoneInfo(zone)
    return minutes, [minute.astimezone(info).replace(tzinfo=None, fold=0) for minute in minutes]


def _brute_force(expression: Expression, zone: str, since: datetime) -> list[Instant]:
    """All firings of that while, by C-4 word for word."""
    minutes, walls = _timeline(zone, since)
    if not expression.by_the_wall:
        pairs = zip(minutes, walls, strict=True)
        return [instant_of(minute, "") for minute, wall in pairs if expression.matches(wall)]
    shown = {wall: minute for minute, wall in zip(reversed(minutes), reversed(walls), strict=True)}
    firings = set()
    wall, furthest = walls[0], max(walls)
    while wall <= furthest:
        if expression.matches(wall):
            firing = shown.get(wall)
            if firing is None:
                firing = next(
                    minute for minute, then in zip(minutes, walls, strict=True) if then > wall
                )
            firings.add(instant_of(firing, ""))
        wall += timedelta(minutes=1)
    return sorted(firings)


@given(expressions(), st.sampled_from(PLACES), st.data())
def test_c4_cron_fires_when_brute_force_says_so(
    expression: Expression, place: tuple[str, datetime], data: st.DataObject
) -> None:
    zone, since = place
    try:
        schedule = cron(expression.text, zone, 0)
    except InvalidInput:
        assert _brute_force(expression, zone, since) == []
        return
    expected = _brute_force(expression, zone, since)
    first, last = instant_of(since, ""), instant_of(since + SHORT, "") - MINUTE
    assert list(missed(schedule, first, last)) == expected
    assert count(schedule, first, last) == len(expected)
    for _ in range(5):
        low = data.draw(st.integers(first, last))
        high = data.draw(st.integers(low, last))
        begin, end = bisect_left(expected, low), bisect_right(expected, high)
        assert count(schedule, low, high) == end - begin
        following = bisect_right(expected, low)
        if following < len(expected):
            assert next_after(schedule, low) == expected[following]
        if following:
            assert latest(schedule, low) == expected[following - 1]


_SPECIAL = ["L", "LW", "L,15", "29", "30,31", "*/13", "1-7"]
_SPECIAL_WEEKDAYS = ["5L", "1#5", "mon#1,fri#3", "*/7", "6-7", "0L,2", "sun"]


@given(
    expressions(),
    st.sampled_from(["", *_SPECIAL]),
    st.sampled_from(["", *_SPECIAL_WEEKDAYS]),
    st.integers(0, 60 * 365 * DAY),
)
@example(
    Expression(
        *(Field("0", frozenset({0})),) * 2,
        Field("29", frozenset({29})),
        *(Field("2", frozenset({2})),) * 2,
    ),
    "",
    "*/7",
    instant_of(datetime(2090, 1, 1, tzinfo=UTC), ""),
)
def test_c2_without_changes_of_the_clock_it_is_what_cronsim_says(
    expression: Expression, day: str, weekday: str, instant: Instant
) -> None:
    minute, hour, days, months, weekdays = expression.text.split()
    text = f"{minute} {hour} {day or days} {months} {weekday or weekdays}"
    try:
        schedule = cron(text, "UTC", 0)
    except InvalidInput:
        assume(False)
    # cronsim knows Sunday as the end of a range by its number only.
    written = text.upper().replace("-SUN", "-7")
    found = next_after(schedule, instant)
    assert found == instant_of(next(CronSim(written, as_datetime(instant))), "")
    before = next(CronSim(written, as_datetime(instant + 1), reverse=True))
    if before.year > 1970:
        assert latest(schedule, instant) == instant_of(before, "")


_ROUND = re.compile(r"\b(\w+)-(\1|sun)\b")


@settings(max_examples=100)
@given(expressions(), st.integers(0, 60 * 365 * DAY))
def test_c2_it_is_what_croniter_says_where_both_mean_the_same(
    expression: Expression, instant: Instant
) -> None:
    """croniter takes `*/2` as a day that is named, not as a star: it then fires on either day, not on both."""
    for field in (expression.day, expression.weekday):
        assume(field.text == "*" or "*" not in field.text)
    # A range that ends where it begins goes all the way round for croniter, and a range to Sunday backwards.
    assume(not _ROUND.search(expression.text.lower()))
    try:
        schedule = cron(expression.text, "UTC", 0)
    except InvalidInput:
        assume(False)
    peer = croniter(expression.text, as_datetime(instant), max_years_between_matches=100)
    theirs = [instant_of(peer.get_next(datetime), "") for _ in range(3)]
    assert list(islice(missed(schedule, instant + 1, 200 * 365 * DAY), 3)) == theirs


schedules = st.one_of(
    st.builds(At, st.integers(0, 10 * DAY)),
    st.builds(Every, st.integers(1, 3 * DAY), st.integers(0, 10 * DAY)),
    st.builds(
        Cron,
        st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 0 * * 1", "5,55 1 * * *"]),
        st.sampled_from(["UTC", "America/New_York", "Asia/Kathmandu"]),
    ),
)


@given(schedules, st.integers(-DAY, 12 * DAY), st.integers(0, 3 * DAY))
def test_the_ways_to_ask_agree(schedule: Schedule, low: Instant, length: int) -> None:
    high = low + length
    found = list(islice(missed(schedule, low, high), 500))
    assert found == sorted(set(found))
    assert all(low <= firing <= high for firing in found)
    if len(found) < 500:
        assert count(schedule, low, high) == len(found)
        last = latest(schedule, high)
        assert (found[-1] == last) if found else (last is None or last < low)
    first = next_after(schedule, low - 1)
    assert (found[0] == first) if found else (first is None or first > high)


@given(
    schedules, st.text(min_size=1, max_size=20), st.integers(0, DAY), st.integers(-DAY, 12 * DAY)
)
def test_c8_stagger_moves_every_firing_by_the_same_span(
    schedule: Schedule, job_id: str, stagger: int, after: Instant
) -> None:
    late = offset(job_id, stagger)
    assert 0 <= late < max(1, stagger)
    firing = next_firing(schedule, stagger, job_id, after)
    if firing is None:
        assert isinstance(schedule, At)
    else:
        assert firing > after
        assert latest(schedule, firing - late) == firing - late
        assert count(schedule, after - late + 1, firing - late) == 1


@given(st.sampled_from(PLACES), st.integers(0, SHORT // timedelta(microseconds=1)))
def test_c4_a_wall_time_is_the_first_instant_that_shows_it(
    place: tuple[str, datetime], length: int
) -> None:
    zone, since = place
    instant = instant_of(since, "") + length
    shown = local(instant, zone).replace(tzinfo=None)
    first = instant_at(shown, zone)
    assert first <= instant
    assert local(first, zone).replace(tzinfo=None, fold=0) == shown.replace(fold=0)
    assert (first == instant) == (local(instant, zone).fold == 0)


@given(st.text(max_size=40) | st.from_regex(r"[-*/,0-9LW#a-z@ ]{0,30}", fullmatch=True))
def test_c3_any_text_is_a_schedule_or_a_refusal(text: str) -> None:
    try:
        schedule = cron(text, "Europe/Paris", 0)
    except InvalidInput:
        return
    assert next_after(schedule, 0) is not None
    if isinstance(schedule, Cron):
        assert cron(schedule.expression, schedule.zone, 0) == schedule
