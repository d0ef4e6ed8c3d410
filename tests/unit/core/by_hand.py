"""A kernel driven by hand: the test says what happens and when, and reads what was decided.

Runs are named by the test. Time stands still until `wait` is called, so every decision has an exact
instant.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from headway.core.actions import (
    Abandon,
    Action,
    CancelAttempt,
    Done,
    Ended,
    Failed,
    Finish,
    Limited,
    NoteWait,
    Remember,
    Start,
    Stopped,
)
from headway.core.kernel import Kernel
from headway.core.request import Composer
from headway.core.why import explain
from headway.model.outcome import Outcome, Reply
from headway.model.places import Cancel, Clear, Command, Configure, Order, Stop, StopAll
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Run,
    RunId,
    SessionKey,
    SessionMemory,
)
from headway.model.settings import DEFAULT_LANES, AgentSettings, LaneSettings, Limits, Settings
from headway.model.time import SECOND, Instant, Span
from headway.model.views import Why
from headway.model.words import Cut, Reason, State

Answer = TypeVar("Answer")

NOON: Instant = 1_000_000 * SECOND
CHAT = SessionKey("chat")


class ByHand:
    """One kernel, its time, and all that it has decided so far."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        lanes: Mapping[str, int | LaneSettings] | None = None,
        agents: Mapping[str, AgentSettings] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.settings = settings or Settings(
            lanes={**DEFAULT_LANES, **{LaneName(n): _lane(w) for n, w in (lanes or {}).items()}},
            agents={AgentName(name): said for name, said in (agents or {}).items()},
            limits=limits or Limits(),
        )
        self.now = NOON
        self.kernel = Kernel(self.settings, self.now)
        self.actions: list[Action] = []
        self.runs: dict[str, Run] = {}
        self.tickets: dict[str, int] = {}
        """The live attempt of each run that has one."""
        self.outcomes: dict[str, Outcome] = {}
        self.ended_at: dict[str, Instant] = {}
        self.started_at: dict[str, Instant] = {}
        self.cuts: list[tuple[str, Cut]] = []
        self.started: list[str] = []
        """Every start in order, also those of later attempts."""
        self.attempts: dict[str, int] = {}
        """The number of each run's latest attempt."""
        self.memories: dict[SessionKey, SessionMemory] = {}
        """What a store would remember of idle sessions."""

    def submit(
        self,
        name: str,
        agent: str = "a",
        text: object = "",
        *,
        parent: object = None,
        **options: object,
    ) -> Outcome | None:
        """Ask for a run now; answers its outcome if it was refused at once."""
        said = self.settings.agents.get(AgentName(agent), AgentSettings())
        run = Composer(AgentName(agent), said).compose(
            RunId(name),
            str(text or name),
            options,
            self.now,
            None if parent is None else self.runs[str(parent)],
        )
        self.runs[name] = run
        refused = self.kernel.submit(run, self.now, memory=self.memories.get(run.session))
        self.read()
        return refused

    def wait(self, span: Span) -> None:
        """Nothing happens but time."""
        self.now += span
        self.kernel.time_passed(self.now)
        self.read()

    def end(self, name: str, ended: Ended | None = None, *, jitter: float = 0.5) -> bool:
        """The live attempt of a run returns; without more said, with a reply."""
        ticket = self.tickets[name]
        if self.state(name) is State.ASSIGNED:
            self.kernel.began(ticket, self.now)
        counted = self.kernel.finished(
            ticket, Done(Reply(name)) if ended is None else ended, self.now, jitter=jitter
        )
        self.read()
        return counted

    def fail(
        self,
        name: str,
        error: str = "boom",
        *,
        reason: Reason = Reason.ERROR,
        permanent: bool = False,
        jitter: float = 0.5,
    ) -> bool:
        return self.end(name, Failed(error, reason, permanent), jitter=jitter)

    def limit(self, name: str, retry_after: Span) -> bool:
        return self.end(name, Limited(retry_after))

    def end_oldest(self, count: int = 1) -> None:
        """The attempts that started first return, one after the other."""
        for _ in range(count):
            self.end(min(self.tickets, key=lambda name: self.tickets[name]))

    def read(self) -> list[Action]:
        """Take note of what the kernel decided; idle sessions are then given back."""
        actions = self.kernel.take_actions()
        self.kernel.release_idle()
        actions += self.kernel.take_actions()
        for action in actions:
            match action:
                case Start(run=run, ticket=ticket):
                    # One that messages became together was never submitted.
                    self.runs.setdefault(run.id, run)
                    self.started.append(run.id)
                    self.started_at[run.id] = action.at
                    self.attempts[run.id] = action.attempt
                    self.tickets[run.id] = ticket
                case Finish(run=run, outcome=outcome):
                    assert run.id not in self.outcomes, f"R-2: {run.id} ended twice"
                    self.outcomes[run.id] = outcome
                    self.ended_at[run.id] = action.at
                case Remember(session=session, memory=memory):
                    self.memories[session] = memory
                case CancelAttempt(run=run, cut=cut):
                    self.cuts.append((run.id, cut))
                case _:
                    pass
        live = set(self.kernel.stage.attempts)
        self.tickets = {name: ticket for name, ticket in self.tickets.items() if ticket in live}
        self.actions += actions
        return actions

    def stop(self, session: str) -> Stopped:
        return self.order(session, Stop())

    def stop_all(
        self, session: str, *, sent_at: Instant | None = None, message_id: str | None = None
    ) -> Stopped:
        return self.order(session, StopAll(sent_at, message_id))

    def cancel(self, name: str) -> Stopped:
        return self.order(self.runs[name].session, Cancel(RunId(name)))

    def clear(self, session: str) -> int:
        return self.order(session, Clear()).waiting

    def configure(self, session: str, options: QueueOptions | None) -> None:
        self.order(session, Configure(options))

    def order(self, session: str, command: Command) -> Stopped:
        """Give the session an order; answers what it reached."""
        order = Order("order", SessionKey(session), command)
        known = self.kernel.stage.sessions.get(order.session)
        epoch = 0 if known is None else known.epoch
        memory = self.memories.get(order.session)
        answer = self._then(self.kernel.carry_out(order, epoch, memory, self.now))
        return Stopped(answer.running, answer.waiting)

    def awaits(self, parent: str, child: str) -> None:
        self.kernel.awaits(self.tickets[parent], RunId(child), self.now)
        self.read()

    def resumes(self, parent: str, child: str) -> None:
        self.kernel.resumes(self.tickets[parent], RunId(child), self.now)
        self.read()

    def takes(self, turn: str, message: str) -> bool:
        """A turn takes a message from its inbox."""
        return self._then(self.kernel.steered(self.tickets[turn], RunId(message), self.now))

    def uses(self, name: str, tokens: int) -> None:
        self.kernel.used(self.tickets[name], tokens, self.now)
        self.read()

    def set_lane(self, name: str, width: int | LaneSettings) -> None:
        self.kernel.set_lane(LaneName(name), _lane(width), self.now)
        self.read()

    def clear_lane(self, name: str) -> int:
        return self._then(self.kernel.clear_lane(LaneName(name), self.now))

    def set_limits(self, **limits: int) -> None:
        """Change some limits and leave the others alone."""
        current = self.kernel.stage.floor.limits
        self.kernel.set_limits(msgspec.structs.replace(current, **limits), self.now)
        self.read()

    def set_agent(self, name: str, settings: AgentSettings) -> None:
        self.kernel.set_agent(AgentName(name), settings, self.now)
        self.read()

    def drain(self, *, keep_waiting: bool) -> None:
        self.kernel.drain(self.now, keep_waiting=keep_waiting)
        self.read()

    def cut_all(self) -> None:
        self.kernel.cut_all(self.now)
        self.read()

    def reset(self) -> None:
        self.kernel.reset(self.now)
        self.read()

    def _then(self, answer: Answer) -> Answer:
        self.read()
        return answer

    @property
    def running(self) -> list[str]:
        """The runs that hold a slot, in order of their starts."""
        return sorted(self.tickets, key=lambda name: self.tickets[name])

    def state(self, name: str) -> State:
        live = self.kernel.stage.runs.get(RunId(name))
        return self.outcomes[name].state if live is None else live.state

    def ending(self, name: str) -> tuple[State, Reason | None] | None:
        """How a run ended: state and reason; None while it lives."""
        outcome = self.outcomes.get(name)
        return None if outcome is None else (outcome.state, outcome.reason)

    def why(self, name: str) -> Why:
        why = explain(self.kernel, RunId(name))
        assert why is not None
        self.read()
        return why

    @property
    def waits_noted(self) -> list[tuple[str, Span, int]]:
        return [(a.run.id, a.waited, a.ahead) for a in self.actions if isinstance(a, NoteWait)]

    @property
    def abandoned(self) -> list[str]:
        return [action.run.id for action in self.actions if isinstance(action, Abandon)]


def asked(name: str, *, at: object = NOON - SECOND, **options: object) -> Run:
    """A run of the chat that came a second ago, to whatever node."""
    assert isinstance(at, int)
    options.setdefault("session", CHAT)
    composer = Composer(AgentName("a"), AgentSettings())
    return composer.compose(RunId(name), name, options, at)


def _lane(width: int | LaneSettings) -> LaneSettings:
    return LaneSettings(width) if isinstance(width, int) else width
