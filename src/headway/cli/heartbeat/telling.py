"""Heartbeats, as text for people."""

from collections.abc import Sequence

from headway.cli.answers import NOTHING, lines_of, one_line
from headway.cli.jobs.telling import next_text, route_text, state_text
from headway.cli.tables import table
from headway.core.heartbeat import SPACING, has_content, in_hours, next_in_hours
from headway.core.spoken import show_time
from headway.model.heartbeat import HeartbeatSettings
from headway.model.hours import ActiveHours
from headway.model.run import Route
from headway.model.time import Instant, span_text
from headway.model.views import JobView
from headway.wire.heartbeats import hours_text as times_text
from headway.wire.heartbeats import settings_of


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
            state_text(view, now),
        )
        for view in views
    ]
    return table(head, rows)


def _every(settings: HeartbeatSettings) -> str:
    often = settings.interval < SPACING
    at_most = f"; it is woken each {span_text(SPACING)} at most" if often else ""
    return f"{span_text(settings.interval)}{at_most}"


def heartbeat_lines(view: JobView, checklist: str | None, now: Instant, zone: str | None) -> str:
    """All about one agent's heartbeat."""
    settings = settings_of(view)
    rows = [
        ("agent", view.agent),
        ("state", state_text(view, now)),
        ("every", _every(settings)),
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


def target_text(target: Route | str) -> str:
    return one_line(route_text(target)) if isinstance(target, Route) else target


def hours_text(hours: ActiveHours | None) -> str:
    return NOTHING if hours is None else f"{times_text(hours)} {hours.zone}"


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
