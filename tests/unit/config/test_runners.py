"""Agents that are no functions of a program are said in the file: how each is run (O-2, W-1, T-3)."""

from pathlib import Path

import pytest

from headway.config import load, shown
from headway.model.errors import Refused
from headway.model.run import AgentName
from headway.model.runner import ChatSpec, CommandSpec, HttpSpec, PaneSpec, TabsSpec
from headway.model.time import SECOND

ALL = """
[agents.coder]
runner = "command"
command = ["claude", "-p", "{text}"]
folder = "/work"
environment = { LANG = "C", KEY = "env:CODER_KEY" }
resume = ["claude", "--resume", "{session_uuid}", "-p", "{text}"]
grace = "3s"
weight = 2

[agents.pane]
runner = "tmux"
command = ["vim"]

[agents.hook]
runner = "http"
url = "http://127.0.0.1:9000/{agent}"
body = { said = "{text}", n = 1, all = ["{params}"] }
token = "secret words"

[agents.browser]
runner = "tabs"
instances = { one = "http://127.0.0.1:9867" }
tokens = { "http://127.0.0.1:9867" = "env:TAB_TOKEN" }

[agents.model]
runner = "chat"
url = "http://127.0.0.1:11434/v1"
model = "small"
stream = false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "headway.toml"


def test_w1_each_kind_of_runner_can_be_said(file: Path) -> None:
    file.write_text(ALL)
    settings = load(str(file), {}).settings
    runners = settings.runners
    coder = runners[AgentName("coder")]
    assert coder == CommandSpec(
        command=("claude", "-p", "{text}"),
        folder="/work",
        environment={"LANG": "C", "KEY": "env:CODER_KEY"},
        resume=("claude", "--resume", "{session_uuid}", "-p", "{text}"),
        grace=3 * SECOND,
    )
    assert settings.agents[AgentName("coder")].weight == 2
    assert isinstance(runners[AgentName("pane")], PaneSpec)
    hook = runners[AgentName("hook")]
    assert isinstance(hook, HttpSpec)
    assert hook.body == {"said": "{text}", "n": 1, "all": ["{params}"]}
    browser = runners[AgentName("browser")]
    assert isinstance(browser, TabsSpec)
    assert browser.instances == {"one": "http://127.0.0.1:9867"}
    model = runners[AgentName("model")]
    assert isinstance(model, ChatSpec)
    assert not model.stream


def test_o4_secrets_are_not_shown_and_names_of_variables_are(file: Path) -> None:
    file.write_text(ALL)
    values = {one.key: one.value for one in shown(load(str(file), {}))}
    assert values["agents.hook.token"] == "***"
    assert values["agents.coder.environment"] == {"LANG": "***", "KEY": "env:CODER_KEY"}
    assert values["agents.coder.runner"] == "command"
    assert values["agents.coder.command"] == ["claude", "-p", "{text}"]
    assert "agents.coder.url" not in values


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('runner = "comand"', "line 2: agents.a.runner: 'comand'"),
        ('runner = "comand"', "did you mean 'command'?"),
        ('url = "http://h"', "line 2: agents.a.url"),
        ('runner = "chat"\nurl = "http://h/v1"', "agents.a.model"),
        (
            'runner = "chat"\nurl = "http://h/v1"\nmodel = "m"\nfolder = "f"',
            "line 5: agents.a.folder",
        ),
        ('runner = "command"\ncommand = "ls -l"', "line 3: agents.a.command"),
        ('runner = "command"\nenvironment = { A = 1 }', "line 3: agents.a.environment"),
        ('runner = "http"\nurl = "u"\nbody = 2020-01-01\ntokne = "x"', "did you mean"),
    ],
)
def test_o2_what_is_wrong_is_refused_by_its_place(file: Path, written: str, said: str) -> None:
    file.write_text(f"[agents.a]\n{written}\n")
    with pytest.raises(Refused) as refused:
        load(str(file), {})
    assert said in str(refused.value)


@pytest.mark.parametrize("written", ['token = "hunter2"', 'runner = "command"\ntoken = "hunter2"'])
def test_o4_a_secret_in_the_wrong_place_is_refused_without_being_shown(
    file: Path, written: str
) -> None:
    file.write_text(f"[agents.a]\n{written}\n")
    with pytest.raises(Refused, match=r"agents\.a\.token") as refused:
        load(str(file), {})
    assert "hunter2" not in str(refused.value)
