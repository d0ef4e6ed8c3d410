"""The config of a server (O-2): file < environment < flags, and each key knows where it comes from."""

from pathlib import Path

import msgspec
import pytest

from headway.config import Config, ConfigRefused, load, places
from headway.model.errors import InvalidInput
from headway.model.run import QueueOptions
from headway.model.server import LogSettings, ServerSettings
from headway.model.settings import AgentSettings, Budget, LaneSettings, Settings
from headway.model.time import MINUTE, SECOND
from headway.model.words import Mode


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a config, and a user without one."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(places, "config_folder", lambda: tmp_path / "user")
    return here


def config_of(text: str, environment: dict[str, str] | None = None, **flags: object) -> Config:
    Path("headway.toml").write_text(text, encoding="utf-8")
    return load(
        None, environment or {}, {name.replace("__", "."): flag for name, flag in flags.items()}
    )


def test_o2_nothing_said_gives_the_defaults() -> None:
    assert load(None, {}) == Config(Settings(), ServerSettings(), "", {})


def test_o2_flags_win_over_the_environment_and_that_over_the_file() -> None:
    text = '[server]\nhost = "file"\nport = 1\nbody_limit = 11\n'
    config = config_of(
        text, {"HEADWAY_PORT": "2", "HEADWAY_HOST": "environment"}, server__port="3", log__file=None
    )
    assert config.server == ServerSettings(host="environment", port=3, body_limit=11)
    assert config.sources == {
        "server.host": "HEADWAY_HOST",
        "server.port": "--port",
        "server.body_limit": "headway.toml line 4",
    }
    assert config.file == "headway.toml"


def test_o2_all_sections_become_values() -> None:
    config = config_of("""
        store = "sqlite:///work.db"
        [log]
        file = "x.log"
        [lanes]
        main = 4
        night = { width = 2, runs_per_minute = 9 }
        [channels.telegram]
        mode = "collect"
        debounce = "2s"
        [agents.helper]
        weight = 3
        tokens_per_minute = 100
        [agents.quiet]
        [node]
        ageing = "1m"
        """)
    usual = Settings()
    assert config.store == "sqlite:///work.db"
    assert config.server == ServerSettings(log=LogSettings(file="x.log"))
    assert config.settings == msgspec.structs.replace(
        usual,
        lanes={
            **usual.lanes,
            "main": LaneSettings(4),
            "night": LaneSettings(2, budget=Budget(runs_per_minute=9)),
        },
        channels={"telegram": QueueOptions(mode=Mode.COLLECT, debounce=2 * SECOND)},
        agents={"helper": AgentSettings(weight=3, budget=Budget(tokens_per_minute=100))},
        ageing=MINUTE,
    )


def test_l1_the_environment_changes_a_lanes_width_and_leaves_the_rest_of_it() -> None:
    config = config_of("[lanes.main]\nwidth = 9\nreserve = 2\n", {"HEADWAY_LANE_MAIN": "5"})
    assert config.settings.lanes["main"] == LaneSettings(5, 2)  # type: ignore[index]
    assert config.sources["lanes.main.width"] == "HEADWAY_LANE_MAIN"
    assert config.sources["lanes.main.reserve"] == "headway.toml line 3"


def test_x5_a_reserve_wider_than_its_lane_is_refused_where_it_stands() -> None:
    with pytest.raises(InvalidInput, match="at most the lane's width, 1") as refused:
        config_of("[lanes.main]\nreserve = 2\n", {"HEADWAY_LANE_MAIN": "1"})
    assert refused.value.field == "headway.toml line 2: lanes.main.reserve"


def test_l1_a_new_lane_needs_a_width() -> None:
    with pytest.raises(InvalidInput, match=r"line 2: lanes.night: .* it is a new lane"):
        config_of("[lanes.night]\nreserve = 2\n")


def test_o2_problems_of_all_layers_come_together() -> None:
    with pytest.raises(ConfigRefused) as refused:
        config_of("[server]\nprot = 1\n", {"HEADWAY_LOG_LEVEL": "loud"}, server__port="x")
    assert [str(problem).partition(":")[0] for problem in refused.value.problems] == [
        "headway.toml line 2",
        "HEADWAY_LOG_LEVEL",
        "--port",
    ]
    assert str(refused.value).startswith("3 settings are wrong:\n  headway.toml line 2: ")


def test_o2_odd_variables_are_warned_about_not_refused() -> None:
    assert load(None, {"HEADWAY_PROT": "1"}).warnings == (
        "HEADWAY_PROT in the environment sets nothing; did you mean HEADWAY_PORT?",
    )


class TestFinding:
    """Which file is read."""

    def test_o2_the_users_file_counts_where_this_folder_has_none(self, tmp_path: Path) -> None:
        user = tmp_path / "user" / "headway.toml"
        user.parent.mkdir()
        user.write_text("[server]\nport = 1\n")
        assert load(None, {}).server.port == 1
        assert config_of("[server]\nport = 2\n").server.port == 2

    def test_o2_a_named_file_counts_alone_and_a_flag_names_over_a_variable(
        self, tmp_path: Path
    ) -> None:
        Path("headway.toml").write_text("[server]\nport = 1\nhost = 'x'\n")
        for number in ("2", "3"):
            (tmp_path / f"{number}.toml").write_text(f"[server]\nport = {number}\n")
        environment = {"HEADWAY_CONFIG": str(tmp_path / "2.toml")}
        assert load(None, environment).server == ServerSettings(port=2)
        assert load(str(tmp_path / "3.toml"), environment).server == ServerSettings(port=3)

    @pytest.mark.parametrize(
        ("path", "environment", "field"),
        [("no.toml", {}, "--config"), (None, {"HEADWAY_CONFIG": "no.toml"}, "HEADWAY_CONFIG")],
    )
    def test_o2_a_named_file_that_is_missing_is_refused(
        self, path: str | None, environment: dict[str, str], field: str
    ) -> None:
        with pytest.raises(InvalidInput) as refused:
            load(path, environment)
        assert refused.value.field == field

    @pytest.mark.parametrize(
        ("content", "said"),
        [(b"\xff\xfe", "text in UTF-8"), (b"#" * (1024 * 1024 + 1), "at most 1048576 bytes")],
    )
    def test_o2_a_file_that_is_no_text_is_refused(self, content: bytes, said: str) -> None:
        Path("headway.toml").write_bytes(content)
        with pytest.raises(InvalidInput, match=said):
            load(None, {})

    def test_a_byte_order_mark_is_no_part_of_the_text(self) -> None:
        Path("headway.toml").write_bytes(b"\xef\xbb\xbf[server]\nport = 5\n")
        assert load(None, {}).server.port == 5


@pytest.mark.parametrize("named", ["x" * 5_000, "~nobody-of-this-name/headway.toml"])
def test_o2_a_path_that_no_file_can_have_is_refused_by_name(named: str) -> None:
    with pytest.raises(InvalidInput, match=r"--config: .* must be the path of a config file"):
        load(named, {})
    with pytest.raises(InvalidInput, match="HEADWAY_CONFIG: "):
        load(None, {"HEADWAY_CONFIG": named})
