"""Heartbeats, as text for people and as JSON for programs."""

from collections.abc import Sequence

from headway.cli.jobs.telling import (
    NOTHING,
    lines_of,
    moment,
    next_text,
    one_line,
    route_text,
    state_json,
    state_text,
)
from headway.cli.tables import table
from headway.core.heartbeat import has_content, in_hours, next_in_hours
from headway.core.spoken import show_time
from headway.model.heartbeat import HeartbeatSettings
from headway.model.hours import ActiveHours
from headway.model.run import Route
from headway.model.time import Instant, span_text
from headway.model.views import JobView


def settings_of(view: JobView) -> HeartbeatSettings:
    assert view.job.heartbeat is not None
    return view.job.heartbeat


def heartbeats_table(views: Sequence[JobView], now: Instant, zone: str | None) -> str:
    if not views:
        return "no heartbeats"
    head = ("agent", "every", "hours", "next", "last", "target", "state")
    rows = [
        (
            view.agent,
            span_text(settings_of(view).interval),
            hours_text(settings_of(view).hours),
            next_text(view, now, zone),
            str(view.last_outcome or NOTHING),
            target_text(settings_of(view).target),
            state_text(view),
        )
        for view in views
    ]
    return table(head, rows)


def heartbeat_lines(view: JobView, checklist: str | None, now: Instant, zone: str | None) -> str:
    """All about one agent's heartbeat."""
    settings = settings_of(view)
    rows = [
        ("agent", view.agent),
        ("state", state_text(view)),
        ("every", span_text(settings.interval)),
        ("next", next_text(view, now, zone)),
        ("hours", hours_text(settings.hours)),
    ]
    hours = settings.hours
    if hours is not None and not in_hours(hours, now):
        opens = show_time(next_in_hours(hours, now), zone or hours.zone, now)
        rows.append(("", f"asleep until {opens}"))
    rows += [
        ("target", target_text(settings.target)),
        ("checklist", checklist_text(settings, checklist)),
        ("prompt", one_line(settings.prompt) or "the built-in one"),
        ("session", one_line(settings.session)),
    ]
    if settings.lane:
        rows.append(("lane", settings.lane))
    if settings.timeout is not None:
        rows.append(("timeout", span_text(settings.timeout)))
    if view.last_run_at is not None:
        shown = show_time(view.last_run_at, zone or view.job.schedule.zone, now)
        outcome = f"{view.last_outcome}; " if view.last_outcome else ""
        rows.append(("last run", f"{outcome}{shown}"))
    if view.last_error:
        rows.append(("error", one_line(view.last_error)))
    return lines_of(rows)


def heartbeat_json(view: JobView) -> dict[str, object]:
    settings = settings_of(view)
    hours, target = settings.hours, settings.target
    return {
        "agentId": view.agent,
        "id": view.id,
        "enabled": view.enabled,
        "every": span_text(settings.interval),
        "hours": None if hours is None else {"hours": _times(hours), "tz": hours.zone},
        "target": route_json(target) if isinstance(target, Route) else target,
        "checklist": settings.checklist or None,
        "prompt": settings.prompt or None,
        "session": settings.session,
        "lane": settings.lane,
        "timeout": None if settings.timeout is None else span_text(settings.timeout),
        "ackMaxChars": settings.ack_max_chars,
        "createdAt": moment(view.job.created_at),
        "state": state_json(view),
    }


def route_json(route: Route) -> dict[str, str]:
    parts = {"to": route.peer, "thread": route.thread, "account": route.account}
    return {"channel": route.channel, **{key: part for key, part in parts.items() if part}}


def target_text(target: Route | str) -> str:
    return one_line(route_text(target)) if isinstance(target, Route) else target


def hours_text(hours: ActiveHours | None) -> str:
    return NOTHING if hours is None else f"{_times(hours)} {hours.zone}"


def checklist_text(settings: HeartbeatSettings, checklist: str | None) -> str:
    """Where it is kept, and whether there is anything on it."""
    where = one_line(settings.checklist) or "in the store"
    if checklist is None:
        idle = "" if settings.prompt.strip() else ", so the agent is not woken"
        return f"{where}: there is none{idle}"
    if not has_content(checklist):
        return f"{where}: nothing is on it, so the agent is not woken"
    lines = len(checklist.strip().splitlines())
    return f"{where}: {lines} line{'' if lines == 1 else 's'}"


def _times(hours: ActiveHours) -> str:
    return "-".join(f"{at // 60:02}:{at % 60:02}" for at in (hours.start, hours.end))
