"""Options that the commands of heartbeats share."""

from typing import Annotated

import typer

Agent = Annotated[str, typer.Argument(metavar="AGENT", help="Whose heartbeat.")]
