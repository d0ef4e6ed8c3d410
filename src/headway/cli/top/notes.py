"""Events as short notes for the screen; most kinds say too little or too often to be there."""

import re
from collections.abc import Callable, Mapping

from headway.cli.answers import one_line
from headway.cli.times import short
from headway.cli.top.board import Note
from headway.cli.views import instant
from headway.model.events import CATALOGUE
from headway.model.telling import kind_of
from headway.model.time import span

_LONGEST = 200
_UNSEEN = frozenset(
    {
        "AttemptCancelled",
        "OutboundEmpty",
        "OutputEmitted",
        "RunStarted",
        "RunSubmitted",
        "TokensUsed",
        "cache:cron",
    }
)
SEEN = tuple(name for name in map(kind_of, CATALOGUE) if name not in _UNSEEN)
"""The kinds that are asked for."""
_LENGTH = re.compile(r"[0-9.]+(ms|s|m|h|d)\b|\b[0-9]+\b")
_BAD = frozenset({"failed", "rejected"})


def note_of(data: Mapping[str, object]) -> Note | None:
    """What a person is told about an event; None if nothing."""
    kind = str(data.get("event", ""))
    tell = _TELLING.get(kind, _anything)
    who, what, bad = tell(data)
    if not what:
        return None
    who, what = one_line(who), one_line(what, _LONGEST)
    same = f"{kind} {who} {_LENGTH.sub('', what)}"
    return Note(instant(str(data["at"])), who, what, bad, same)


_Told = tuple[str, str, bool]


def _finished(data: Mapping[str, object]) -> _Told:
    state, reason, error = (str(data.get(name) or "") for name in ("state", "reason", "error"))
    if data.get("into"):
        return "", "", False
    how = f"{state}/{reason}" if reason else state
    took = f" in {_rounded(data.get('took'))}" if data.get("attempt") else ""
    why = f": {error}" if error else ""
    return str(data.get("agent", "")), f"{how}{took}{why}", state in _BAD


def _rounded(length: object) -> str:
    return short(span(length, "length"))


def _merged(data: Mapping[str, object]) -> _Told:
    parts = data.get("parts")
    count = len(parts) if isinstance(parts, list) else 0
    return str(data.get("agent", "")), f"{count} messages became one turn", False


def _waited(data: Mapping[str, object]) -> _Told:
    waited, ahead = _rounded(data.get("waited")), data.get("ahead")
    return str(data.get("agent", "")), f"waited {waited} with {ahead} before it", False


def _stopped(data: Mapping[str, object]) -> _Told:
    running, waiting = data.get("running"), data.get("waiting")
    return str(data.get("session", "")), f"stopped: {running} running, {waiting} waiting", False


def _lane(data: Mapping[str, object]) -> _Told:
    return "headway", f"lane {data.get('lane')} is {data.get('width')} wide now", False


def _failed(data: Mapping[str, object]) -> _Told:
    return str(data.get("agent", "")), f"attempt {data.get('attempt')}: {data.get('error')}", True


def _died(data: Mapping[str, object]) -> _Told:
    return str(data.get("agent", "")), f"attempt {data.get('attempt')}: {data.get('error')}", True


def _adopted(data: Mapping[str, object]) -> _Told:
    what = f"attempt {data.get('attempt')} goes on: its worker outlived its node"
    return str(data.get("agent", "")), what, False


def _orphan(data: Mapping[str, object]) -> _Told:
    return str(data.get("agent", "")), "a worker that nobody wanted any more was ended", False


def _missed(data: Mapping[str, object]) -> _Told:
    count = data.get("count")
    missed = f"{count} events were missed here" if count else "events may have been missed here"
    return "headway", missed, True


def _fired(data: Mapping[str, object]) -> _Told:
    return str(data.get("agent", "")), f"job {data.get('name')} fires", False


def _passed(data: Mapping[str, object]) -> _Told:
    kind, reason = data.get("kind"), str(data.get("reason") or "").replace("_", " ")
    return str(data.get("agent", "")), f"job {data.get('name')} {kind}: {reason}", False


def _quiet(data: Mapping[str, object]) -> _Told:
    return str(data.get("agent", "")), "looked around; nothing to tell", False


def _anything(data: Mapping[str, object]) -> _Told:
    """Its name in words, and what it says."""
    kind = str(data.get("event", ""))
    words = "".join(f" {sign.lower()}" if sign.isupper() else sign for sign in kind).strip()
    left_out = {"event", "at", "agent", "runId", "session", "trace", "route"}
    said = [
        f"{name} {value}"
        for name, value in data.items()
        if name not in left_out and value not in (None, "", []) and not isinstance(value, dict)
    ]
    who = str(data.get("agent") or data.get("channel") or "headway")
    return who, ", ".join([words, *said]), False


_TELLING: Mapping[str, Callable[[Mapping[str, object]], _Told]] = {
    "RunFinished": _finished,
    "RunsMerged": _merged,
    "RunWaited": _waited,
    "SessionStopped": _stopped,
    "LaneChanged": _lane,
    "AttemptFailed": _failed,
    "EventsMissed": _missed,
    "WorkerDied": _died,
    "WorkerAdopted": _adopted,
    "OrphanEnded": _orphan,
    "JobFired": _fired,
    "JobPassed": _passed,
    "HeartbeatQuiet": _quiet,
}
