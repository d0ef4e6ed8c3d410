"""`headway jobs next`: when a job fires, or when an expression would."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from headway.cli.exits import errors_told
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.model.schedule import Schedule
    from headway.model.time import Instant, Span


class Plan(NamedTuple):
    """Firings, and what is needed to show them."""

    schedule: "Schedule"
    firings: "list[Instant]"
    shown_in: str
    late: "Span" = 0
    """How much later than its schedule the job fires: its stagger."""


def next_firings(
    what: Annotated[
        str,
        typer.Argument(
            metavar="JOB|EXPR", help="A job, or: '0 9 * * 1-5', 'every 10m', 'tomorrow 9am'."
        ),
    ],
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    count: Annotated[int, typer.Option("-n", min=1, max=1000, help="So many firings.")] = 5,
    zone: Annotated[
        str | None,
        typer.Option(
            "--tz",
            metavar="ZONE",
            help="The expression's time zone (HEADWAY_TZ or UTC unless set); a job is shown in it.",
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Those after then, not after now: '2027-03-13 12:00'."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the next firings of a job, or of an expression that you want to check.

    Says where a wall time is odd because the clocks change: one that does not
    exist fires right after the gap, one that comes twice fires once.

    \b
    headway jobs next '0 9 * * 1-5' --tz America/Sao_Paulo
    headway jobs next '30 2 * * *' --tz America/New_York --after '2027-03-12 12:00'
    headway jobs next support/brief -n 10
    """
    from headway.cli.jobs.expressions import FIELD, OR_ELSE, NoExpression
    from headway.cli.opening import wall_now
    from headway.model.errors import InvalidInput, JobNotFound, Unavailable
    from headway.wiring import run

    with errors_told():
        now = wall_now()
        try:
            plan = _of_expression(what, zone, after, now, count)
        except NoExpression as wrong:
            hint = f"{wrong.allowed}; {OR_ELSE}"
            place = place_of(server, token, store)
            try:
                plan = run(_of_job(what, place, zone, after, now, count=count))
            except Unavailable as away:
                raise InvalidInput(FIELD, what, f"{hint} ({away})") from None
            except JobNotFound:
                raise InvalidInput(FIELD, what, f"{hint}, and there is none called so") from None
    _tell(plan, now, as_json=as_json)


def _of_expression(
    text: str, zone: str | None, after: str | None, now: "Instant", count: int
) -> Plan:
    """When an expression would fire. Raises `NoExpression` if the text may be the name of a job."""
    from headway.cli.jobs.expressions import read_expression
    from headway.cli.opening import zone_or_default
    from headway.core.schedule import next_after

    zone = zone_or_default(zone)
    start = _start(after, now, zone)
    schedule = read_expression(text, zone, start)
    firings: list[Instant] = []
    at = next_after(schedule, start)
    while at is not None and len(firings) < count:
        firings.append(at)
        at = next_after(schedule, at)
    return Plan(schedule, firings, zone)


async def _of_job(
    named: str, place: "Place", zone: str | None, after: str | None, now: "Instant", *, count: int
) -> Plan:
    from headway.cli.jobs.boards import jobs_shown
    from headway.cli.jobs.finding import find
    from headway.cli.views import job_view
    from headway.core.schedule import next_firing, offset

    async with jobs_shown(place) as jobs:
        view = job_view(await find(jobs, named))
    job = view.job
    shown_in = zone or job.schedule.zone
    at = view.next_run_at if job.enabled else None
    if after is not None:
        at = next_firing(job.schedule, job.stagger, job.id, _start(after, now, shown_in))
    firings: list[Instant] = []
    while at is not None and len(firings) < count:
        firings.append(at)
        at = next_firing(job.schedule, job.stagger, job.id, at)
    return Plan(job.schedule, firings, shown_in, offset(job.id, job.stagger))


def _start(after: str | None, now: "Instant", zone: str) -> "Instant":
    from headway.core.spoken import read_time

    return now if after is None else read_time(after, now, zone, "--after")


def _tell(plan: Plan, now: "Instant", *, as_json: bool) -> None:
    from headway.cli.answers import as_json as json_of
    from headway.cli.jobs import telling

    schedule, firings, shown_in, late = plan
    if as_json:
        told = [telling.firing_json(schedule, at, shown_in, late) for at in firings]
        print_all(json_of({"schedule": telling.schedule_text(schedule), "firings": told}))
        return
    lines = [telling.firing_text(schedule, at, shown_in, now, late) for at in firings]
    print_all("\n".join(lines or ["it does not fire any more"]))
