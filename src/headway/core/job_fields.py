"""What may be said about a job, each piece checked by itself: its schedule, what it asks, where the reply goes.

A piece comes as a value of the model, or as plain data as it stands in JSON. Every refusal names the field.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from headway.core import schedule as schedules
from headway.core.request import check_channel, check_text, name_text
from headway.core.spoken import read_time
from headway.model.errors import InvalidInput, UnknownOption
from headway.model.payload import Ask, Execute, Gate, Payload, Say
from headway.model.run import Route
from headway.model.schedule import At, Cron, Every, Schedule
from headway.model.settings import MAX_TEXT
from headway.model.time import Instant, Span, as_timedelta

_KINDS: Mapping[str, tuple[str, ...]] = {
    "at": ("at", "atMs"),
    "every": ("every", "everyMs"),
    "cron": ("expr",),
}
_ROUTE_KEYS = ("channel", "to", "thread", "account")
_COMMAND_KEYS = ("argv", "folder", "environment", "stdin")
_GATE_KEYS = ("function", "command")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_QUOTED = re.compile(r"""'[^']*'|"[^"$`\\]*"|\\.""", re.DOTALL)
_SHELL = re.compile(r"[|&;<>()$`*?~#{}\[\]\n]")
_A_COMMAND = 'a program and its arguments, such as ["backup", "--all"]'
_NO_SHELL = (
    f'{_A_COMMAND}; no shell reads a text, so for one write ["/bin/sh", "-c", "…"], '
    "or quote what is meant literally"
)
_A_NUMBER = "a number of milliseconds"
_MOST_WORDS = 10_000
_LONGEST_LINE = 4_096
_LONGEST_SPAN: Span = 1_000 * 366 * 86_400_000_000


def read_schedule(
    value: object, now: Instant, zone: str, field: str = "schedule", past: bool = False
) -> Schedule:
    """A schedule from a value of the model, or from {kind, at | atMs | every | everyMs | expr, tz, anchorMs}.

    Where it names no zone it has `zone`. With `past`, an `at` that has gone by is taken too.
    """
    match value:
        case At():
            return _at(_whole(value.at, field), value.zone, now, field, past)
        case Every():
            period, anchor = _whole(value.period, field), _whole(value.anchor, field)
            return every(_period(period, field), value.zone, now, field, anchor)
        case Cron():
            return schedules.cron(value.expression, value.zone, now, field)
        case Mapping():
            return _schedule(value, now, zone, field, past)
        case _:
            raise InvalidInput(field, value, "a schedule: at, every or cron")


def at(value: object, zone: str, now: Instant, field: str = "at", past: bool = False) -> At:
    """Once: at what a person means by a text, at a datetime, or after a timedelta."""
    if isinstance(value, datetime | timedelta):
        return schedules.at(value, zone, now, field)
    instant = read_time(value, now, zone, field)
    try:
        return _at(instant, zone, now, field, past)
    except InvalidInput as error:
        raise InvalidInput(field, value, error.allowed) from None


def every(
    value: object, zone: str, now: Instant, field: str = "every", anchor: Instant | None = None
) -> Every:
    return schedules.every(value, zone, now, anchor, field)


def read_text(value: object, field: str = "text") -> Say:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(field, value, "a text that is not empty")
    return Say(_storable(value, field))


def read_function(value: object, field: str = "function") -> Ask:
    return Ask(_storable(name_text(value, field), field))


def read_command(value: object, field: str = "command") -> Execute:
    """A command from an `Execute`, a list, {argv, folder, environment, stdin}, or a text without shell signs."""
    match value:
        case Execute():
            said: Mapping[str, object] = {key: getattr(value, key) for key in _COMMAND_KEYS}
        case Mapping():
            said = value
        case _:
            return Execute(_argv(value, field))
    known(said, _COMMAND_KEYS, field)
    return Execute(
        _argv(said.get("argv"), f"{field}.argv"),
        _line(said.get("folder", ""), f"{field}.folder"),
        _environment(said.get("environment", ()), f"{field}.environment"),
        _text(said.get("stdin", ""), f"{field}.stdin"),
    )


PAYLOADS: Mapping[str, Callable[[object, str], Payload]] = {
    "text": read_text,
    "command": read_command,
    "function": read_function,
}
"""What a job may ask of its agent, by the key that says it."""


def read_gate(value: object, field: str = "gate") -> Gate:
    """A gate from a value of the model or {function} or {command}."""
    if isinstance(value, Gate):
        value = {"function": value.function or None, "command": value.argv or None}
    if not isinstance(value, Mapping):
        raise InvalidInput(
            field, value, "a function or a command, such as {'function': 'has_mail'}"
        )
    known(value, _GATE_KEYS, field)
    said = {key: part for key, part in value.items() if part is not None}
    match said:
        case {"function": function, **rest} if not rest:
            return Gate(function=read_function(function, f"{field}.function").function)
        case {"command": command, **rest} if not rest:
            return Gate(argv=_argv(command, f"{field}.command"))
        case _:
            raise InvalidInput(field, value, "either a function or a command")


def read_route(value: object, field: str = "deliver") -> Route:
    """Where replies go, from a value of the model or {channel, to, thread, account}."""
    if isinstance(value, Route):
        value = dict(
            zip(
                _ROUTE_KEYS,
                (value.channel, value.peer, value.thread, value.account),
                strict=True,
            )
        )
    if not isinstance(value, Mapping):
        raise InvalidInput(field, value, "a route, such as {'channel': 'telegram', 'to': '42'}")
    known(value, _ROUTE_KEYS, field)
    check_channel(str(value.get("channel")), f"{field}.channel")
    return Route(
        _storable(name_text(value.get("channel"), f"{field}.channel"), f"{field}.channel"),
        _line(value.get("account", ""), f"{field}.account"),
        _line(value.get("to", ""), f"{field}.to"),
        _line(value.get("thread", ""), f"{field}.thread"),
    )


def known(said: Iterable[object], keys: Iterable[str], field: str = "") -> None:
    """Refuse a key that is not among these."""
    names = {f"{field}.{key}" if field else key for key in keys}
    for key in said:
        name = f"{field}.{key}" if field else str(key)
        if name not in names:
            raise UnknownOption(name, names)


def milliseconds(value: object, field: str) -> int:
    """Microseconds from a number of milliseconds, as it stands in JSON."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InvalidInput(field, value, _A_NUMBER)
    number: int | float | Decimal = value
    if isinstance(number, Decimal) and not number.is_finite():
        raise InvalidInput(field, value, _A_NUMBER)
    if not -_LONGEST_SPAN <= number <= _LONGEST_SPAN:
        raise InvalidInput(field, value, _A_NUMBER)
    return round(number * 1_000)


def _schedule(
    said: Mapping[object, object], now: Instant, zone: str, field: str, past: bool
) -> Schedule:
    kind = said.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidInput(f"{field}.kind", kind, "one of: at, every, cron")
    anchor = ("anchorMs",) if kind == "every" else ()
    known(said, ("kind", "tz", *_KINDS[kind], *anchor), field)
    keys = [key for key in _KINDS[kind] if said.get(key) is not None]
    if len(keys) != 1:
        raise InvalidInput(field, dict(said), f"given by {' or '.join(_KINDS[kind])}")
    (key,) = keys
    value, name = said[key], f"{field}.{key}"
    if (named := said.get("tz")) is not None:
        zone = schedules.zone_name(named, f"{field}.tz")
    match key:
        case "at":
            return at(value, zone, now, name, past)
        case "atMs":
            return _at(milliseconds(value, name), zone, now, name, past)
        case "everyMs" | "every":
            if key == "everyMs":
                value = _period(milliseconds(value, name), name)
            first = said.get("anchorMs")
            anchored = None if first is None else milliseconds(first, f"{field}.anchorMs")
            return every(value, zone, now, name, anchored)
        case _:
            return schedules.cron(value, zone, now, name)


def _at(instant: Instant, zone: str, now: Instant, field: str, past: bool) -> At:
    if past and 0 <= instant <= now:
        return At(instant, schedules.zone_name(zone))
    return schedules.at(instant, zone, now, field)


def _whole(value: object, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(field, value, "a whole number of microseconds")
    return value


def _period(microseconds: Span, field: str) -> timedelta:
    if not 0 < microseconds <= _LONGEST_SPAN:
        raise InvalidInput(field, microseconds, "a period longer than 0, up to a thousand years")
    return as_timedelta(microseconds)


def _argv(value: object, field: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return _argv(_split(value, field), field)
    if not isinstance(value, list | tuple) or not 0 < len(value) <= _MOST_WORDS:
        raise InvalidInput(field, value, _A_COMMAND)
    words = tuple(_text(word, field) for word in value)
    if not words[0]:
        raise InvalidInput(field, value, _A_COMMAND)
    if sum(map(len, words)) > MAX_TEXT:
        raise InvalidInput(field, value, f"at most {MAX_TEXT} characters in all")
    return words


def _split(text: str, field: str) -> list[str]:
    """The words of a command; what only a shell could carry out is refused, for there is none."""
    if _SHELL.search(_QUOTED.sub("", text)):
        raise InvalidInput(field, text, _NO_SHELL)
    try:
        return shlex.split(text)
    except ValueError:
        raise InvalidInput(field, text, f"{_A_COMMAND}; a quote is not closed") from None


def _environment(value: object, field: str) -> tuple[tuple[str, str], ...]:
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list | tuple):
        raise InvalidInput(field, value, "names and texts, such as {'LANG': 'C'}")
    read: dict[str, str] = {}
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InvalidInput(field, pair, "a name and a text")
        name, text = pair
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name) or name in read:
            raise InvalidInput(field, name, "a name of letters, digits and _, each once")
        read[name] = _text(text, f"{field}.{name}")
    return tuple(read.items())


def _line(value: object, field: str) -> str:
    """A text that may be empty, as long as a path or an address."""
    text = _text(value, field)
    if len(text) > _LONGEST_LINE:
        raise InvalidInput(field, value, f"a text of at most {_LONGEST_LINE} characters")
    return text


def _text(value: object, field: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise InvalidInput(field, value, "a text")
    return _storable(value, field)


def _storable(value: str, field: str) -> str:
    """A text that any store can hold, neither too long nor with half a character."""
    try:
        check_text(value)
    except InvalidInput as error:
        raise InvalidInput(field, value, error.allowed) from None
    return value
