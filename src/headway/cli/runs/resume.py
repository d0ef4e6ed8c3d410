"""`headway runs resume`: go on where a worker died."""

from typing import TYPE_CHECKING

from headway.cli.options import AsJson, ServerUrl, TokenText
from headway.cli.runs.options import RunId

if TYPE_CHECKING:
    from headway.wire.runs import RunAnswer


def resume(
    run: RunId,
    *,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Go on with the agent session of a run whose worker died too often: a new run, with new tries before it."""
    from headway.cli.asking import look

    look(server, token, lambda client: client.runs.resume(run), _line, json=as_json)


def _line(run: "RunAnswer") -> str:
    return f"run {run.run_id} goes on where {run.resumes} stopped"
