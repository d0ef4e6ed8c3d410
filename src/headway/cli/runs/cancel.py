"""`headway runs cancel`: it and all that it started."""

from typing import TYPE_CHECKING

from headway.cli.options import AsJson, ServerUrl, TokenText
from headway.cli.runs.options import RunId

if TYPE_CHECKING:
    from headway.wire.runs import RunAnswer


def cancel(
    run: RunId,
    *,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a run and all that it started. One that runs is told to stop, and ends when it has."""
    from headway.cli.asking import look

    look(server, token, lambda client: client.runs.cancel(run), _line, json=as_json)


def _line(run: "RunAnswer") -> str:
    from headway.cli.runs.telling import state_text

    return f"run {run.run_id} is {state_text(run)}"
