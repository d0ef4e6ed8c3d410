"""The layer of the environment. A library's `Headway()` has this one alone, and only the node's settings of it."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from headway.config.building import settings_of
from headway.config.keys import (
    A_NAME,
    KEYS,
    LANE_PREFIX,
    NAMED,
    PREFIX,
    STORE,
    STORE_ALIAS,
    VARIABLES,
    Key,
    is_name,
)
from headway.config.layers import Layer, together
from headway.config.problems import refuse_if
from headway.model.errors import InvalidInput
from headway.model.settings import LANE_ALIASES, Settings

CONFIG_VARIABLE = f"{PREFIX}CONFIG"
OTHERS = frozenset(
    {
        CONFIG_VARIABLE,
        *(f"{PREFIX}{name}" for name in ("SERVER", "TOKEN", "MACHINE", "STATE")),
        *(
            f"{PREFIX}{name}"
            for name in ("RUN_ID", "TRACE_ID", "JOB_ID", "SESSION", "ATTEMPT", "FENCE", "AGENT")
        ),
    }
)
"""Variables that set nothing here: which file and server a command means, and what a command that runs is told."""
_OTHER_PREFIXES = (f"{PREFIX}TEST_", f"{PREFIX}BENCH_", f"{PREFIX}E2E_")
_NOT_OF_A_NODE = frozenset({"", "server", "log"})
_NODE_VARIABLES = {key.variable: key for key in KEYS.values() if key.section not in _NOT_OF_A_NODE}


def settings_from(environment: Mapping[str, str]) -> Settings:
    """The defaults with what the environment says: `HEADWAY_LANE_<NAME>`, `HEADWAY_MAX_INFLIGHT` (L-1, F-1), …"""
    layer = read_environment(environment, _NODE_VARIABLES)
    said = together(layer)
    settings, problems = settings_of(said)
    refuse_if([*layer.problems, *problems])
    return settings


def read_environment(environment: Mapping[str, str], known: Mapping[str, Key] = VARIABLES) -> Layer:
    """What the variables among these say that are known."""
    layer = Layer()
    for variable, written in environment.items():
        if variable.startswith(LANE_PREFIX):
            _take_lane(layer, variable, written)
        elif (key := known.get(variable)) is not None:
            if variable == STORE_ALIAS and environment.get(STORE.variable):
                continue
            if written or not key.kind.empty_is_unset:
                path = (key.section, key.name) if key.section else (key.name,)
                layer.take(path, key, key.kind.from_text(written), variable, variable)
    return layer


def odd_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """A warning for each variable that looks like one of ours and is none; others may use the prefix too."""
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable.startswith((LANE_PREFIX, *_OTHER_PREFIXES)):
            continue
        if variable not in VARIABLES and variable not in OTHERS:
            # Without the prefix: it would make all of them alike.
            names = [known.removeprefix(PREFIX) for known in (*VARIABLES, *OTHERS)]
            close = get_close_matches(variable.removeprefix(PREFIX), names, n=1)
            hint = f"; did you mean {PREFIX}{close[0]}?" if close else ""
            yield f"{variable} in the environment sets nothing{hint}"


def _take_lane(layer: Layer, variable: str, written: str) -> None:
    name = variable.removeprefix(LANE_PREFIX).lower()
    if not is_name(name):
        allowed = f"followed by the name of a lane: {A_NAME}"
        layer.problems.append(InvalidInput(variable, written, allowed))
        return
    width = NAMED["lanes"]["width"]
    path = ("lanes", LANE_ALIASES.get(name, name), "width")
    layer.take(path, width, width.kind.from_text(written), variable, variable)
