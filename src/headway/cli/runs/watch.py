"""`headway runs watch`: what a run emits, live, and how it ends."""

from headway.cli.options import AsJson, ServerUrl, TokenText
from headway.cli.runs.options import RunId


def watch(
    run: RunId,
    *,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Watch a run to its end: what it emits as it comes, then its reply.

    Ctrl-C ends the watching, not the run.
    """
    from headway.cli.following import follow_to_end

    follow_to_end(server, token, run, as_json=as_json)
