"""`headway runs tree`: a run and all that it started."""

from headway.cli.options import AsJson, ServerUrl, TokenText, Watch
from headway.cli.runs.options import RunId


def tree(
    run: RunId,
    *,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Draw a run and all that it started: agents that asked other agents."""
    from headway.cli.asking import look
    from headway.cli.opening import wall_now
    from headway.cli.runs.telling import tree_lines

    look(
        server,
        token,
        lambda client: client.runs.tree(run),
        lambda found: tree_lines(found, wall_now()),
        json=as_json,
        watch=watch,
    )
