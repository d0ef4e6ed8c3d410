"""How the wall clocks of the world run: as stretches of time in which a zone keeps one offset from UTC.

Here an instant is whole seconds, and a wall time is what a clock shows, counted in seconds as if it were UTC.
"""

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

from headway.model.errors import InvalidInput
from headway.model.time import SECOND, Instant, as_datetime

Wall: TypeAlias = int

WINDOW = 1 << 25
"""The seconds for which stretches are worked out together, a little over a year."""
FIRST_WINDOW, LAST_WINDOW = -1, 7_500
"""From 1968 to the year 9945: firings are looked for in no others."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WALL_EPOCH = _EPOCH.replace(tzinfo=None)
_DAY = 86_400
_EARLIEST, _LATEST = -62_000_000_000, 253_000_000_000
"""What a datetime can hold in any zone, in seconds: the years 5 to 9987."""
_PROBE = 2 * _DAY
"""No zone has changed its clocks twice within a week since 1970."""
_NOT_EVERYWHERE = ("right/", "posix/", "posixrules", "localtime", "Factory")
"""Names that some machines know and others do not, or know as another zone."""
_LONGEST_NAME = 64


class Stretch(NamedTuple):
    """From `start` until `end` a zone's wall clock is `offset` ahead of UTC; just before, it was `before`.

    The end of a window ends a stretch too: the clock then goes on as it was.
    """

    start: int
    end: int
    offset: int
    before: int


def zone_name(name: object, field: str = "tz") -> str:
    """The name, if it is that of an IANA time zone."""
    if not isinstance(name, str):
        raise InvalidInput(field, name, "the name of an IANA time zone, such as 'Europe/Paris'")
    try:
        _info(name)
    except (KeyError, ValueError, OSError):
        close = _close(name)
        hint = f" (did you mean {close!r}?)" if close else ""
        allowed = f"the name of an IANA time zone, such as 'Europe/Paris'{hint}"
        raise InvalidInput(field, name, allowed) from None
    return name


def local(instant: Instant, zone: str) -> datetime:
    """What the wall clock of a zone shows at an instant."""
    return as_datetime(instant).astimezone(_info(zone))


def instant_at(wall: datetime, zone: str) -> Instant:
    """When a wall clock shows this: the first time if twice, right after the gap if never (C-4)."""
    shown = (wall.replace(tzinfo=None) - _WALL_EPOCH) // timedelta(microseconds=1)
    seconds, rest = divmod(shown, SECOND)
    window = (seconds - 2 * _DAY) // WINDOW
    for start, end, offset, before in (
        *stretches(zone, window),
        *stretches(zone, window + 1),
    ):
        if start + before <= seconds < end + offset:
            if seconds < start + offset:
                return start * SECOND
            return (seconds - offset) * SECOND + rest
    raise AssertionError(wall)


@lru_cache(maxsize=2_048)
def stretches(zone: str, window: int) -> tuple[Stretch, ...]:
    """The stretches of one window, in order and without holes."""
    info = _info(zone)
    start, end = window * WINDOW, (window + 1) * WINDOW
    offsets = [_offset(info, start - 1)]
    bounds = [start]
    probes = [start - 1, *range(start + _PROBE, end - 1, _PROBE), end - 1]
    for low, high in pairwise(probes):
        if _offset(info, high) != offsets[-1]:
            bounds.append(_change(info, low, high))
            offsets.append(_offset(info, high))
    # A change at the very start of the window leaves an empty stretch before it.
    return tuple(
        Stretch(since, until, offset, before)
        for since, until, offset, before in zip(
            bounds, [*bounds[1:], end], offsets, [offsets[0], *offsets], strict=False
        )
        if since < until
    )


def _change(info: ZoneInfo, low: int, high: int) -> int:
    """The first second after `low` at which the offset is that of `high`."""
    after = _offset(info, high)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(info, middle) == after:
            high = middle
        else:
            low = middle
    return high


def _offset(info: ZoneInfo, second: int) -> int:
    second = min(max(second, _EARLIEST), _LATEST)
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(info).utcoffset()
    assert offset is not None
    return offset.days * _DAY + offset.seconds


@lru_cache(maxsize=1_024)
def _info(name: str) -> ZoneInfo:
    if name.startswith(_NOT_EVERYWHERE):
        raise KeyError(name)
    return ZoneInfo(name)


@lru_cache(maxsize=1)
def _names() -> tuple[dict[str, str], dict[str, str]]:
    """All zones by their folded names, and by those of their cities.

    Not `Etc/GMT+2` and its like: that is two hours behind UTC, and never what was meant by `GMT+2`.
    """
    hidden = ("Etc/", "GMT", *_NOT_EVERYWHERE)
    names = sorted(name for name in available_timezones() if not name.startswith(hidden))
    folded = {name.casefold(): name for name in names}
    return folded, {name.rpartition("/")[2]: folded[name] for name in folded}


def _close(name: str) -> str | None:
    """The zone that was probably meant."""
    wanted = name.strip().replace(" ", "_").casefold()
    if not 2 < len(wanted) <= _LONGEST_NAME:
        return None
    for known in _names():
        if wanted in known:
            return known[wanted]
    for known in _names():
        if close := get_close_matches(wanted, known, n=1, cutoff=0.8):
            return known[close[0]]
    return None
