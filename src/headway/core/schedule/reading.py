"""From what a person wrote to a schedule, or to an error that names the field (C-3)."""

from datetime import datetime, timedelta

from headway.core.schedule.expression import parse
from headway.core.schedule.zones import LAST_WINDOW, WINDOW, instant_at, zone_name
from headway.model.errors import InvalidInput
from headway.model.schedule import At, Cron, Every
from headway.model.time import SECOND, Instant, instant_of, instant_text, span

_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_LAST: Instant = (LAST_WINDOW + 1) * WINDOW * SECOND


def cron(expression: object, zone: str, now: Instant, field: str = "schedule") -> Cron | Every:
    """A cron expression of five fields, a nickname such as `@daily`, or `@every 10m`."""
    checked = zone_name(zone)
    if not isinstance(expression, str):
        raise InvalidInput(field, expression, "a cron expression, such as '0 9 * * 1-5'")
    text = " ".join(expression.split())
    nickname, _, rest = text.partition(" ")
    nickname = nickname.lower()
    if nickname == "@every":
        return every(rest, checked, now, field=field)
    if nickname == "@reboot":
        allowed = "a time: a job outlives restarts, so there is no @reboot"
        raise InvalidInput(field, expression, allowed)
    if nickname.startswith("@"):
        if rest or nickname not in _NICKNAMES:
            names = ", ".join((*_NICKNAMES, "@every 10m"))
            raise InvalidInput(field, expression, f"a cron expression or one of {names}")
        text = _NICKNAMES[nickname]
    try:
        parse(text)
    except InvalidInput as error:
        raise InvalidInput(field, expression, error.allowed) from None
    return Cron(text, checked)


def every(
    period: object,
    zone: str,
    now: Instant,
    anchor: Instant | None = None,
    field: str = "schedule",
) -> Every:
    """Once in each period, first at the anchor, or one period from now if none is given."""
    checked = zone_name(zone)
    microseconds = span(period, field)
    if not microseconds:
        raise InvalidInput(field, period, "a period longer than 0")
    first = now + microseconds if anchor is None else anchor
    if not -_LAST < first < _LAST:
        raise InvalidInput(field, period, f"such that it first fires before {instant_text(_LAST)}")
    return Every(microseconds, first, checked)


def at(when: object, zone: str, now: Instant, field: str = "schedule") -> At:
    """Once: at an instant, at a datetime (a naive one is by the zone's clock), or after a timedelta.

    What people write for a time is read by `core.spoken`.
    """
    checked = zone_name(zone)
    instant = _instant(when, checked, now, field)
    if instant <= now:
        raise InvalidInput(field, when, f"in the future; now it is {instant_text(now)}")
    if instant >= _LAST:
        raise InvalidInput(field, when, f"before {instant_text(_LAST)}")
    return At(instant, checked)


def _instant(when: object, zone: str, now: Instant, field: str) -> Instant:
    match when:
        case int() if not isinstance(when, bool):
            return when
        case timedelta():
            return now + span(when, field)
        case datetime():
            if when.utcoffset() is None:
                return instant_at(when, zone)
            return instant_of(when, field)
        case _:
            raise InvalidInput(field, when, "an instant, a datetime or a timedelta")
