"""Whatever is written, the config is read or refused (O-2): nothing else ever comes out of it."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.config import Config, Shown, load, shown
from headway.config.building import server_of, settings_of
from headway.config.environment import odd_variables, read_environment
from headway.config.files import read_file
from headway.config.flags import read_flags
from headway.config.keys import KEYS, NAMED, SECTIONS, VARIABLES
from headway.config.layers import Layer, dotted, together

words = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
names = st.sampled_from([key.name for key in KEYS.values()]) | words
sections = st.sampled_from(["store", *SECTIONS, *NAMED]) | words


def written(value: object) -> str:
    """A value as TOML writes it; what TOML has no word for is an empty text."""
    match value:
        case None:
            return '""'
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value).replace("\x7f", "\\u007f")
        case list():
            return f"[{', '.join(map(written, value))}]"
        case _:
            return repr(value)


@given(st.dictionaries(sections, st.dictionaries(names, values, max_size=3), max_size=3))
def test_o2_any_file_is_read_or_refused_by_its_lines(data: dict[str, dict[str, object]]) -> None:
    lines = []
    for section, table in data.items():
        lines.append(f"[{dotted((section,))}]")
        lines += [f"{dotted((name,))} = {written(value)}" for name, value in table.items()]
    text = "\n".join(lines)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assert len(read_file(text, "x").problems) == 1
        return
    layer = read_file(text, "x")
    for problem in layer.problems:
        assert str(problem).startswith("x line ")
    for said in layer.said.values():
        assert said.source.startswith("x line ")


@given(st.text(max_size=2000))
def test_o2_any_text_is_read_or_refused(text: str) -> None:
    layer = read_file(text, "x")
    assert layer.problems or not layer.said


@given(st.dictionaries(st.sampled_from(sorted(VARIABLES)) | words.map("HEADWAY_{}".format), words))
def test_o2_any_environment_is_read_or_refused_by_name(environment: dict[str, str]) -> None:
    for problem in read_environment(environment).problems:
        assert problem.field in environment
    assert all(warning.startswith("HEADWAY_") for warning in odd_variables(environment))


@given(st.dictionaries(st.sampled_from(sorted(KEYS)), values))
def test_o2_any_flag_is_read_or_refused_by_name(flags: dict[str, object]) -> None:
    assert all(problem.field.startswith("--") for problem in read_flags(flags).problems)


@pytest.mark.parametrize(
    "text", ["a = " + "9" * 5_000, "[server]\nport = 0x" + "f" * 5_000, "a = " + "[" * 100_000]
)
def test_o2_what_no_computer_likes_to_read_is_refused(text: str) -> None:
    assert len(read_file(text, "x").problems) == 1


def as_file(told: tuple[Shown, ...]) -> str:
    """What is shown, written down as a file."""
    lines = [f"{one.key} = {one.text}" for one in told if one.value not in (None, "")]
    return "\n".join(lines)


environments = st.fixed_dictionaries(
    {},
    optional={
        "HEADWAY_PORT": st.integers(0, 65_535).map(str),
        "HEADWAY_STORE": st.just("sqlite:///a.db"),
        "HEADWAY_LEASE": st.sampled_from(["6s", "1m", "1h30m"]),
        "HEADWAY_LANE_MAIN": st.integers(0, 1_000_000).map(str),
        "HEADWAY_LANE_NIGHT": st.integers(0, 1_000_000).map(str),
        "HEADWAY_QUEUE_MODE": st.sampled_from(["collect", "steer", "reject"]),
        "HEADWAY_CORS_ORIGINS": st.sampled_from(["*", "https://a,https://b"]),
        "HEADWAY_THROTTLE_RATIO": st.sampled_from(["0.25", "1"]),
        "HEADWAY_REQUESTS_PER_MINUTE": st.integers(1, 1000).map(str),
    },
)


@given(environments)
def test_o2_what_is_shown_is_a_file_that_says_the_same(environment: dict[str, str]) -> None:
    config = load("/dev/null", environment)
    layer = read_file(as_file(shown(config)), "x")
    assert layer.problems == []
    again = _built(layer)
    assert (again.settings, again.server, again.store) == (
        config.settings,
        config.server,
        config.store,
    )


def _built(layer: Layer) -> Config:
    said = together(layer)
    settings, problems = settings_of(said)
    assert problems == []
    store = said.get(("store",))
    return Config(settings, server_of(said), "" if store is None else str(store.value), {})
