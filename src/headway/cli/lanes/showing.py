"""`headway lanes list`."""

from headway.cli.options import AsJson, Cursor, Limit, ServerUrl, TokenText, Watch


def list_lanes(
    *,
    limit: Limit = 100,
    cursor: Cursor = None,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """List the lanes of this node: how wide each is, how full, and how many wait."""
    from headway.cli.answers import more
    from headway.cli.asking import look
    from headway.cli.lanes.telling import lanes_table
    from headway.wire.lanes import LanesQuery

    query = LanesQuery(limit=limit, cursor=cursor)
    page = look(
        server,
        token,
        lambda client: client.lanes.list(query),
        lambda page: lanes_table(page.lanes),
        json=as_json,
        watch=watch,
    )
    if page is not None and not as_json:
        more(page.cursor)
