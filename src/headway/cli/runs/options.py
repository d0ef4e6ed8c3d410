"""Options that the commands of runs share."""

from typing import Annotated

import typer

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Its id.")]
