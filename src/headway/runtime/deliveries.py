"""Deliveries: what the agents say becomes something for the outbox, if its channel is known.

They are actions like the kernel's own, so they are stored in the same transaction as the outcome that they tell
of, under the epoch of its session; the courier takes them from there (X-4).
"""

import msgspec

from headway.core.actions import Action, Deliver, Finish
from headway.core.callback_url import CALLBACK
from headway.core.heartbeat import REPEAT_WINDOW, Alert, judge, text_key
from headway.model.outcome import Reply
from headway.model.places import Delivery
from headway.model.run import Run, RunId
from headway.model.words import Source, State
from headway.ports import Clock
from headway.runtime.courier import Courier
from headway.wire.notice import notice_delivery


class Deliveries:
    """Makes deliveries for the channels that the courier knows."""

    def __init__(self, courier: Courier, clock: Clock, *, shared: bool) -> None:
        self._courier = courier
        self._shared = shared
        """Whether other nodes may have channels that this one has not."""
        self._clock = clock
        self._used: dict[RunId, tuple[int, int]] = {}
        """Tokens that runs have reported, until their end."""
        self.has_callbacks = shared
        """Whether a task that calls back may be here; what a shared store holds may come from anywhere."""
        self.has_firings = False
        """Whether a job whose reply goes somewhere has ever run here."""

    def used(self, run: Run, tokens_in: int, tokens_out: int) -> None:
        before_in, before_out = self._used.get(run.id, (0, 0))
        self._used[run.id] = (before_in + tokens_in, before_out + tokens_out)

    def with_replies(self, actions: list[Action]) -> list[Action]:
        """What the agents answered goes into the outbox in the same transaction as the outcome."""
        if not (
            self._courier.has_channels
            or self._used
            or self.has_firings
            or (self.has_callbacks and _calls_back(actions))
        ):
            return actions
        prepared: list[Action] = []
        for action in actions:
            if not isinstance(action, Finish):
                prepared.append(action)
                continue
            finish = self._with_tokens(action)
            prepared.append(finish)
            delivery = self._reply(finish)
            if delivery is not None:
                prepared.append(delivery)
            if finish.run.callback and finish.outcome.state is not State.REJECTED:
                # Whoever was refused has his answer. All others are told, wherever it was decided (T-4).
                prepared.append(Deliver(notice_delivery(finish, self._clock.now())))
        return prepared

    def _with_tokens(self, finish: Finish) -> Finish:
        used = self._used.pop(finish.run.id, None)
        if used is None:
            return finish
        outcome = msgspec.structs.replace(finish.outcome, tokens_in=used[0], tokens_out=used[1])
        return msgspec.structs.replace(finish, outcome=outcome)

    def _reply(self, finish: Finish) -> Deliver | None:
        run, outcome = finish.run, finish.outcome
        if outcome.state is State.CANCELLED and finish.started_at is not None:
            # An empty message: channels end their typing indicators (S-10).
            return self._deliver(run, "empty", Reply(), finish.epoch)
        if outcome.reply is None:
            return self._failure(finish)
        if run.firing is not None and run.firing.ack_max_chars is not None:
            return self._alert(run, run.firing.ack_max_chars, outcome.reply, finish.epoch)
        return self.make(run, "reply", outcome.reply, finish.epoch)

    def _failure(self, finish: Finish) -> Deliver | None:
        """Nobody waits for the reply of a job: who gets it is told, too, that there is none (C-9)."""
        run, outcome = finish.run, finish.outcome
        if run.source is not Source.FIRING or outcome.state is not State.FAILED:
            return None
        name = "" if run.firing is None else run.firing.name
        text = f"Job {name!r} failed: {outcome.error or outcome.reason}"
        return self._deliver(run, "failed", Reply(text), finish.epoch)

    def _alert(self, run: Run, ack_max_chars: int, reply: Reply, epoch: int) -> Deliver | None:
        """Of what a heartbeat answers only that is told which is worth it, and not twice in a day (H-2, H-3)."""
        verdict = judge(reply.text, bool(reply.attachments), ack_max_chars)
        if not isinstance(verdict, Alert):
            return None
        deliver = self._deliver(
            run, "reply", msgspec.structs.replace(reply, text=verdict.text), epoch
        )
        if deliver is None or reply.attachments:
            return deliver
        delivery = deliver.delivery
        once = text_key(run.agent, run.route, verdict.text)
        once_until = delivery.first_at + REPEAT_WINDOW
        return Deliver(msgspec.structs.replace(delivery, once=once, once_until=once_until))

    def make(self, run: Run, name: str, reply: Reply, epoch: int) -> Deliver | None:
        """Something of a run for its channel, under a name of its own; None if there is nothing to be said."""
        if not reply.text and not reply.attachments:
            return None
        return self._deliver(run, name, reply, epoch)

    def _deliver(self, run: Run, name: str, reply: Reply, epoch: int) -> Deliver | None:
        route = run.route
        if route is None or route.channel == CALLBACK:
            # Nothing but notices is signed as one.
            return None
        asked_for = (
            self._shared and run.firing is not None and bool(reply.text or reply.attachments)
        )
        if not asked_for and not self._courier.knows(route.channel):
            # A message's route is its address too, and who sent it may take the reply himself. Where a job's reply
            # goes was asked for: it waits for a node that has the channel.
            return None
        return Deliver(
            Delivery(
                f"{run.id}.{name}",
                route,
                reply.text,
                run.id,
                run.session,
                epoch,
                reply.attachments,
                first_at=self._clock.now(),
            )
        )


def _calls_back(actions: list[Action]) -> bool:
    return any(type(action) is Finish and action.run.callback for action in actions)
