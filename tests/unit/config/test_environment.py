"""Settings from the environment (L-1, F-1, O-2): applied by name, refused by name."""

import pytest

from headway.config import MAX_WIDTH, Key, load, settings_from
from headway.config.environment import odd_variables, read_environment
from headway.config.keys import KEYS, VARIABLES
from headway.model.errors import InvalidInput
from headway.model.settings import Limits, QueueSettings, Settings
from headway.model.time import HOUR, MINUTE, SECOND
from headway.model.words import Mode


def widths(**environment: str) -> dict[str, int]:
    return {str(name): lane.width for name, lane in settings_from(environment).lanes.items()}


def test_l1_an_empty_environment_gives_the_defaults() -> None:
    assert settings_from({"PATH": "x", "HEADWAY": "1"}) == Settings()


def test_l1_a_variable_sets_the_width_of_its_lane_only() -> None:
    assert widths(HEADWAY_LANE_CRON="1") == {"main": 30, "subagent": 50, "team": 100, "cron": 1}


def test_l1_delegate_is_team() -> None:
    assert widths(HEADWAY_LANE_DELEGATE="7") == {
        "main": 30,
        "subagent": 50,
        "team": 7,
        "cron": 30,
    }


def test_l1_a_new_name_makes_a_lane_and_0_pauses_one() -> None:
    assert widths(HEADWAY_LANE_NIGHT="4", HEADWAY_LANE_MAIN="0") == {
        "main": 0,
        "subagent": 50,
        "team": 100,
        "cron": 30,
        "night": 4,
    }


def test_f1_max_inflight_leaves_the_other_limits_alone() -> None:
    assert settings_from({"HEADWAY_MAX_INFLIGHT": "5"}).limits == Limits(max_inflight=5)


@pytest.mark.parametrize("name", ["HEADWAY_LANE_MAIN", "HEADWAY_MAX_INFLIGHT"])
@pytest.mark.parametrize(
    "value",
    [
        "",
        "-1",
        "+1",
        "1.5",
        "many",
        "1_0",
        " 1",
        "\u0663",
        "\u00b2",
        str(MAX_WIDTH + 1),
        "9" * 5000,
    ],
)
def test_o2_a_bad_value_is_refused_by_the_name_of_its_variable(name: str, value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        settings_from({name: value})
    assert refused.value.field == name
    assert "whole number from 0 to" in refused.value.allowed


def test_o2_a_lane_needs_a_name() -> None:
    with pytest.raises(InvalidInput, match="HEADWAY_LANE_"):
        settings_from({"HEADWAY_LANE_": "5"})


def test_o2_sections_are_part_of_a_name_but_for_node_and_server() -> None:
    settings = settings_from(
        {
            "HEADWAY_QUEUE_MODE": "collect",
            "HEADWAY_LIMITS_MAX_QUEUE": "7",
            "HEADWAY_LEASE": "1h",
            "HEADWAY_AGEING": "1m",
            "HEADWAY_THROTTLE_RATIO": "0.5",
        }
    )
    assert settings == Settings(
        queue=QueueSettings(mode=Mode.COLLECT),
        limits=Limits(max_queue=7),
        lease=HOUR,
        ageing=MINUTE,
        throttle_ratio=0.5,
    )


def test_o2_a_library_hears_nothing_of_a_server() -> None:
    """`Headway()` has no port: what is wrong with one is not its business."""
    assert settings_from({"HEADWAY_PORT": "many", "HEADWAY_LOG_LEVEL": "loud"}) == Settings()


def test_o2_an_empty_text_is_not_set() -> None:
    assert settings_from({"HEADWAY_TZ": ""}).tz == "UTC"


def test_o2_a_time_zone_is_checked() -> None:
    with pytest.raises(InvalidInput, match=r"HEADWAY_TZ.*did you mean 'Europe/Paris'"):
        settings_from({"HEADWAY_TZ": "Europe/Pariss"})


@pytest.mark.parametrize("variable", ["HEADWAY_LEASE", "HEADWAY_RENEW_EVERY", "HEADWAY_POLL_EVERY"])
def test_o2_what_is_done_again_and_again_is_not_done_all_the_time(variable: str) -> None:
    with pytest.raises(InvalidInput, match=rf"{variable}.*at least 1ms"):
        settings_from({variable: "0"})


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("HEADWAY_LEASE", "4s", "longer than renew_every, which is 5s"),
        ("HEADWAY_RENEW_EVERY", "30s", "shorter than the lease, which is 30s"),
    ],
)
def test_d3_a_lease_that_is_renewed_too_late_is_refused(
    variable: str, value: str, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        settings_from({variable: value})
    assert refused.value.field == variable


def test_o2_server_and_log_come_from_the_environment_too() -> None:
    config = load(
        None,
        {
            "HEADWAY_PORT": "9000",
            "HEADWAY_CORS_ORIGINS": "https://a.example, https://b.example",
            "HEADWAY_LOG_LEVEL": "debug",
            "HEADWAY_REQUESTS_PER_MINUTE": "60",
            "HEADWAY_SEND_WITHIN": "2s",
        },
    )
    assert config.server.port == 9000
    assert config.server.cors_origins == ("https://a.example", "https://b.example")
    assert config.server.log.level == "debug"
    assert config.server.requests_per_minute == 60
    assert config.server.send_within == 2 * SECOND
    assert config.sources["server.port"] == "HEADWAY_PORT"


def test_o2_database_is_another_name_of_the_store() -> None:
    assert load(None, {"HEADWAY_DATABASE": "sqlite:///a.db"}).store == "sqlite:///a.db"
    both = {"HEADWAY_DATABASE": "sqlite:///a.db", "HEADWAY_STORE": "sqlite:///b.db"}
    for environment in (both, dict(reversed(both.items()))):
        assert load(None, environment).store == "sqlite:///b.db"


def test_o2_an_odd_variable_is_warned_about_with_a_suggestion() -> None:
    assert list(odd_variables({"HEADWAY_PROT": "1", "HEADWAYS": "", "HEADWAY_ZZZ": ""})) == [
        "HEADWAY_PROT in the environment sets nothing; did you mean HEADWAY_PORT?",
        "HEADWAY_ZZZ in the environment sets nothing",
    ]


@pytest.mark.parametrize(
    "variable",
    ["SERVER", "TOKEN", "CONFIG", "RUN_ID", "SESSION", "FENCE", "TEST_POSTGRES", "LANE_X", "STORE"],
)
def test_o2_variables_of_other_uses_are_known(variable: str) -> None:
    assert list(odd_variables({f"HEADWAY_{variable}": "1"})) == []


def test_o2_each_key_has_a_variable_of_its_own() -> None:
    """All but the store have one name, and no two have the same."""
    assert len({key.variable for key in KEYS.values()}) == len(KEYS) == len(VARIABLES) - 1


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.dotted)
def test_o2_each_default_can_be_said_in_the_environment(key: Key) -> None:
    told = key.kind.tell(key.default)
    written = ",".join(map(str, told)) if isinstance(told, list) else str(told).lower()
    if written == "none":
        assert key.default is None
    layer = read_environment({key.variable: written if key.name != "tz" else "UTC"})
    assert layer.problems == []
    values = [said.value for said in layer.said.values()]
    assert values == ([] if written == "" else [key.default])
