"""`headway health` and `headway reload`: the server itself, for people, probes and scripts."""

from typing import TYPE_CHECKING

import typer

from headway.cli.options import AsJson, ServerUrl, TokenText

if TYPE_CHECKING:
    from headway.wire.config import ReloadAnswer
    from headway.wire.health import Readiness


def health(*, server: ServerUrl = None, token: TokenText = None, as_json: AsJson = False) -> None:
    """Say whether the server may be asked just now; if not, why. Needs no token."""
    from headway.cli.asking import look
    from headway.cli.exits import UNAVAILABLE

    found = look(
        server, token, lambda client: client.server.readiness(), readiness_line, json=as_json
    )
    if found is not None and not found.ready:
        raise typer.Exit(UNAVAILABLE)


def reload(*, server: ServerUrl = None, token: TokenText = None, as_json: AsJson = False) -> None:
    """Let the server read its config again, as SIGHUP does, and say what has changed."""
    from headway.cli.asking import look

    look(server, token, lambda client: client.server.reload(), reload_lines, json=as_json)


def readiness_line(found: "Readiness") -> str:
    return "ready" if found.ready else f"not ready: {'; '.join(found.reasons)}"


def reload_lines(done: "ReloadAnswer") -> str:
    lines = [f"changed: {name}" for name in done.changed]
    lines += [f"changes with the next start: {name}" for name in done.needs_restart]
    return "\n".join(lines or ["nothing has changed"])
