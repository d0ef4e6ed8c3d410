"""Options that the commands of tasks share."""

from typing import Annotated

import typer

TaskId = Annotated[str, typer.Argument(metavar="TASK", help="Its id.")]
Callback = Annotated[
    str | None,
    typer.Option(metavar="URL", help="This address is told how it ended, with a signed notice."),
]
