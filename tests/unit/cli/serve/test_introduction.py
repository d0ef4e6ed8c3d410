"""What a server says of who may ask it."""

from pathlib import Path

import pytest

from headway.cli.serve.introduction import tokens_command
from headway.cli.serve.places import default_store


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HEADWAY_STORE", "HEADWAY_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", f"{tmp_path}/data")
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{tmp_path}/config")


def test_o4_how_to_make_a_token_needs_no_store_where_that_is_the_usual_one() -> None:
    assert tokens_command("NAME", default_store()) == "headway tokens create NAME"


def test_o4_another_store_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = default_store(demo=True)
    assert tokens_command("NAME", demo) == f"headway tokens create NAME --store {demo}"
    assert not (tmp_path / "data").exists(), "nothing is made by saying it"
    monkeypatch.setenv("HEADWAY_STORE", demo)
    assert tokens_command("NAME", demo) == "headway tokens create NAME"


def test_a_config_that_cannot_be_read_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "headway.toml").write_text("nonsense", encoding="utf-8")
    assert "--store sqlite:///x.db" in tokens_command("NAME", "sqlite:///x.db")
