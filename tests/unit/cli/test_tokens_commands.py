"""`headway tokens`: made, listed and revoked in the store, and what they show only once (O-4)."""

import re
from pathlib import Path

from tests.unit.cli.calling import Shell, part, shell

__all__ = ["shell"]


def test_o4_a_token_is_shown_once_alone_on_its_line(shell: Shell) -> None:
    made = shell("tokens", "create", "ci", "--scope", "submit", "--agent", "support")
    assert made.code == 0
    assert re.fullmatch(r"hw_[0-9a-z]+_[0-9a-z]{52}\n", made.out)
    assert f"ci (submit) for agent support, for servers on {shell.store}:" in made.err
    secret = made.out.strip().rpartition("_")[2]
    listed = shell.ok("tokens", "list").out
    assert "ci" in listed
    assert secret not in listed
    assert secret not in str(shell.json("tokens", "list"))


def test_o4_programs_get_json(shell: Shell) -> None:
    told = shell.json("tokens", "create", "ops", "--scope", "read", "--scope", "control")
    assert part(told, "scopes") == ["read", "control"]
    assert str(part(told, "token")).startswith("hw_")
    (listed,) = [part(shell.json("tokens", "list"), "tokens", 0)]
    assert (part(listed, "name"), part(listed, "agentId")) == ("ops", None)
    assert part(listed, "expiresAt") is None


def test_o4_a_token_is_revoked_by_name_and_then_unknown(shell: Shell) -> None:
    shell("tokens", "create", "ci")
    assert shell.ok("tokens", "revoke", "ci").out == "token ci is revoked\n"
    listed = shell.ok("tokens", "list").out
    assert listed == f"no tokens in {shell.store}: only this machine may ask a server there\n"
    assert "no token 'ci': there are none in sqlite:" in shell.refused("tokens", "revoke", "ci")
    shell("tokens", "create", "other")
    assert "one of: other" in shell.refused("tokens", "revoke", "ci")


def test_o4_a_name_is_given_once(shell: Shell) -> None:
    shell("tokens", "create", "ci")
    assert "no other token has" in shell.refused("tokens", "create", "ci")


def test_a_bad_scope_and_a_bad_length_are_refused(shell: Shell) -> None:
    assert shell("tokens", "create", "a", "--scope", "all").code == 2
    assert "expires" in shell.refused("tokens", "create", "a", "--expires", "soon")


def test_the_store_is_that_of_a_server_which_names_none(shell: Shell, tmp_path: Path) -> None:
    home = {"HEADWAY_STORE": "", "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    assert "headway.db" in shell("tokens", "create", "ci", **home).err
    assert "ci" in shell.ok("tokens", "list", **home).out
    assert f"store     {tmp_path}/headway/headway.db" in shell.ok("db", "status", **home).out
    assert "up to date" in shell.ok("db", "migrate", **home).out


def test_d8_looking_at_a_store_that_is_not_there_makes_none(shell: Shell, tmp_path: Path) -> None:
    data = tmp_path / "data"
    home = {"HEADWAY_STORE": "", "XDG_DATA_HOME": str(data), "XDG_CONFIG_HOME": str(data)}
    assert shell("db", "status", **home).code == 2
    assert shell("tokens", "list", **home).code == 2
    assert not data.exists()
    typo = tmp_path / "typo.db"
    told = shell.refused("tokens", "list", "--store", f"sqlite:///{typo}")
    assert f"{typo}: there is no such file" in told
    assert not typo.exists()
