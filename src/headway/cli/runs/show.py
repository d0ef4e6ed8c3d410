"""`headway runs show`: all about one run."""

from headway.cli.options import AsJson, ServerUrl, TokenText, Watch
from headway.cli.runs.options import RunId


def show_run(
    run: RunId,
    *,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Show one run: what it asks, where it stands, and how it ended."""
    from headway.cli.asking import look
    from headway.cli.opening import wall_now
    from headway.cli.runs.telling import run_lines

    look(
        server,
        token,
        lambda client: client.runs.get(run),
        lambda found: run_lines(found, wall_now()),
        json=as_json,
        watch=watch,
    )
