"""`headway tokens`: who may ask a server for what (O-4). They are kept in the store, so that is asked."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import EXIT_CODES, errors_told
from headway.cli.options import AsJson
from headway.cli.printing import print_all
from headway.model.words import Scope

if TYPE_CHECKING:
    from headway.model.time import Instant
    from headway.model.token import Token

tokens = typer.Typer(
    name="tokens",
    help="Tokens: who may ask a server for what. Without any, only this machine may.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)
_Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="The server's store (HEADWAY_STORE, or that of a server which names none).",
        show_default=False,
    ),
]


@tokens.command("create", epilog=EXIT_CODES)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What you call it; unique.")],
    *,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="What it allows, each with those before it (submit)."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="The only agent that it sees and touches.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="DURATION", help="It ends after so long: 30d.")
    ] = None,
    store: _Store = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown once, and can never be read again.

    read: look at everything. submit: also ask for work and cancel it.
    control: also lanes, sessions, jobs, heartbeats. admin: also what makes the
    server run programs. Once there is a token, nobody gets in without one.

    \b
    export HEADWAY_TOKEN=$(headway tokens create laptop --scope admin)
    """
    from headway.wiring import run

    with errors_told():
        token, secret = run(_create(_url(store), name, scope or [Scope.SUBMIT], agent, expires))
    if as_json:
        from headway.cli.answers import as_json as json_of

        print_all(json_of({"token": secret, **token_data(token)}))
        return
    print_all(secret)
    if sys.stderr.isatty() or not sys.stdout.isatty():
        bound = f" for agent {token.agent}" if token.agent else ""
        typer.echo(
            f"token {token.name} ({', '.join(token.scopes)}){bound}: keep it, it is not shown again",
            err=True,
        )


@tokens.command("list", epilog=EXIT_CODES)
def list_tokens(*, store: _Store = None, as_json: AsJson = False) -> None:
    """List the tokens that were not revoked; never what their bearers show."""
    from headway.cli.answers import as_json as json_of
    from headway.cli.opening import wall_now
    from headway.wiring import run

    with errors_told():
        found = run(_list(_url(store)))
    if as_json:
        print_all(json_of({"tokens": [token_data(token) for token in found]}))
    else:
        print_all(tokens_table(found, wall_now()))


@tokens.command("revoke", epilog=EXIT_CODES)
def revoke(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="Its name or its id.")],
    *,
    store: _Store = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token: servers refuse it within seconds.

    After the last one is gone, servers answer this machine alone, to everybody on it.
    """
    from headway.cli.answers import as_json as json_of
    from headway.model.errors import UnknownName
    from headway.wiring import run

    with errors_told():
        url = _url(store)
        if not run(_revoke(url, token)):
            raise UnknownName("TOKEN", token, [known.name for known in run(_list(url))])
    print_all(json_of({"revoked": token}) if as_json else f"token {token} is revoked")


def token_data(token: "Token") -> dict[str, object]:
    """A token for programs; what its bearer shows is not known here."""
    from headway.wire.base import maybe_moment, moment

    return {
        "id": token.id,
        "name": token.name,
        "scopes": token.scopes,
        "agentId": token.agent,
        "createdAt": moment(token.created_at),
        "expiresAt": maybe_moment(token.expires_at),
    }


def tokens_table(found: "Sequence[Token]", now: "Instant") -> str:
    from headway.cli.tables import table
    from headway.model.time import instant_text

    if not found:
        return "no tokens: only this machine may ask the server"
    head = ("token", "id", "scopes", "agent", "made", "ends")
    rows = [
        (
            token.name,
            token.id,
            ", ".join(token.scopes),
            token.agent or "-",
            instant_text(token.created_at),
            _end(token, now),
        )
        for token in found
    ]
    return table(head, rows)


def _end(token: "Token", now: "Instant") -> str:
    from headway.model.time import instant_text

    if token.expires_at is None:
        return "-"
    return "has ended" if token.expires_at <= now else instant_text(token.expires_at)


def _url(store: str | None) -> str:
    """The store that a server would use: the one that is named or configured, else that in the data folder."""
    import os

    from headway.cli.config.reading import read_config
    from headway.cli.serve.places import default_store, make_data_folder

    named = store or os.environ.get("HEADWAY_STORE") or read_config(None).store
    if named:
        return named
    make_data_folder()
    return default_store()


async def _create(
    url: str, name: str, scopes: list[Scope], agent: str | None, expires: str | None
) -> "tuple[Token, str]":
    from headway.cli.opening import asking

    async with asking(url) as headway:
        return await headway.tokens.create(name, scopes, agent=agent, expires=expires)


async def _list(url: str) -> "tuple[Token, ...]":
    from headway.cli.opening import asking

    async with asking(url) as headway:
        return await headway.tokens.list()


async def _revoke(url: str, token: str) -> bool:
    from headway.cli.opening import asking

    async with asking(url) as headway:
        return await headway.tokens.revoke(token)
