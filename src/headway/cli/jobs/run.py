"""`headway jobs run`: a firing beside the schedule."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import BROKEN, EXIT_CODES, errors_told
from headway.cli.jobs.options import JobName
from headway.cli.options import AsJson, StoreUrl
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.model.outcome import Outcome

RUN_EXIT_CODES = f"{EXIT_CODES} With --wait, 1 also if the run did not end well."


def run_job(
    job: JobName,
    *,
    store: StoreUrl,
    if_due: Annotated[
        bool, typer.Option("--if-due", help="Only if it is due and nobody has fired it yet.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end, and print the reply.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fire a job now, paused or not. Its schedule goes on as it was.

    A node that has its agent runs it; while there is none, it waits in the
    store, and so does --wait.
    """
    from headway.cli.jobs import telling
    from headway.wiring import run

    with errors_told():
        run_id, outcome = run(_fire(store, job, only_if_due=if_due, wait=wait))
    if as_json:
        told = None if outcome is None else telling.outcome_json(outcome)
        print_all(telling.as_json({"runId": run_id, "outcome": told}))
    elif run_id is None:
        print_all("not due: nothing was fired")
    elif outcome is None:
        print_all(f"fired: run {run_id}")
    elif outcome.ok:
        print_all(outcome.text)
    else:
        detail = f": {outcome.error}" if outcome.error else ""
        typer.echo(
            f"headway: run {run_id} ended {telling.outcome_words(outcome)}{detail}", err=True
        )
    if outcome is not None and not outcome.ok:
        raise typer.Exit(BROKEN)


async def _fire(
    url: str, named: str, *, only_if_due: bool, wait: bool
) -> "tuple[str | None, Outcome | None]":
    from headway.cli.jobs.finding import find
    from headway.cli.opening import asking

    async with asking(url) as headway:
        found = await find(headway.engine.jobs, named)
        handle = await headway.jobs.run(found.job.id, only_if_due=only_if_due)
        if handle is None:
            return None, None
        return handle.id, await handle.wait() if wait else None
