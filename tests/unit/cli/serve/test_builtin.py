"""What a server has that was given no agents, and where it keeps its data."""

import asyncio
from pathlib import Path

import pytest

from headway import Headway, StoreRefused
from headway.cli.serve.builtin import add_commands, add_echo
from headway.cli.serve.places import default_store, make_data_folder


def test_echo_answers_what_it_is_told() -> None:
    async def story() -> None:
        hw = Headway("memory://")
        add_echo(hw)
        async with hw:
            assert await hw.send("echo", "hello") == "hello"
            outcome = await (await hw.submit("echo", task={"action": "click", "ref": "e1"})).wait()
            assert outcome.text == "click"
            assert outcome.reply is not None
            assert isinstance(outcome.reply.data, dict)
            assert outcome.reply.data["ref"] == "e1"

    asyncio.run(story())


def test_a_users_own_command_agent_is_left_alone() -> None:
    hw = Headway("memory://")
    hw.commands("command", weight=3)
    add_commands(hw)
    assert hw.agents == ("command",)


def test_d2_the_default_store_is_a_file_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_store() == f"sqlite:///{tmp_path}/headway/headway.db"
    assert default_store(demo=True) == f"sqlite:///{tmp_path}/headway/demo.db"
    assert not (tmp_path / "headway").exists(), "to name it makes nothing"
    assert make_data_folder().stat().st_mode & 0o777 == 0o700
    make_data_folder()


def test_a_data_folder_that_cannot_be_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "headway").write_text("a file is in the way")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(StoreRefused, match="--store"):
        make_data_folder()
