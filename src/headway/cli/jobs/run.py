"""`headway jobs run`: a firing beside the schedule."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import NO_REPLY, errors_told
from headway.cli.jobs.options import JobName
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.runs import OutcomeAnswer


def run_job(
    job: JobName,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
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
    from headway.cli.answers import as_json as json_of
    from headway.cli.jobs import telling
    from headway.model.words import State
    from headway.wiring import run

    with errors_told():
        run_id, outcome = run(
            _fire(place_of(server, token, store), job, only_if_due=if_due, wait=wait)
        )
    if as_json:
        told = {} if outcome is None and not wait else {"outcome": outcome}
        print_all(json_of({"runId": run_id, **told}))
    elif run_id is None:
        print_all("not due: nothing was fired")
    elif outcome is None:
        print_all(f"fired: run {run_id}")
    elif outcome.state is State.DONE:
        print_all(outcome.text)
    else:
        detail = f": {outcome.error}" if outcome.error else ""
        typer.echo(
            f"headway: run {run_id} ended {telling.outcome_words(outcome)}{detail}", err=True
        )
    if outcome is not None and outcome.state is not State.DONE:
        raise typer.Exit(NO_REPLY)


async def _fire(
    place: "Place", named: str, *, only_if_due: bool, wait: bool
) -> "tuple[str | None, OutcomeAnswer | None]":
    from headway.cli.jobs.boards import jobs_changed
    from headway.cli.jobs.finding import find

    async with jobs_changed(place) as jobs:
        run_id = await jobs.run((await find(jobs, named)).id, only_if_due=only_if_due)
        if run_id is None or not wait:
            return run_id, None
        return run_id, (await jobs.wait(run_id)).outcome
