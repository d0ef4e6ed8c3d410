"""When jobs fire: what is read, what is refused, and the instants that follow (C-2, C-3, C-4, C-8)."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from statistics import median
from zoneinfo import ZoneInfo

import pytest

from headway.core.schedule import (
    at,
    count,
    cron,
    every,
    instant_at,
    latest,
    local,
    missed,
    next_after,
    next_firing,
    offset,
    zone_name,
    zones,
)
from headway.model.errors import InvalidInput
from headway.model.schedule import At, Cron, Every, Schedule
from headway.model.time import DAY, HOUR, MINUTE, SECOND, Instant, Span, instant_of

NEW_YORK = "America/New_York"


def when(text: str) -> Instant:
    """An instant from ISO text; without an offset it is UTC."""
    moment = datetime.fromisoformat(text)
    return instant_of(moment if moment.tzinfo else moment.replace(tzinfo=UTC), "when")


NOW = when("2026-03-05T12:00")


def firings(expression: str, zone: str, since: str, until: str) -> list[str]:
    """What a cron expression does in a while, as the wall clock shows it."""
    schedule = cron(expression, zone, NOW)
    return [_shown(firing, zone) for firing in missed(schedule, when(since), when(until))]


def _shown(firing: Instant, zone: str) -> str:
    return local(firing, zone).isoformat(timespec="minutes")


# Reading


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("0 9 * * 1-5", "0 9 * * 1-5"),
        ("  0\t9  * *  mon-fri ", "0 9 * * mon-fri"),
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@Midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("0 0 29 2 *", "0 0 29 2 *"),
    ],
)
def test_c2_an_expression_is_kept_as_five_fields_with_its_zone(written: str, kept: str) -> None:
    assert cron(written, "Europe/Paris", NOW) == Cron(kept, "Europe/Paris")


def test_c2_every_in_a_cron_expression_is_a_period_from_now_on() -> None:
    schedule = cron("@every 1h30m", "Asia/Tokyo", NOW)
    assert schedule == Every(90 * MINUTE, NOW + 90 * MINUTE, "Asia/Tokyo")
    assert next_after(schedule, NOW) == NOW + 90 * MINUTE


def test_c2_a_period_has_the_anchor_it_is_given() -> None:
    schedule = every("10m", "UTC", NOW, anchor=NOW + 3 * SECOND)
    assert schedule == Every(10 * MINUTE, NOW + 3 * SECOND)
    assert list(islice(missed(schedule, NOW, NOW + DAY), 2)) == [
        NOW + 3 * SECOND,
        NOW + 3 * SECOND + 10 * MINUTE,
    ]


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        (NOW + 1, NOW + 1),
        (timedelta(minutes=20), NOW + 20 * MINUTE),
        (datetime(2026, 6, 1, 9, tzinfo=UTC), when("2026-06-01T09:00")),
        (datetime(2026, 6, 1, 9), when("2026-06-01T13:00")),  # noqa: DTZ001 - meant as written on the wall
        (datetime(2026, 3, 8, 2, 30), when("2026-03-08T07:00")),  # noqa: DTZ001 - in the gap
        (datetime(2026, 11, 1, 1, 30), when("2026-11-01T05:30")),  # noqa: DTZ001 - the first of two
    ],
)
def test_c2_at_takes_instants_datetimes_and_spans(written: object, instant: Instant) -> None:
    assert at(written, NEW_YORK, NOW) == At(instant, NEW_YORK)


def _quickly_refused(read: Callable[[], object]) -> InvalidInput:
    """The refusal; it takes milliseconds, which is told by the middle one of many."""
    took = []
    error = None
    for _ in range(9):
        began = time.perf_counter()
        with pytest.raises(InvalidInput) as refusal:
            read()
        took.append(time.perf_counter() - began)
        error = refusal.value
    assert median(took) < 0.2
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("*/0 * * * *", "minute has steps of 1 to 59"),
        ("*/90 * * * *", "minute has steps of 1 to 59"),
        ("0 0 1-9/0 * *", "day-of-month has steps of 1 to 31"),
        ("99 * * * *", "minute is 0-59"),
        ("-1 * * * *", "minute is 0-59"),
        ("5-1 * * * *", "minute is 0-59"),
        ("1,,2 * * * *", "minute is 0-59"),
        ("0 24 * * *", "hour is 0-23"),
        ("0 0 0 * *", "day-of-month is 1-31"),
        ("0 0 32 * *", "day-of-month is 1-31"),
        ("0 0 ? * *", "day-of-month is 1-31"),
        ("0 0 1 13 *", "month is 1-12"),
        ("0 0 1 janvier *", "month is 1-12"),
        ("0 0 * * 8", "day-of-week is 0-7"),
        ("0 0 * * fri-mon", "day-of-week is 0-7"),
        ("0 0 * * 1#6", "day-of-week is 0-7"),
        ("0 0 31 2 *", "never does"),
        ("0 0 30-31 2 *", "never does"),
        ("0 0 31 4,6,9,11 *", "never does"),
        ("0 0 */20 * 1#5", "never does"),
        ("500x", "has 1"),
        ("", "has 0"),
        ("* * * *", "has 4"),
        ("0 0 0 * * *", "none for seconds"),
        ("0 0 0 * * * 2030", "has 7"),
        ("@reboot", "no @reboot"),
        ("@fortnightly", "@weekly"),
        ("@daily 5", "@daily"),
        ("@every", "duration"),
        ("@every 500x", "duration"),
        ("@every 10M", "duration"),
        ("@every 0s", "longer than 0"),
        ("0," * 200 + "0 * * * *", "256 characters"),
        ("9" * 240 + " * * * *", "minute is 0-59"),
        (5, "a cron expression"),
        (None, "a cron expression"),
    ],
)
def test_c3_a_bad_expression_is_refused_in_milliseconds(written: object, named: str) -> None:
    error = _quickly_refused(lambda: cron(written, "UTC", NOW, field="expr"))
    assert error.field == "expr"
    assert named in error.allowed
    assert len(str(error)) < 300


@pytest.mark.parametrize("period", ["0", "0s", 0, "-5m", "500x", "", 5, None, "2000000d"])
def test_c3_a_period_of_nothing_is_refused(period: object) -> None:
    assert _quickly_refused(lambda: every(period, "UTC", NOW)).field == "schedule"


@pytest.mark.parametrize(
    "written",
    [
        NOW,
        NOW - 1,
        0,
        True,
        "2026-03-05T11:59:59Z",
        "1066-10-14",
        "0001-01-01",
        "0001-01-01T00:00+14:00",
        "9999-12-31T23:59:59-11:00",
        10**30,
        "in 0s",
        "in",
        "in a while",
        "tomorrow",
        timedelta(seconds=-1),
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        None,
    ],
)
def test_c3_what_is_past_or_no_time_is_refused(written: object) -> None:
    assert _quickly_refused(lambda: at(written, NEW_YORK, NOW)).field == "schedule"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Pari", "Europe/Paris"),
        ("europe/paris", "Europe/Paris"),
        ("Paris", "Europe/Paris"),
        ("America/New York", NEW_YORK),
        ("sao paulo", "America/Sao_Paulo"),
    ],
)
def test_c3_an_unknown_zone_is_refused_with_the_one_that_was_meant(name: str, meant: str) -> None:
    error = _quickly_refused(lambda: cron("@daily", name, NOW))
    assert (error.field, error.value) == ("tz", name)
    assert f"did you mean {meant!r}?" in error.allowed


@pytest.mark.parametrize(
    "name",
    [
        "Mars/Olympus_Mons",
        "America",
        "GMT+2",
        "localtime",
        "right/UTC",
        "posix/UTC",
        "../../etc/passwd",
        "/etc/localtime",
        "tzdata.zi",
        "U\0",
        "",
        "x" * 5_000,
        None,
        7,
    ],
)
def test_c3_what_is_no_zone_on_every_machine_is_refused(name: object) -> None:
    error = _quickly_refused(lambda: zone_name(name))
    assert error.field == "tz"
    assert "did you mean" not in error.allowed


@pytest.mark.parametrize(
    "read",
    [
        lambda zone: cron("@daily", zone, NOW),
        lambda zone: every("5m", zone, NOW),
        lambda zone: at(timedelta(minutes=5), zone, NOW),
    ],
)
def test_c3_each_schedule_checks_its_zone(read: Callable[[str], Schedule]) -> None:
    assert read("Asia/Kolkata").zone == "Asia/Kolkata"
    assert _quickly_refused(lambda: read("Asia/Kolkatta")).field == "tz"


# Firings


@pytest.fixture
def host_in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("host_in_tokyo")
def test_c2_a_year_of_working_days_in_sao_paulo_wherever_the_host_is() -> None:
    zone = "America/Sao_Paulo"
    schedule = cron("0 9 * * 1-5", zone, NOW)
    since, until = when("2026-01-01T00:00-03:00"), when("2027-01-01T00:00-03:00")
    fired = list(missed(schedule, since, until))
    days = [datetime(2026, 1, 1, 9, tzinfo=ZoneInfo(zone)) + timedelta(days) for days in range(365)]
    assert fired == [instant_of(day, "day") for day in days if day.weekday() < 5]
    assert len(fired) == count(schedule, since, until) == 261


@pytest.mark.parametrize(
    ("expression", "fired"),
    [
        (
            "30 2 * * *",
            ["2026-03-07T02:30-05:00", "2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"],
        ),
        (
            "0,30 2,3 * * *",
            [
                "2026-03-07T02:00-05:00",
                "2026-03-07T02:30-05:00",
                "2026-03-07T03:00-05:00",
                "2026-03-07T03:30-05:00",
                "2026-03-08T03:00-04:00",
                "2026-03-08T03:30-04:00",
                "2026-03-09T02:00-04:00",
                "2026-03-09T02:30-04:00",
                "2026-03-09T03:00-04:00",
                "2026-03-09T03:30-04:00",
            ],
        ),
        ("*/30 2 * * 0", []),
        (
            "30 */4 8 3 *",
            ["2026-03-08T00:30-05:00"]
            + [f"2026-03-08T{hour}:30-04:00" for hour in ("04", "08", "12", "16", "20")],
        ),
    ],
)
def test_c4_a_wall_time_in_the_gap_fires_once_right_after_it(
    expression: str, fired: list[str]
) -> None:
    assert firings(expression, NEW_YORK, "2026-03-07T06:00", "2026-03-09T12:00") == fired


@pytest.mark.parametrize(
    ("expression", "fired"),
    [
        (
            "30 1 * * *",
            ["2026-10-31T01:30-04:00", "2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"],
        ),
        ("0,30 1 1 11 *", ["2026-11-01T01:00-04:00", "2026-11-01T01:30-04:00"]),
        (
            "*/30 1 1 11 *",
            [
                "2026-11-01T01:00-04:00",
                "2026-11-01T01:30-04:00",
                "2026-11-01T01:00-05:00",
                "2026-11-01T01:30-05:00",
            ],
        ),
    ],
)
def test_c4_a_wall_time_that_repeats_fires_at_its_first_occurrence(
    expression: str, fired: list[str]
) -> None:
    assert firings(expression, NEW_YORK, "2026-10-31T00:00", "2026-11-02T12:00") == fired


@pytest.mark.parametrize("expression", ["*/10 * * * *", "0-59/10 * * * *", "*/10 0-23 * * *"])
@pytest.mark.parametrize("since", ["2026-03-08T00:00", "2026-11-01T00:00"])
def test_c4_wildcards_follow_real_time(expression: str, since: str) -> None:
    start = when(since)
    fired = list(missed(cron(expression, NEW_YORK, NOW), start, start + DAY))
    assert fired == list(range(start, start + DAY + 1, 10 * MINUTE))


def test_c4_the_latest_firing_may_be_the_one_at_the_end_of_a_gap() -> None:
    schedule = cron("30 2 * * *", NEW_YORK, NOW)
    assert latest(schedule, when("2026-03-08T07:10")) == when("2026-03-08T07:00")
    assert latest(schedule, when("2026-03-08T06:59")) == when("2026-03-07T07:30")


def test_c4_after_the_second_pass_began_the_first_is_not_fired_again() -> None:
    schedule = cron("30 1 * * *", NEW_YORK, NOW)
    between = when("2026-11-01T01:15-05:00")
    assert latest(schedule, between) == when("2026-11-01T01:30-04:00")
    assert next_after(schedule, between) == when("2026-11-02T01:30-05:00")


@pytest.mark.parametrize(
    ("zone", "expression", "since", "until", "fired"),
    [
        # The clocks of São Paulo went from 23:59 to 01:00, and back from 23:59 to 23:00.
        ("America/Sao_Paulo", "0 0 * * *", "2018-11-04", "2018-11-05", ["2018-11-04T01:00-02:00"]),
        ("America/Sao_Paulo", "*/20 0 4 * *", "2018-11-03", "2018-11-05", []),
        (
            "America/Sao_Paulo",
            "30 23 * * *",
            "2018-02-17T12:00",
            "2018-02-18T12:00",
            ["2018-02-17T23:30-02:00"],
        ),
        # Half an hour on Lord Howe Island.
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03T12:00",
            "2026-10-04T12:00",
            ["2026-10-04T02:30+11:00"],
        ),
        (
            "Australia/Lord_Howe",
            "*/15 2 5 4 *",
            "2026-04-04T12:00",
            "2026-04-05T12:00",
            [f"2026-04-05T02:{minute:02}+10:30" for minute in (0, 15, 30, 45)],
        ),
        (
            "Australia/Lord_Howe",
            "*/15 1 5 4 *",
            "2026-04-04T12:00",
            "2026-04-05T12:00",
            [f"2026-04-05T01:{minute:02}+11:00" for minute in (0, 15, 30, 45)]
            + [f"2026-04-05T01:{minute:02}+10:30" for minute in (30, 45)],
        ),
        # Samoa had no 30 December 2011.
        ("Pacific/Apia", "0 9 30 12 *", "2011-12-29", "2012-01-02", ["2011-12-31T00:00+14:00"]),
    ],
)
def test_c4_holds_for_gaps_of_any_length(
    zone: str, expression: str, since: str, until: str, fired: list[str]
) -> None:
    assert firings(expression, zone, since, until) == fired


@pytest.mark.parametrize(
    ("expression", "fired"),
    [
        ("0 0 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("0 0 29 2 */7", ["2032-02-29", "2060-02-29", "2088-02-29", "2128-02-29"]),
        ("0 0 13 * 5", ["2026-03-06", "2026-03-13", "2026-03-20", "2026-03-27", "2026-04-03"]),
        ("0 0 */13 * 5", ["2026-03-27", "2026-05-01", "2026-08-14", "2026-11-27"]),
        ("0 0 13 * */5", ["2026-03-13", "2026-09-13", "2026-11-13"]),
        ("0 0 * * 7", ["2026-03-08", "2026-03-15"]),
        ("0 0 * * sat-sun", ["2026-03-07", "2026-03-08", "2026-03-14"]),
        ("0 0 * apr,JUL sun#1", ["2026-04-05", "2026-07-05", "2027-04-04"]),
        ("0 0 L * *", ["2026-03-31", "2026-04-30", "2026-05-31"]),
        ("0 0 LW * *", ["2026-03-31", "2026-04-30", "2026-05-29"]),
        ("0 0 * * 5L", ["2026-03-27", "2026-04-24"]),
    ],
)
def test_c2_days_are_those_of_vixie_cron(expression: str, fired: list[str]) -> None:
    found = missed(cron(expression, "UTC", NOW), NOW, when("2130-01-01"))
    assert [_shown(firing, "UTC")[:10] for firing in islice(found, len(fired))] == fired


def test_c2_a_period_does_not_drift_however_late_it_is_looked_at() -> None:
    schedule = cron("@every 10m", "UTC", NOW)
    due: list[Instant] = []
    now = NOW
    for _ in range(100):
        firing = next_after(schedule, now)
        assert firing is not None
        due.append(firing)
        now = firing + 20 * SECOND
    assert due == [NOW + number * 10 * MINUTE for number in range(1, 101)]


def test_c2_at_fires_once() -> None:
    schedule = at(timedelta(minutes=5), "UTC", NOW)
    due = NOW + 5 * MINUTE
    assert next_after(schedule, NOW) == next_after(schedule, due - 1) == due
    assert next_after(schedule, due) is None
    assert latest(schedule, due) == due
    assert latest(schedule, due - 1) is None
    assert list(missed(schedule, NOW, due)) == [due]
    assert list(missed(schedule, due + 1, due + DAY)) == []


@pytest.mark.parametrize(
    "schedule",
    [
        Every(10 * MINUTE, NOW),
        Every(7, NOW),
        Cron("* * * * *", NEW_YORK),
        Cron("0 0 29 2 *", NEW_YORK),
        At(NOW),
    ],
)
def test_a_firing_is_after_an_instant_and_not_at_it(schedule: Schedule) -> None:
    first = next_after(schedule, NOW - 1)
    assert first is not None
    assert next_after(schedule, first - 1) == latest(schedule, first) == first
    following = next_after(schedule, first)
    assert following is None or following > first
    assert count(schedule, first, first) == 1


def test_a_period_has_no_firing_before_its_anchor() -> None:
    schedule = Every(HOUR, NOW)
    assert next_after(schedule, NOW - 10 * HOUR) == NOW
    assert latest(schedule, NOW - 1) is None
    assert list(missed(schedule, NOW - 10 * HOUR, NOW + HOUR)) == [NOW, NOW + HOUR]
    assert count(schedule, NOW - 10 * HOUR, NOW + HOUR) == 2
    assert count(schedule, NOW - 10 * HOUR, NOW - HOUR) == 0
    assert count(schedule, NOW + HOUR, NOW) == 0


def test_nothing_fires_before_1968_or_after_the_year_9945() -> None:
    end = when("9999-01-01")
    assert next_after(Cron("* * * * *"), end) is None
    assert next_after(Every(DAY, NOW), end) is None
    assert latest(Cron("0 0 29 2 *"), when("1970-06-01")) is None


@pytest.mark.parametrize(
    ("schedule", "firings_in_ten_years"),
    [(Cron("* * * * *", NEW_YORK), 5_259_457), (Every(SECOND, NOW), 315_567_361)],
)
def test_what_was_missed_in_ten_years_is_told_without_walking_through_it(
    schedule: Schedule, firings_in_ten_years: int
) -> None:
    until = NOW + 87_657 * HOUR + 36 * MINUTE
    began = time.perf_counter()
    assert count(schedule, NOW, until) == firings_in_ten_years
    assert latest(schedule, until) == until
    assert next(missed(schedule, NOW, until)) == NOW
    assert time.perf_counter() - began < 5


def test_a_clock_may_change_where_a_window_of_stretches_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change = when("2026-03-08T07:00") // SECOND
    monkeypatch.setattr(zones, "WINDOW", change)
    (first, *_) = zones.stretches.__wrapped__(NEW_YORK, 1)
    assert (first.start, first.before, first.offset) == (change, -5 * 3600, -4 * 3600)
    last = zones.stretches.__wrapped__(NEW_YORK, 0)[-1]
    assert (last.end, last.offset) == (change, -5 * 3600)


def test_c4_a_clock_may_change_again_within_a_week() -> None:
    assert firings("0 9 * * *", "America/Recife", "2000-10-07", "2000-10-17")[::3] == [
        "2000-10-07T09:00-03:00",
        "2000-10-10T09:00-02:00",
        "2000-10-13T09:00-02:00",
        "2000-10-16T09:00-03:00",
    ]


@pytest.mark.parametrize(
    ("expression", "since", "until", "number"),
    [
        ("30 2 * * *", "2026-03-08T00:00", "2026-03-08T12:00", 1),
        ("0,30 2,3 * * *", "2026-03-08T00:00", "2026-03-08T12:00", 2),
        ("30 2,3 * * *", "2026-03-08T00:00", "2026-03-08T12:00", 2),
        ("30 2 * * *", "2026-03-08T07:00", "2026-03-08T12:00", 1),
        ("30 2 * * *", "2026-03-08T07:01", "2026-03-08T12:00", 0),
        ("30 1 * * *", "2026-11-01T00:00", "2026-11-01T12:00", 1),
        ("30 1 * * *", "2026-11-01T06:00", "2026-11-01T12:00", 0),
        ("*/30 1 * * *", "2026-11-01T00:00", "2026-11-01T12:00", 4),
    ],
)
def test_c4_firings_are_counted_as_they_are_fired(
    expression: str, since: str, until: str, number: int
) -> None:
    assert len(firings(expression, NEW_YORK, since, until)) == number
    assert count(cron(expression, NEW_YORK, NOW), when(since), when(until)) == number


@pytest.mark.parametrize("zone", [NEW_YORK, "Africa/Casablanca", "Antarctica/Troll", "Asia/Tehran"])
def test_stretches_have_no_holes(zone: str) -> None:
    found = [stretch for window in range(60) for stretch in zones.stretches(zone, window)]
    assert all(one.end == other.start for one, other in pairwise(found))
    assert all(one.offset == other.before for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("wall", "instant"),
    [
        ("2026-03-08T02:30", "2026-03-08T07:00"),
        ("2026-03-08T03:00", "2026-03-08T07:00"),
        ("2026-11-01T01:30", "2026-11-01T05:30"),
        ("2026-11-01T02:00", "2026-11-01T07:00"),
        ("2026-07-01T09:00:00.5", "2026-07-01T13:00:00.5"),
    ],
)
def test_c4_a_wall_time_is_one_instant(wall: str, instant: str) -> None:
    assert instant_at(datetime.fromisoformat(wall), NEW_YORK) == when(instant)


# Stagger


def test_c8_a_job_has_its_own_place_in_the_stagger_for_ever() -> None:
    places = {job: offset(job, HOUR) for job in (f"job-{number}" for number in range(1_000))}
    assert all(0 <= place < HOUR for place in places.values())
    assert places["job-0"] == 3_461_931_264
    quarters = [
        sum(place // (HOUR // 4) == quarter for place in places.values()) for quarter in range(4)
    ]
    assert min(quarters) > 200


@pytest.mark.parametrize("stagger", [0, -5])
def test_c8_no_stagger_is_exact(stagger: Span) -> None:
    assert offset("job", stagger) == 0
    schedule = Cron("0 9 * * *")
    assert next_firing(schedule, stagger, "job", NOW) == next_after(schedule, NOW)


def test_c8_a_staggered_job_fires_once_for_each_firing_of_its_schedule() -> None:
    schedule, stagger = Cron("0 9 * * *"), 30 * MINUTE
    late = offset("job", stagger)
    assert late > 0
    fired = []
    now = when("2026-03-05T09:00") + late - 1
    for _ in range(3):
        firing = next_firing(schedule, stagger, "job", now)
        assert firing is not None
        fired.append(firing)
        now = firing
    assert fired == [when(f"2026-03-0{day}T09:00") + late for day in (5, 6, 7)]
    assert next_firing(At(NOW), stagger, "job", NOW + late) is None


def test_c8_a_period_asked_for_now_does_not_fire_at_once() -> None:
    firing = next_firing(every("1h", "UTC", NOW), 10 * MINUTE, "job", NOW)
    assert firing == NOW + HOUR + offset("job", 10 * MINUTE)
