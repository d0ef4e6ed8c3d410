"""The carrier: carries out what was decided and stored, and tells everybody whom it concerns."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from headway.core.actions import (
    Abandon,
    Action,
    AskEstimate,
    CancelAttempt,
    Deliver,
    Enqueue,
    Finish,
    Merge,
    NoteExhausted,
    NoteHold,
    NoteLate,
    NoteWait,
    Release,
    Remember,
    Respond,
    Start,
    Steer,
    Unsteer,
)
from headway.model.errors import NotRunning
from headway.model.outcome import Outcome
from headway.model.places import Answer
from headway.model.run import Run, RunId, SessionKey
from headway.runtime.attempts import Attempts
from headway.runtime.bus import Bus
from headway.runtime.callbacks import Callbacks
from headway.runtime.handle import Handle, HandleDesk
from headway.runtime.herald import Herald


class KnowsWorkers(Protocol):
    """Who looks after workers is told which attempts begin and end."""

    def began(self, start: Start) -> None: ...

    def ended(self, run: Run, attempt: int, outcome: Outcome | None = None) -> None: ...

    def abandoned(self) -> None: ...


class Carrier:
    """Knows the attempts, the handles of those who wait, and the orders whose answer is awaited."""

    def __init__(
        self,
        desk: HandleDesk,
        attempts: Attempts,
        callbacks: Callbacks,
        herald: Herald,
        bus: Bus,
        *,
        estimate: Callable[[SessionKey], None],
        delivers: Callable[[], None],
        follow: Callable[[], None] | None,
        told: Callable[[int], None],
        firing_ended: Callable[[Finish], None],
        typing: Callable[[Run, bool], None],
    ) -> None:
        self._desk = desk
        self._attempts = attempts
        attempts.began = self.began
        self._callbacks = callbacks
        self._herald = herald
        self._bus = bus
        self._estimate = estimate
        self._delivers = delivers
        self._follow = follow
        self._told = told
        self._firing_ended = firing_ended
        self._typing = typing
        self.watching = False
        """Whether there are channels or jobs here: else nothing of a start or an end concerns them."""
        self.workers: KnowsWorkers | None = None
        """None: no runner here has workers."""
        self.handles: dict[RunId, Handle] = {}
        self.orders: dict[str, asyncio.Future[Answer]] = {}
        self.loop: asyncio.AbstractEventLoop | None = None

    def carry_out(self, actions: Sequence[Action]) -> None:
        assert self.loop is not None
        loop = self.loop
        begin = self._attempts.begin
        heard = self._bus.heard
        handles = self.handles
        watching = self.watching
        workers = self.workers
        for action in actions:
            if type(action) is Start:
                if begin(action, loop) and (heard or watching or workers is not None):
                    self.began(action)
            elif type(action) is Finish:
                handle = handles.pop(action.run.id, None)
                if handle is not None:
                    if action.outcome.into is None:
                        handle.settle(action.outcome)
                    else:
                        self.tell(handle, action.outcome)
                if workers is not None:
                    workers.ended(action.run, action.attempt, action.outcome)
                if watching:
                    self._finished(action)
                if heard:
                    self._herald.finished(action)
            elif type(action) is not Release:
                self._carry_out_rare(action)

    def began(self, start: Start) -> None:
        """Tell that an attempt begins."""
        if self.workers is not None:
            self.workers.began(start)
        if self.watching and start.run.route is not None:
            self._typing(start.run, True)
        if self._bus.heard:
            self._herald.started(start, self._attempts.began_at(start))

    def _finished(self, finish: Finish) -> None:
        run = finish.run
        if run.firing is not None:
            self._firing_ended(finish)
        if run.route is not None:
            self._typing(run, False)

    def _carry_out_rare(self, action: Action) -> None:  # noqa: C901 - one case for each kind of action
        attempts = self._attempts
        match action:
            case CancelAttempt(run, ticket, cut):
                attempts.cancel(ticket, cut)
                self._told(ticket)
                self._herald.cancelled(run, cut)
            case Abandon(run, ticket):
                attempts.leave_behind(ticket)
                self._herald.abandoned(run)
                if self.workers is not None:
                    self.workers.abandoned()
            case Steer(message, into):
                if (turn := attempts.get(into)) is not None:
                    turn.inbox.offer(message)
            case Unsteer(message, into):
                if (turn := attempts.get(into)) is not None:
                    turn.inbox.withdraw(message.id)
            case AskEstimate(session):
                self._estimate(session)
            case NoteWait(run, waited, ahead):
                self._callbacks.waited(self._herald.waited(run, waited, ahead))
            case NoteLate(ticket):
                if (turn := attempts.take_late(ticket)) is not None:
                    self._herald.late(turn)
            case NoteHold(provider, until):
                self._herald.provider_held(provider, until)
            case NoteExhausted(run, attempt):
                self._herald.resume_exhausted(run, attempt)
            case Enqueue():
                if action.ended and self.workers is not None:
                    self.workers.ended(action.run, action.attempt)
                self._herald.queued_again(action)
            case Merge(run):
                self.handles.setdefault(run.id, Handle(self._desk, run.id))
                self._herald.merged(run)
            case Respond(order, answer):
                self.respond(order.id, answer)
            case Deliver():
                self._delivers()
            case Remember() | Release() | Start() | Finish():
                pass

    def tell(self, handle: Handle, outcome: Outcome) -> None:
        """Every waiting caller is told the outcome (R-2)."""
        into = None if outcome.into is None else self._handle_of(RunId(outcome.into))
        if into is None:
            handle.settle(outcome)
        else:
            handle.follow(into, outcome)

    def _handle_of(self, run_id: RunId) -> Handle | None:
        """The handle of a run that took another one over. It may have been asked for on another node."""
        handle = self.handles.get(run_id)
        if handle is None and self._follow is not None:
            handle = self.handles[run_id] = Handle(self._desk, run_id)
            self._follow()
        return handle

    def respond(self, order: str, answer: Answer) -> None:
        waiting = self.orders.pop(order, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def settle_all(self, outcome: Outcome) -> None:
        """Nothing goes on here: nobody shall wait for ever."""
        for answered in self.orders.values():
            if not answered.done():
                answered.set_exception(NotRunning())
                # Whoever gave the order may still be at giving it: then nobody looks here.
                answered.exception()
        for handle in tuple(self.handles.values()):
            handle.settle(outcome)
        self.handles.clear()
