"""`headway config check|show` (O-2)."""

import json
from pathlib import Path

import msgspec
import pytest

from headway.cli.config import reading
from headway.cli.serve.places import default_store
from headway.config import places
from tests.unit.cli.calling import Shell, part


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell in a folder without a config, of a user without one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(places, "config_folder", lambda: tmp_path / "user")
    return Shell("")


def write(text: str) -> None:
    Path("headway.toml").write_text(text, encoding="utf-8")


class TestCheck:
    def test_o2_a_good_file_is_told_so(self, shell: Shell) -> None:
        write("[server]\nport = 9000\n[lanes]\nmain = 3\n")
        assert shell.ok("config", "check").lines == ["headway.toml: 2 settings, nothing wrong"]

    def test_o2_no_file_is_fine_too(self, shell: Shell) -> None:
        assert shell.ok("config", "check").lines == ["no file: 0 settings, nothing wrong"]

    def test_o2_every_problem_is_a_line_and_the_exit_code_is_2(self, shell: Shell) -> None:
        write("[server]\nprot = 1\n[queue]\nmode = 'colect'\n")
        called = shell("config", "check")
        assert (called.code, called.out) == (2, "")
        first, second = called.err.splitlines()
        assert first == (
            "headway: headway.toml line 2: 'server.prot' is not a setting; did you mean 'server.port'?"
        )
        assert second.startswith(
            "headway: headway.toml line 4: queue.mode: 'colect' is not allowed"
        )

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("store = 'mysql://x'", "headway.toml line 1: store: 'mysql://x' is not allowed"),
            ("[node]\ntz = 'Mars/Olympus'", "headway.toml line 2: node.tz: "),
            ("[server]\nport", "headway.toml line 2: this is not TOML"),
            (
                "[agents.a]\nrunner = 'command'\ncommand = ['ls', '{txt}']",
                "agents.a.command[1]: 'txt' is not allowed",
            ),
            (
                "[agents.a]\nrunner = 'command'\ncommand = ['ls']\nenvironment = { K = 'env:NOT_SET' }",
                "agents.a.environment.K: 'env:NOT_SET' is not allowed",
            ),
            ("[agents.a]\nrunner = 'tabs'", "agents.a.instances"),
        ],
    )
    def test_o2_what_only_a_start_would_show_is_found(
        self, shell: Shell, text: str, said: str
    ) -> None:
        write(text)
        assert said in shell.refused("config", "check")

    def test_o2_a_file_can_be_named(self, shell: Shell, tmp_path: Path) -> None:
        write("nonsense")
        other = tmp_path / "other.toml"
        other.write_text("")
        assert shell.ok("config", "check", str(other)).lines == [
            f"{other}: 0 settings, nothing wrong"
        ]
        assert "FILE: 'none.toml'" in shell.refused("config", "check", "none.toml")

    @pytest.mark.parametrize("option", ["--config", "-c"])
    def test_o2_a_file_can_be_named_as_serve_takes_it(
        self, shell: Shell, tmp_path: Path, option: str
    ) -> None:
        other = tmp_path / "other.toml"
        other.write_text("")
        assert shell.ok("config", "check", option, str(other)).lines == [
            f"{other}: 0 settings, nothing wrong"
        ]
        assert "--config: 'none.toml'" in shell.refused("config", "check", option, "none.toml")
        both = shell.refused("config", "check", "a.toml", option, str(other))
        assert "left out where FILE is given" in both

    def test_l1_a_lane_that_is_not_there_is_warned_about(self, shell: Shell) -> None:
        write('[agents.m]\nlane = "codign"\n[agents.n]\nlane = "main"\n[lanes]\ncoding = 1\n')
        called = shell("config", "check")
        assert called.code == 0
        assert called.err == (
            "headway: warning: headway.toml line 2: agents.m.lane: there is no lane 'codign', "
            "so its runs go to 'main'; did you mean 'coding'?\n"
        )

    def test_o2_the_environment_is_checked_too_and_odd_names_are_warned_about(
        self, shell: Shell
    ) -> None:
        called = shell("config", "check", HEADWAY_PROT="1")
        assert called.code == 0
        assert called.err == (
            "headway: warning: HEADWAY_PROT in the environment sets nothing; "
            "did you mean HEADWAY_PORT?\n"
        )
        assert shell("config", "check", HEADWAY_PORT="x").code == 2

    def test_o2_json_for_programs(self, shell: Shell) -> None:
        write("[server]\nprot = 1\n")
        called = shell("config", "check", "--json")
        assert called.code == 2
        assert json.loads(called.out) == {
            "file": None,
            "problems": [
                "headway.toml line 2: 'server.prot' is not a setting; did you mean 'server.port'?"
            ],
            "warnings": [],
        }


class TestShow:
    def test_o2_each_setting_says_where_it_comes_from(self, shell: Shell) -> None:
        write('[server]\nport = 9000\n[agents.helper]\nlane = "night"\n[lanes]\nnight = 2\n')
        lines = shell.ok("config", "show", "--set", HEADWAY_LEASE="1m").lines
        assert lines[:2] == ["file: headway.toml", ""]
        assert [tuple(line.split(maxsplit=2)) for line in lines[2:]] == [
            ("setting", "value", "from"),
            ("server.port", "9000", "headway.toml line 2"),
            ("node.lease", '"1m"', "HEADWAY_LEASE"),
            ("lanes.night.width", "2", "headway.toml line 6"),
            ("agents.helper.lane", '"night"', "headway.toml line 4"),
        ]

    def test_o2_defaults_are_shown_and_with_all_also_what_has_no_value(self, shell: Shell) -> None:
        usual = [line.split() for line in shell.ok("config", "show").lines]
        assert ["server.host", '"127.0.0.1"', "default"] in usual
        assert ["store", f'"{default_store()}"', "default"] in usual
        assert "server.requests_per_minute" not in {row[0] for row in usual if row}
        everything = shell.ok("config", "show", "--all").lines
        (row,) = (line for line in everything if line.startswith("server.requests_per_minute"))
        assert row.split()[1:] == ["default", "HEADWAY_REQUESTS_PER_MINUTE", "next", "start"]

    def test_o4_a_password_is_not_shown(self, shell: Shell) -> None:
        shell.store = "postgresql://me:hidden@host/db"
        told = shell.ok("config", "show", "--all")
        assert "postgresql://me:***@host/db" in told.out
        assert "hidden" not in told.out

    def test_o2_json_for_programs(self, shell: Shell, tmp_path: Path) -> None:
        other = tmp_path / "other.toml"
        other.write_text("[server]\nport = 9000\n")
        told = shell.json("config", "show", "--set", "--config", str(other))
        assert part(told, "file") == str(other)
        assert part(told, "settings") == [
            {
                "key": "server.port",
                "value": 9000,
                "source": f"{other} line 2",
                "variable": "HEADWAY_PORT",
                "live": False,
            }
        ]

    def test_o2_wrong_settings_are_refused_all_at_once(self, shell: Shell) -> None:
        write("[server]\nprot = 1\nport = 'x'\n")
        called = shell("config", "show")
        assert (called.code, called.out) == (2, "")
        assert called.err.splitlines()[0] == "headway: 2 settings are wrong:"

    def test_o2_nothing_set_is_said(self, shell: Shell) -> None:
        assert shell.ok("config", "show", "--set").lines[-1] == "everything has its default"


def test_o2_what_only_other_rooms_know_is_checked_where_it_stands(shell: Shell) -> None:
    """Some machines know zones that others do not: a server refuses them, so the check does."""
    write("store = 'sqlite:///x.db'\n[node]\ntz = 'Europe/Paris'\n")
    config = reading.read_config(None)
    assert reading.deeper_problems(config) == []
    settings = msgspec.structs.replace(config.settings, tz="localtime")
    (problem,) = reading.deeper_problems(msgspec.structs.replace(config, settings=settings))
    assert problem.field == "headway.toml line 3: node.tz"
