"""`headway runs why`: the rule that holds a run (X-1)."""

from headway.cli.options import AsJson, ServerUrl, TokenText, Watch
from headway.cli.runs.options import RunId


def why(
    run: RunId,
    *,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Say why a run waits: the rule that holds it, its place in line, and when it may start."""
    from headway.cli.asking import look

    look(
        server,
        token,
        lambda client: client.runs.why(run),
        lambda held: held.text,
        json=as_json,
        watch=watch,
    )
