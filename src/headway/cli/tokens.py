"""`headway tokens`: who may ask a server for what (O-4). They are kept in the store, so that is asked."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import EXIT_CODES, errors_told
from headway.cli.options import AsJson, ServersStore
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


@tokens.command("create", epilog=EXIT_CODES)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What you call it; unique.")],
    *,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            metavar="SCOPE",
            help="read, submit, control or admin; each allows those before it too (submit).",
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="The only agent that it sees and touches.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="DURATION", help="It ends after so long: 30d.")
    ] = None,
    store: ServersStore = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown once, and can never be read again.

    read: look at everything. submit: also ask for work and cancel it.
    control: also lanes, sessions, jobs, heartbeats. admin: also what makes the
    server run programs. Once there is a token, nobody gets in without one.

    \b
    export HEADWAY_TOKEN=$(headway tokens create laptop --scope admin)
    """
    from headway.cli.opening import servers_store
    from headway.config.secrets import without_password
    from headway.wiring import run

    with errors_told():
        url = servers_store(store)
        token, secret = run(_create(url, name, scope or [Scope.SUBMIT], agent, expires))
    if as_json:
        from headway.cli.answers import as_json as json_of

        print_all(json_of({"token": secret, **token_data(token)}))
        return
    print_all(secret)
    if sys.stderr.isatty() or not sys.stdout.isatty():
        bound = f" for agent {token.agent}" if token.agent else ""
        typer.echo(
            f"token {token.name} ({', '.join(token.scopes)}){bound}, for servers on "
            f"{without_password(url)}: keep it, it is not shown again",
            err=True,
        )


@tokens.command("list", epilog=EXIT_CODES)
def list_tokens(*, store: ServersStore = None, as_json: AsJson = False) -> None:
    """List the tokens that were not revoked; never what their bearers show."""
    from headway.cli.answers import as_json as json_of
    from headway.cli.opening import servers_store, wall_now
    from headway.config.secrets import without_password
    from headway.wiring import run

    with errors_told():
        url = servers_store(store, writes=False)
        found = run(_list(url))
    if as_json:
        print_all(json_of({"tokens": [token_data(token) for token in found]}))
    else:
        print_all(tokens_table(found, wall_now(), without_password(url)))


@tokens.command("revoke", epilog=EXIT_CODES)
def revoke(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="Its name or its id.")],
    *,
    store: ServersStore = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token: servers refuse it within seconds.

    After the last one is gone, servers answer this machine alone, to everybody on it.
    """
    from headway.cli.answers import as_json as json_of
    from headway.cli.opening import servers_store
    from headway.config.secrets import without_password
    from headway.model.errors import Refused, UnknownName
    from headway.wiring import run

    with errors_told():
        url = servers_store(store)
        if not run(_revoke(url, token)):
            known = [one.name for one in run(_list(url))]
            if known:
                raise UnknownName("TOKEN", token, known)
            raise Refused(f"no token {token!r}: there are none in {without_password(url)}")
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


def tokens_table(found: "Sequence[Token]", now: "Instant", store: str) -> str:
    from headway.cli.tables import table
    from headway.model.time import instant_text

    if not found:
        return f"no tokens in {store}: only this machine may ask a server there"
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


async def _create(
    url: str, name: str, scopes: list[Scope], agent: str | None, expires: str | None
) -> "tuple[Token, str]":
    from headway.cli.opening import asking

    async with asking(url) as headway:
        return await headway.tokens.create(name, scopes, agent=agent, expires=expires)


async def _list(url: str) -> "tuple[Token, ...]":
    from headway.cli.opening import reading

    async with reading(url) as store:
        return tuple(await store.tokens())


async def _revoke(url: str, token: str) -> bool:
    from headway.cli.opening import asking

    async with asking(url) as headway:
        return await headway.tokens.revoke(token)
