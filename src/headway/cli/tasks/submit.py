"""`headway tasks submit`: ask an agent for a task."""

import json
from typing import Annotated

import typer

from headway.cli.messages import Deadline, Key, Lane, Session
from headway.cli.options import AsJson, ServerUrl, TokenText
from headway.cli.tasks.options import Callback


def submit(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Who is asked.")],
    action: Annotated[str, typer.Argument(metavar="ACTION", help="What is to be done.")],
    *,
    tab: Annotated[str, typer.Option(metavar="ID", help="The tab it is about.")] = "",
    selector: Annotated[str, typer.Option(help="What in the tab.")] = "",
    ref: Annotated[str, typer.Option(help="What in the tab, by reference.")] = "",
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param", "-p", metavar="NAME=VALUE", help="More of it; a value may be JSON."
        ),
    ] = None,
    priority: Annotated[int, typer.Option(min=-100, max=100, help="Lower goes first.")] = 0,
    deadline: Deadline = None,
    lane: Lane = None,
    session: Session = None,
    key: Key = None,
    callback: Callback = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end, and show the reply.")
    ] = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Submit a task. It is kept before this returns; it says its place in line.

    \b
    headway tasks submit browser click --tab t1 --ref e12
    headway tasks submit browser type --param 'text=hello' --param delay=20
    """
    from headway.cli.asking import ask
    from headway.cli.exits import errors_told
    from headway.cli.following import follow_to_end
    from headway.cli.tasks.telling import accepted_line
    from headway.wire.tasks import TaskRequest

    with errors_told():
        params = params_of(param or [])
    task = TaskRequest(
        agent_id=agent,
        action=action,
        tab_id=tab,
        selector=selector,
        ref=ref,
        params=params,
        priority=priority,
        deadline=deadline,
        lane=lane,
        session=session,
        idempotency_key=key,
        callback_url=callback,
    )
    taken = ask(server, token, lambda client: client.tasks.submit(task))
    if wait:
        follow_to_end(server, token, taken.task_id, as_json=as_json, taken=True)
        return
    from headway.cli.answers import show

    show(taken, accepted_line, json=as_json)


def params_of(pairs: list[str]) -> dict[str, object]:
    """`name=value` each; a value that is JSON is taken as that, any other as a text."""
    from headway.model.errors import InvalidInput

    params: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InvalidInput("--param", pair, "NAME=VALUE")
        try:
            params[name] = json.loads(value)
        except ValueError:
            params[name] = value
    return params
