"""Options that the commands of tasks share."""

from typing import Annotated

import typer

TaskId = Annotated[str, typer.Argument(metavar="TASK", help="Its id.")]
