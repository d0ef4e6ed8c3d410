"""`headway lanes set`, `pause`, `resume` and `clear`."""

from typing import Annotated

import typer

from headway.cli.options import AsJson, ServerUrl, TokenText

LaneName = Annotated[str, typer.Argument(metavar="LANE", help="Its name.")]
_NONE = "none"


def set_lane(
    lane: LaneName,
    width: Annotated[
        int | None,
        typer.Argument(
            metavar="WIDTH", min=0, help="How many runs go at once.", show_default=False
        ),
    ] = None,
    *,
    reserve: Annotated[
        int | None, typer.Option(min=0, help="Slots that are for interactive work only.")
    ] = None,
    cluster_limit: Annotated[
        str | None,
        typer.Option(metavar="N|none", help="How many go at once over all nodes; none: no bound."),
    ] = None,
    runs_per_minute: Annotated[
        str | None, typer.Option(metavar="N|none", help="Starts per minute; none: no bound.")
    ] = None,
    tokens_per_minute: Annotated[
        str | None, typer.Option(metavar="N|none", help="Tokens per minute; none: no bound.")
    ] = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Change a lane at once, or make a new one. What is not said stays.

    0 wide is paused until it is given a width again; `lanes pause` remembers.

    Wider: waiting runs start. Narrower: those that run go on to their end. It
    holds on this node until its next start; for longer, put it in headway.toml.
    """
    from headway.cli.asking import look
    from headway.cli.exits import errors_told
    from headway.cli.lanes.telling import lane_line
    from headway.model.errors import Refused
    from headway.wire.lanes import LaneRequest

    with errors_told():
        said: dict[str, object] = {"width": width, "reserve": reserve}
        said = {name: value for name, value in said.items() if value is not None}
        for name, text in (
            ("cluster_limit", cluster_limit),
            ("runs_per_minute", runs_per_minute),
            ("tokens_per_minute", tokens_per_minute),
        ):
            if text is not None:
                said[name] = _bound(name, text)
        if not said:
            raise Refused("say what to set: a WIDTH or an option (see --help)")
    asked = LaneRequest(name=lane, **said)  # type: ignore[arg-type]
    look(server, token, lambda client: client.lanes.set(asked), lane_line, json=as_json)


def pause(
    lane: LaneName,
    *,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Start nothing in a lane of this node any more, until its next start; what runs in it goes on."""
    from headway.cli.asking import look
    from headway.cli.lanes.telling import lane_line

    look(server, token, lambda client: client.lanes.pause(lane), lane_line, json=as_json)


def resume(
    lane: LaneName,
    *,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Start again what waits in a paused lane, as many at once as before."""
    from headway.cli.asking import look
    from headway.cli.lanes.telling import lane_line

    look(server, token, lambda client: client.lanes.resume(lane), lane_line, json=as_json)


def clear(
    lane: LaneName,
    *,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """End all that waits in a lane; what runs goes on."""
    from headway.cli.answers import count_of
    from headway.cli.asking import look

    look(
        server,
        token,
        lambda client: client.lanes.clear(lane),
        lambda answer: f"{count_of(answer.cleared, 'waiting run')} ended",
        json=as_json,
    )


def _bound(name: str, text: str) -> int | None:
    from headway.model.errors import InvalidInput

    if text == _NONE:
        return None
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise InvalidInput(f"--{name.replace('_', '-')}", text, "a number from 1 on, or none")
    return int(text)
