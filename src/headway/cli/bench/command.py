"""The command line of `headway bench`."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.options import AsJson, ServerUrl, TokenText

if TYPE_CHECKING:
    from headway.cli.bench.figures import Measured
    from headway.client import Client


def bench(
    *,
    tasks: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many to ask for.")] = 1000,
    concurrency: Annotated[
        int, typer.Option(min=1, max=1000, help="How many ask at the same time.")
    ] = 64,
    agent: Annotated[str, typer.Option(help="Who is asked; it should do nothing.")] = "echo",
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Also wait until all are done.")
    ] = True,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Ask a running server for many tasks, and say how fast it takes them and gets them done.

    One client in one process asks: on the same machine it takes its share of
    the processor, so the server alone is faster. Refusals of a full queue are
    asked again and counted; the latency is that of the answer that said yes.
    The tasks are real: they are kept, and run.
    """
    from headway.cli.answers import show
    from headway.cli.asking import ask
    from headway.cli.bench.figures import figure_lines, figures

    async def load(client: "Client") -> "Measured":
        from headway.cli.bench.load import Load
        from headway.runtime.clock import SystemClock

        return await Load(client, SystemClock(), agent, tasks, concurrency).run(wait=wait)

    found = figures(ask(server, token, load))
    show(found, lambda found: figure_lines(found, agent), json=as_json)
