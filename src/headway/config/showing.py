"""A config as it is shown: every key with its value and where that comes from, and no passwords."""

from collections.abc import Iterator, Mapping

import msgspec

from headway.config.keys import KEYS, NAMED, OF_RUNNERS, RUNNER, STORE, Key
from headway.config.layers import KeyPath, dotted
from headway.config.loading import Config
from headway.config.secrets import without_password
from headway.model.outcome import Json
from headway.model.runner import FROM_ENVIRONMENT, SECRETS, RunnerSpec
from headway.model.value import Value

DEFAULT = "default"


class Shown(Value, frozen=True):
    """One key as it is set."""

    key: str
    value: Json
    source: str
    variable: str
    live: bool
    """Whether a reload applies it."""

    @property
    def text(self) -> str:
        """The value as a file would hold it; empty where there is none."""
        return "" if self.value is None else msgspec.json.encode(self.value).decode()


def shown(config: Config) -> tuple[Shown, ...]:
    """Every key of the config, also those that have their default, in the order of the reference page."""
    return tuple(_all(config))


def _all(config: Config) -> Iterator[Shown]:
    yield _one(config, (STORE.name,), STORE, without_password(config.store) or None)
    holders: Mapping[str, object] = {
        "server": config.server,
        "log": config.server.log,
        "queue": config.settings.queue,
        "limits": config.settings.limits,
        "callbacks": config.settings.callbacks,
        "node": config.settings,
    }
    for key in KEYS.values():
        if key.section:
            value = key.kind.tell(getattr(holders[key.section], key.name))
            yield _one(config, (key.section, key.name), key, value)
    for section, known in NAMED.items():
        for name, thing in getattr(config.settings, section).items():
            for key in known.values():
                if section != "agents" or key.name not in OF_RUNNERS:
                    value = key.kind.tell(_value(thing, key.name))
                    yield _one(config, (section, name, key.name), key, value)
    for agent, runner in config.settings.runners.items():
        yield from _runner(config, agent, runner)


def _runner(config: Config, agent: str, runner: RunnerSpec) -> Iterator[Shown]:
    """How an agent is run that is no function; only what can be said about this kind of runner."""
    known = NAMED["agents"]
    path = ("agents", agent)
    yield _one(config, (*path, RUNNER), known[RUNNER], str(runner.__struct_config__.tag))
    for name in runner.__struct_fields__:
        value = known[name].kind.tell(getattr(runner, name))
        if name in SECRETS:
            value = _hidden(value)
        yield _one(config, (*path, name), known[name], value)


def _hidden(value: Json) -> Json:
    """Stars for a secret, unless it only names the variable that holds it."""
    if isinstance(value, dict):
        return {name: _hidden(item) for name, item in value.items()}
    return value if not value or str(value).startswith(FROM_ENVIRONMENT) else "***"


def _value(thing: object, name: str) -> object:
    """A field of a lane, a channel or an agent; its budget is spread over it."""
    holder = thing if hasattr(thing, name) else getattr(thing, "budget")  # noqa: B009
    return getattr(holder, name)


def _one(config: Config, path: KeyPath, key: Key, value: Json) -> Shown:
    name = dotted(path)
    variable = key.variable.replace("<NAME>", path[1].upper()) if len(path) > 2 else key.variable
    return Shown(name, value, config.sources.get(name, DEFAULT), variable, key.live)
