"""A worker goes by the same config as a server (O-2)."""

from pathlib import Path

import pytest

from headway import Headway
from headway.cli.worker.configuring import configure, read
from headway.config import places
from headway.model.run import AgentName, LaneName
from headway.model.time import SECOND

FILE = """\
store = "sqlite:///from-the-file.db"

[node]
drain_grace = "7s"

[lanes]
coding = 2

[agents.coder]
runner = "command"
command = ["true"]
lane = "coding"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(places, "config_folder", lambda: tmp_path / "user")
    monkeypatch.delenv("HEADWAY_STORE", raising=False)
    return tmp_path


def test_o2_the_file_of_the_folder_is_read(folder: Path) -> None:
    (folder / "headway.toml").write_text(FILE)
    hw = Headway("memory://")
    configure(hw, read(None, {}), None)
    assert hw.store == "sqlite:///from-the-file.db"
    assert hw.agents == ("coder",)
    assert hw.settings.lanes[LaneName("coding")].width == 2
    assert hw.settings.agents[AgentName("coder")].lane == "coding"
    assert hw.settings.drain_grace == 7 * SECOND


def test_o2_a_store_that_code_or_the_option_names_wins_and_so_does_a_flag(folder: Path) -> None:
    (folder / "other.toml").write_text(FILE)
    by_code, by_option = Headway("sqlite:///code.db"), Headway("sqlite:///code.db")
    configure(by_code, read("other.toml", {}), None)
    configure(by_option, read("other.toml", {"node.drain_grace": "9s"}), "sqlite:///option.db")
    assert (by_code.store, by_option.store) == ("sqlite:///code.db", "sqlite:///option.db")
    assert by_option.settings.drain_grace == 9 * SECOND


def test_o2_odd_names_are_warned_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWAY_LEESE", "3s")
    read(None, {})
    assert "did you mean HEADWAY_LEASE?" in capsys.readouterr().err
