"""What was registered: kept from before the first start to after the last, and given to each engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from headway.core.request import agent_name, inside
from headway.core.specs import check_spec
from headway.facade.options import agent_settings
from headway.facade.specs import with_defaults
from headway.model.errors import InvalidInput
from headway.model.heartbeat import HeartbeatSettings
from headway.model.run import AgentName
from headway.model.runner import RunnerSpec
from headway.model.settings import AgentSettings, Settings
from headway.ports import Channel
from headway.runtime.attempts import Hook
from headway.runtime.callbacks import TokenEstimate, WaitCallback
from headway.runtime.courier import Sends
from headway.runtime.engine import Engine
from headway.turn import Closes, Runner
from headway.wiring import Resolver, build_spec_runner, gate_command, give_callbacks

JobFunction: TypeAlias = Callable[[], object]

Said: TypeAlias = AgentSettings | Mapping[str, object]
"""What code says about an agent: whole settings, or some options over those that the settings give it."""


@dataclass(frozen=True, slots=True)
class Specified:
    """How an agent is run that is no function: its runner is made when it is known for which store."""

    spec: RunnerSpec
    resolver: Resolver | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """An agent: what executes it, if that is here, and what code said about it."""

    runner: Runner | Specified | None
    said: Said


class Registry:
    """Agents, channels, functions, hooks, and what is declared about time."""

    def __init__(self) -> None:
        self.agents: dict[AgentName, Registered] = {}
        self.channels: dict[str, Channel | Sends | None] = {}
        self.functions: dict[str, JobFunction] = {}
        self.jobs: list[dict[str, object]] = []
        self.heartbeats: dict[AgentName, HeartbeatSettings] = {}
        self.before: list[Hook] = []
        self.on_wait: list[WaitCallback] = []
        self.estimate: TokenEstimate | None = None
        self._of_settings: set[AgentName] = set()
        """Agents that no code has said, but the settings of the latest start."""
        self._made: dict[AgentName, Runner] = {}
        """Runners that were made for the engine that runs."""

    def add_agent(self, name: str, runner: Runner | Specified | None, said: Said) -> AgentName:
        checked = agent_name(name)
        if checked in self.agents:
            raise InvalidInput("agent", name, "a name that is not taken yet")
        self.agents[checked] = Registered(runner, said)
        return checked

    def settings_of(self, name: AgentName, settings: Settings) -> AgentSettings:
        """What an agent goes by: what code says of it wins over the settings."""
        said = self.agents[name].said
        if isinstance(said, AgentSettings):
            return said
        return agent_settings(settings.agents.get(name, AgentSettings()), said)

    def _add_runners(self, settings: Settings) -> None:
        """Agents that are said in the file are added to those of the code, which wins.

        Those of an earlier start are said anew: the file may have changed since.
        """
        for name in self._of_settings:
            self.agents.pop(name, None)
        self._of_settings = settings.runners.keys() - self.agents.keys()
        for name, spec in settings.runners.items():
            if name in self._of_settings:
                check_spec(spec, f"agents.{name}.")
                said = with_defaults(spec, settings.agents.get(name, AgentSettings()))
                self.agents[name] = Registered(Specified(spec), said)

    def add_function(self, name: str, function: JobFunction) -> None:
        if not callable(function):
            raise InvalidInput("function", function, "a function without arguments")
        if name in self.functions:
            raise InvalidInput("function", name, "a name that is not taken yet")
        self.functions[name] = function

    def equip_agent(self, engine: Engine, name: AgentName, settings: Settings, store: str) -> None:
        """Tell an engine of an agent; its runner is made now, if it had to wait for the store."""
        runner = self.agents[name].runner
        if isinstance(runner, Specified):
            runner = self._made[name] = self._make(name, runner, store)
        engine.register(name, runner, self.settings_of(name, settings))

    def _make(self, name: AgentName, wanted: Specified, store: str) -> Runner:
        try:
            return build_spec_runner(wanted.spec, name, store, wanted.resolver)
        except InvalidInput as wrong:
            raise inside(wrong, f"agents.{name}") from None

    async def close(self) -> None:
        """The engine has ended: so does what its runners kept open."""
        made, self._made = self._made, {}
        for runner in made.values():
            if isinstance(runner, Closes):
                await runner.close()

    def equip(self, engine: Engine, settings: Settings, store: str) -> None:
        """Give an engine that has not started all that it needs to know."""
        self._add_runners(settings)
        for name in self.agents:
            self.equip_agent(engine, name, settings, store)
        for channel, function in self.channels.items():
            engine.add_channel(channel, function)
        give_callbacks(engine, settings.callbacks)
        engine.attempts.before = self.before
        engine.callbacks.on_wait = self.on_wait
        if self.estimate is not None:
            engine.set_estimate(self.estimate)
        for called, given in self.functions.items():
            engine.add_function(called, given)
        engine.looks.run_command = gate_command

    async def declare(self, engine: Engine, tz: str) -> None:
        """What the program says about time is in the store, whichever node was first."""
        for fields in self.jobs:
            await engine.jobs.declare(fields, tz)
        for agent, settings in self.heartbeats.items():
            await engine.jobs.declare_heartbeat(agent, settings)
