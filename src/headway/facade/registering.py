"""What is registered on a `Headway`: agents, channels, functions, hooks, and what is declared about time."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar, Unpack

from headway.core.request import Duration, agent_name, name_text
from headway.core.specs import check_spec
from headway.facade.options import AgentOptions, agent_options
from headway.facade.registry import JobFunction, Registry, Said, Specified
from headway.facade.specs import (
    ChatOptions,
    CommandOptions,
    HttpOptions,
    PaneOptions,
    TabsOptions,
    defaults_of,
    spec_of,
)
from headway.heartbeats import HeartbeatOptions, read_heartbeat
from headway.jobs import JobOptions, check_job
from headway.model.errors import InvalidInput
from headway.model.runner import CommandSpec, PaneSpec, RunnerSpec
from headway.model.settings import AgentSettings, Settings
from headway.ports import Channel
from headway.runners.function import AgentFunction
from headway.runtime.attempts import Hook
from headway.runtime.callbacks import TokenEstimate, WaitCallback
from headway.runtime.courier import Sends
from headway.runtime.engine import Engine
from headway.turn import Runner
from headway.wiring import Resolver, build_runner, build_spec_runner

SomeFunction = TypeVar("SomeFunction", bound=AgentFunction)
SomeChannel = TypeVar("SomeChannel", bound=Sends)
SomeJobFunction = TypeVar("SomeJobFunction", bound=JobFunction)
SomeHook = TypeVar("SomeHook", bound=Hook)
SomeCallback = TypeVar("SomeCallback", bound=WaitCallback)
SomeEstimate = TypeVar("SomeEstimate", bound=TokenEstimate)


class Registering:
    """The part of a `Headway` that is told what there is. Most of it is said before the start."""

    settings: Settings
    _registry: Registry
    _engine: Engine | None
    _store: str

    def agent(
        self, name: str, **options: Unpack[AgentOptions]
    ) -> Callable[[SomeFunction], SomeFunction]:
        """Register a function, async or plain, as an agent. It gets a `Turn` and returns its reply."""
        checked = agent_name(name)
        said = agent_options(options)

        def register(function: SomeFunction) -> SomeFunction:
            self._add_agent(checked, build_runner(function), said)
            return function

        return register

    def remote_agent(self, name: str, **options: Unpack[AgentOptions]) -> None:
        """An agent that work can be sent to from here, while only other nodes run it."""
        self._add_agent(name, None, agent_options(options))

    def commands(self, name: str = "command", **options: Unpack[AgentOptions]) -> None:
        """Register the agent that runs the commands of jobs. Who can add jobs can then run commands here."""
        self._add_spec(name, CommandSpec(), options)

    def command_agent(
        self, name: str, command: Sequence[str], **options: Unpack[CommandOptions]
    ) -> None:
        """Register a program as an agent: it is started for each attempt, without a shell (W-1).

        Its arguments are templates: `["claude", "-p", "{text}"]`. What it writes is the live output and the reply;
        it outlives a crash of this process, and is then found again (W-2).
        """
        self._add_spec(name, *spec_of("command", {"command": command, **options}))

    def tmux_agent(self, name: str, command: Sequence[str], **options: Unpack[PaneOptions]) -> None:
        """Register a program in a pane of tmux as an agent: `headway attach RUN` shows it to a person."""
        self._add_spec(name, *spec_of("tmux", {"command": command, **options}))

    def http_agent(self, name: str, url: str, **options: Unpack[HttpOptions]) -> None:
        """Register an endpoint that speaks JSON as an agent: each attempt is one request."""
        self._add_spec(name, *spec_of("http", {"url": url, **options}))

    def tabs_agent(
        self, name: str, resolver: Resolver | None = None, **options: Unpack[TabsOptions]
    ) -> None:
        """Register browser instances as an agent: a task is posted to the one that owns its tab (T-3).

        Who owns which tab is said by `instances`, by `url`, or by a function that is asked for each tab.
        """
        self._add_spec(name, *spec_of("tabs", options), resolver)

    def chat_agent(self, name: str, url: str, model: str, **options: Unpack[ChatOptions]) -> None:
        """Register a chat endpoint that speaks as OpenAI's does as an agent."""
        self._add_spec(name, *spec_of("chat", {"url": url, "model": model, **options}))

    def channel(self, name: str) -> Callable[[SomeChannel], SomeChannel]:
        """Register a function that delivers: replies to messages with this route come to it from the outbox.

        It gets a `Delivery`, at least once; one that raises is tried again, for a day.
        """
        name_text(name, "channel")

        def register(function: SomeChannel) -> SomeChannel:
            if not callable(function):
                raise InvalidInput("channel", function, "a function that takes a Delivery")
            self.add_channel(name, function)
            return function

        return register

    def add_channel(self, name: str, channel: Channel | Sends) -> None:
        """Register a channel that also shows typing, such as those of `headway.channels`."""
        name_text(name, "channel")
        self._registry.channels[name] = channel
        if self._engine is not None:
            self._engine.add_channel(name, channel)

    def remote_channel(self, name: str) -> None:
        """A channel that only other nodes deliver to: replies for it go into the outbox here."""
        name_text(name, "channel")
        self._registry.channels[name] = None
        if self._engine is not None:
            self._engine.add_channel(name, None)

    # Over time.

    def cron(
        self, expression: str, *, agent: str, name: str | None = None, **options: Unpack[JobOptions]
    ) -> Callable[[SomeJobFunction], SomeJobFunction]:
        """Ask an agent again and again, when the wall clock of `tz` matches: `0 9 * * 1-5`, `@daily`.

        The function is called when a firing starts, and its text is what the agent is told; if it returns None,
        the agent is not woken.
        """
        return self._declare("cron", expression, agent, name, options)

    def every(
        self,
        period: Duration,
        *,
        agent: str,
        name: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Callable[[SomeJobFunction], SomeJobFunction]:
        """Ask an agent again and again, after each period: `30m`. Without drift, whatever becomes of each time."""
        return self._declare("every", period, agent, name, options)

    def at(
        self,
        when: str | datetime,
        *,
        agent: str,
        name: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Callable[[SomeJobFunction], SomeJobFunction]:
        """Ask an agent once: at an instant, or at what a person means by `tomorrow 9am`."""
        return self._declare("at", when, agent, name, options)

    def _declare(
        self, kind: str, when: object, agent: str, name: str | None, options: JobOptions
    ) -> Callable[[SomeJobFunction], SomeJobFunction]:
        self._not_yet_started(kind)

        def declare(function: SomeJobFunction) -> SomeJobFunction:
            called = name or function.__name__
            fields: dict[str, object] = {**options, kind: when, "agent": agent, "name": called}
            if not {"text", "command", "function"} & fields.keys():
                asked = f"{agent}/{called}"
                self.function(asked)(function)
                fields["function"] = asked
            check_job(fields, self.settings.tz)
            self._registry.jobs.append(fields)
            return function

        return declare

    def function(self, name: str) -> Callable[[SomeJobFunction], SomeJobFunction]:
        """Give jobs a function to name: the gate that decides whether to wake, or the text of a firing."""
        name_text(name, "function")

        def register(function: SomeJobFunction) -> SomeJobFunction:
            self._registry.add_function(name, function)
            if self._engine is not None:
                self._engine.add_function(name, function)
            return function

        return register

    def heartbeat(self, agent: str, **options: Unpack[HeartbeatOptions]) -> None:
        """Wake an agent from time to time to look after its checklist; it says only what is worth it (H-1)."""
        self._not_yet_started("heartbeat")
        settings = read_heartbeat(options, self.settings.tz)
        self._registry.heartbeats[agent_name(agent)] = settings

    def _not_yet_started(self, what: str) -> None:
        if self._engine is not None:
            also = "hw.heartbeats.set" if what == "heartbeat" else "hw.jobs.add"
            raise InvalidInput(what, "declared", f"declared before the start; later: await {also}")

    def add_agent(
        self, name: str, runner: Runner | None, settings: AgentSettings | None = None
    ) -> None:
        """Register any runner as an agent; without one, it runs on other nodes only."""
        self._add_agent(name, runner, settings or {})

    def _add_agent(self, name: str, runner: Runner | Specified | None, said: Said) -> None:
        checked = self._registry.add_agent(name, runner, said)
        if self._engine is not None:
            self._registry.equip_agent(self._engine, checked, self.settings, self._store)

    def _add_spec(
        self,
        name: str,
        spec: RunnerSpec,
        options: Mapping[str, object],
        resolver: Resolver | None = None,
    ) -> None:
        said = {**defaults_of(spec), **agent_options(options)}
        check_spec(spec)
        if not isinstance(spec, CommandSpec | PaneSpec):
            # What is wrong with an address is said where it is written.
            build_spec_runner(spec, agent_name(name), self._store, resolver)
        self._add_agent(name, Specified(spec, resolver), said)

    def before(self, hook: SomeHook) -> SomeHook:
        """Call this just before each attempt: it may change the turn, or raise `Refuse` (S-11)."""
        self._registry.before.append(hook)
        return hook

    def on_wait(self, callback: SomeCallback) -> SomeCallback:
        """Call this when a run starts that had to wait long (L-7)."""
        self._registry.on_wait.append(callback)
        return callback

    def token_estimate(self, estimate: SomeEstimate) -> SomeEstimate:
        """Ask this for (tokens, context window) of a session before it runs more than one at once (S-2)."""
        self._registry.estimate = estimate
        if self._engine is not None:
            self._engine.set_estimate(estimate)
        return estimate
