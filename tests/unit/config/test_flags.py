"""The flags of a command (O-2), by the names of their keys."""

import pytest

from headway.config.flags import read_flags
from headway.model.time import SECOND


def test_o2_a_flag_is_text_or_a_value_already() -> None:
    layer = read_flags({"server.port": "80", "node.drain_grace": "5s", "server.host": None})
    assert {path: one.value for path, one in layer.said.items()} == {
        ("server", "port"): 80,
        ("node", "drain_grace"): 5 * SECOND,
    }
    assert read_flags({"server.port": 80}).said == {("server", "port"): (80, "--port", "--port")}


@pytest.mark.parametrize(
    ("key", "value", "flag"),
    [
        ("server.port", "x", "--port"),
        ("node.drain_grace", "5", "--grace"),
        ("log.level", "loud", "--log-level"),
        ("store", 3, "--store"),
        ("store", "", "--store"),
    ],
)
def test_o2_a_bad_flag_is_refused_by_its_name(key: str, value: object, flag: str) -> None:
    (problem,) = read_flags({key: value}).problems
    assert problem.field == flag
