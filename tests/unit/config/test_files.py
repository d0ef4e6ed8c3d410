"""`headway.toml` (O-2): every key read, and everything wrong in it said at once, with its line."""

import textwrap

import pytest

from headway.config.files import read_file
from headway.config.layers import KeyPath


def said(text: str) -> dict[KeyPath, object]:
    layer = read_file(textwrap.dedent(text), "headway.toml")
    assert layer.problems == []
    return {path: one.value for path, one in layer.said.items()}


def problems(text: str) -> list[str]:
    return [str(problem) for problem in read_file(textwrap.dedent(text), "headway.toml").problems]


def test_o2_sections_are_read_into_their_keys() -> None:
    assert said("""
        store = "sqlite:///work.db"

        [server]
        port = 9000
        cors_origins = ["https://a.example"]

        [log]
        level = "debug"

        [queue]
        mode = "collect"
        debounce = "2s"

        [limits]
        max_queue = 50

        [node]
        lease = "1m"
        """) == {
        ("store",): "sqlite:///work.db",
        ("server", "port"): 9000,
        ("server", "cors_origins"): ("https://a.example",),
        ("log", "level"): "debug",
        ("queue", "mode"): "collect",
        ("queue", "debounce"): 2_000_000,
        ("limits", "max_queue"): 50,
        ("node", "lease"): 60_000_000,
    }


def test_l1_a_lane_is_a_number_or_a_table_and_delegate_is_team() -> None:
    assert said("""
        [lanes]
        main = 4
        delegate = { width = 9, reserve = 2 }

        [lanes.night]
        width = 1
        cluster_limit = 1
        """) == {
        ("lanes", "main", "width"): 4,
        ("lanes", "team", "width"): 9,
        ("lanes", "team", "reserve"): 2,
        ("lanes", "night", "width"): 1,
        ("lanes", "night", "cluster_limit"): 1,
    }


def test_o2_channels_and_agents_go_by_their_names() -> None:
    assert said("""
        [channels.telegram]
        mode = "steer"
        cap = 25

        [agents."Dr. No"]
        weight = 3
        tokens_per_minute = 1000
        timeout = "none"
        """) == {
        ("channels", "telegram", "mode"): "steer",
        ("channels", "telegram", "cap"): 25,
        ("agents", "Dr. No", "weight"): 3,
        ("agents", "Dr. No", "tokens_per_minute"): 1000,
        ("agents", "Dr. No", "timeout"): None,
    }


def test_o2_everything_that_is_wrong_is_said_at_once_with_its_line() -> None:
    assert problems("""\
        prot = 1
        [server]
        port = 99999
        hots = "x"
        [agents."a.b"]
        lanee = "x"
        [channels.telegram]
        mode = "colect"
        [queue]
        debounce = 800
        """) == [
        "headway.toml line 1: 'prot' is not a setting; did you mean 'server.port'?",
        "headway.toml line 3: server.port: 99999 is not allowed; it must be a whole number from 0 to 65535",
        "headway.toml line 4: 'server.hots' is not a setting; did you mean 'server.host'?",
        "headway.toml line 6: 'agents.\"a.b\".lanee' is not a setting; did you mean 'agents.\"a.b\".lane'?",
        (
            "headway.toml line 8: channels.telegram.mode: 'colect' is not allowed; it must be one of: "
            "queue, followup, collect, steer, interrupt, reject (did you mean 'collect'?), or 'none'"
        ),
        (
            "headway.toml line 10: queue.debounce: 800 is not allowed; "
            "it must be a duration such as 500ms, 30s, 10m, 1.5h, 1d or 1h30m"
        ),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serve]\nport = 1", "line 1: 'serve' is not a setting; did you mean 'server'?"),
        ("[server]\nlease = '1m'", "line 2: 'server.lease' is not a setting; did you mean 'node.lease'?"),
        ("[zzz]", "there are: agents, callbacks, channels, lanes, limits, log, node, queue, server, store"),
        ("server = 3", "line 1: server: 3 is not allowed; it must be a table: [server]"),
        ("lanes = 3", "it must be a table: [lanes]"),
        ("[agents]\nbot = 3", "line 2: agents.bot: 3 is not allowed; it must be a table: [agents.bot]"),
        ("[lanes]\nmain = true", "line 2: lanes.main: True is not allowed"),
        ("[lanes]\nmain = -1", "line 2: lanes.main: -1 is not allowed"),
        ("[lanes]\nteam = 1\ndelegate = 2", "line 3: lanes.delegate: 'delegate' is not allowed"),
        ("[[lanes]]\nmain = 1", "line 1: lanes: [{'main': 1}] is not allowed"),
        ("store = 3", "line 1: store: 3 is not allowed; it must be the address of a store"),
        ("[server]\ncors_origins = 'x'", "it must be a list of texts"),
        ("[node]\nthrottle_ratio = 2", "it must be a number over 0, at most 1"),
        ("[agents.a]\nsteerable = 'yes'", "it must be true or false"),
    ],
)  # fmt: skip
def test_o2_each_mistake_has_its_words(text: str, said: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith("headway.toml line ")
    assert said in problem


def test_o2_what_is_not_toml_is_refused_by_its_line_and_not_repeated() -> None:
    (problem,) = problems('[server]\nport = 1\nstore = "postgresql://me:secret@host/db\n')
    assert problem.startswith("headway.toml line 3: this is not TOML: ")
    assert "secret" not in problem


@pytest.mark.parametrize("name", ["", "nul\\u0000", "x" * 513])
@pytest.mark.parametrize("section", ["lanes", "channels", "agents"])
def test_o2_what_nothing_can_be_called_is_refused(section: str, name: str) -> None:
    (problem,) = problems(f'[{section}."{name}"]\n')
    assert problem.startswith(f"headway.toml line 1: {section}.")
    assert "1 to 512 characters" in problem
