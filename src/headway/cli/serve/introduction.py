"""What a server says when it is ready: where it listens and what it uses."""

from collections.abc import Sequence
from contextlib import suppress
from shlex import quote

from headway.cli.jobs.options import COMMAND_AGENT
from headway.cli.opening import servers_store
from headway.cli.serve.addresses import is_local
from headway.config.secrets import without_password
from headway.facade import Headway
from headway.model.errors import HeadwayError
from headway.model.server import ServerSettings
from headway.wiring import MEMORY


def introduction(
    headway: Headway, url: str, server: ServerSettings, file: str, tokens: int
) -> Sequence[str]:
    lanes = ", ".join(f"{name} {lane.width}" for name, lane in headway.lanes().items())
    lines = [
        f"headway listens on {url} (API: {url}/docs)",
        f"  node    {headway.node} ({headway.name})",
        f"  store   {_store(headway.store)}",
        f"  agents  {', '.join(sorted(headway.agents)) or 'none here'}",
        f"  lanes   {lanes}",
        f"  access  {_access(server.host, tokens, headway.store)}",
    ]
    if file:
        lines.append(f"  config  {file}")
    if server.log.file:
        lines.append(f"  log     stderr and {server.log.file}")
    if COMMAND_AGENT in headway.agents:
        lines.append(
            f"  note    agent {COMMAND_AGENT!r} runs the commands of jobs: "
            "who may add jobs here runs programs as you (--no-commands)"
        )
    return lines


def _store(url: str) -> str:
    if url == MEMORY:
        return "this process's memory: nothing is kept"
    return without_password(url)


def _access(host: str, tokens: int, store: str) -> str:
    if tokens:
        count = f"{tokens} token{'' if tokens == 1 else 's'}"
        return count if is_local(host) else f"{count}; other machines reach it, too ({host})"
    where = "this machine only" if is_local(host) else "nobody but this machine"
    how = "" if store == MEMORY else f" ({tokens_command('NAME', store)})"
    return f"{where}, as there are no tokens{how}"


def tokens_command(words: str, store: str) -> str:
    """How to make a token in this store; it is named where it is not the one that would be taken."""
    usual = ""
    with suppress(HeadwayError):
        usual = servers_store(None, writes=False)
    where = "" if store == usual else f" --store {quote(without_password(store))}"
    return f"headway tokens create {words}{where}"
