"""The herald: turns what happened into events of the catalogue. Nothing is made that nobody would hear."""

from headway.core.actions import Enqueue, Finish, Start, Stopped
from headway.core.firing import Decision
from headway.model import events
from headway.model.errors import WorkFailed
from headway.model.job import Entry, Job
from headway.model.places import Delivery
from headway.model.run import AgentName, LaneName, Run, RunId, SessionKey
from headway.model.settings import LaneSettings, Limits
from headway.model.time import Instant, Span
from headway.model.words import Cut, HeartbeatSkip, State
from headway.ports import Clock
from headway.runtime.bus import Bus
from headway.runtime.replies import describe, trace_of
from headway.turn import Turn


class Herald:
    """Announces on the bus. Notable events go out (and to the log) even if nobody listens."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock

    # The life of runs.

    def submitted(self, run: Run) -> None:
        self._bus.publish(
            events.RunSubmitted(
                at=run.submitted_at,
                run_id=run.id,
                agent=run.agent,
                session=run.session,
                lane=run.lane,
                source=run.source,
            )
        )

    def started(self, start: Start, began_at: Instant) -> None:
        run = start.run
        self._bus.publish(
            events.RunStarted(
                at=self._now if start.adopts else began_at,
                run_id=run.id,
                agent=run.agent,
                session=run.session,
                lane=run.lane,
                attempt=start.attempt,
                source=run.source,
                waited=max(began_at - max(run.submitted_at, run.due_at or 0), 0),
                adopted=start.adopts,
            )
        )

    def finished(self, finish: Finish) -> None:
        run, outcome = finish.run, finish.outcome
        self._bus.publish(
            events.RunFinished(
                at=finish.at,
                run_id=run.id,
                agent=run.agent,
                session=run.session,
                lane=run.lane,
                attempt=finish.attempt,
                state=outcome.state,
                reason=outcome.reason,
                source=run.source,
                error=outcome.error,
                into=None if outcome.into is None else RunId(outcome.into),
                took=0 if finish.started_at is None else max(finish.at - finish.started_at, 0),
            )
        )
        if outcome.state is State.CANCELLED and finish.started_at is not None:
            self._bus.publish(
                events.OutboundEmpty(
                    at=finish.at,
                    run_id=run.id,
                    agent=run.agent,
                    session=run.session,
                    route=run.route,
                )
            )

    def queued_again(self, again: Enqueue) -> None:
        """Only for a run that lives on after an attempt; taking a place in line is no news."""
        if self._bus.heard and (again.cut or again.retry_error):
            run = again.run
            self._bus.publish(
                events.RunQueuedAgain(
                    at=self._now,
                    run_id=run.id,
                    agent=run.agent,
                    session=run.session,
                    cut=again.cut,
                    until=again.until,
                    error=again.retry_error,
                )
            )

    def merged(self, run: Run) -> None:
        if self._bus.heard:
            self._bus.publish(
                events.RunsMerged(
                    at=self._now,
                    run_id=run.id,
                    agent=run.agent,
                    session=run.session,
                    parts=run.merged_from,
                )
            )

    def waited(self, run: Run, waited: Span, ahead: int) -> events.RunWaited:
        event = events.RunWaited(
            at=self._now,
            run_id=run.id,
            agent=run.agent,
            session=run.session,
            lane=run.lane,
            waited=waited,
            ahead=ahead,
        )
        self._bus.publish(event)
        return event

    # Attempts.

    def cancelled(self, run: Run, cut: Cut) -> None:
        if self._bus.heard:
            self._bus.publish(
                events.AttemptCancelled(
                    at=self._now, run_id=run.id, agent=run.agent, session=run.session, cut=cut
                )
            )

    def failed(self, turn: Turn, error: BaseException) -> None:
        self._bus.publish(
            events.AttemptFailed(
                at=self._now,
                run_id=turn.id,
                agent=turn.agent,
                session=turn.run.session,
                attempt=turn.attempt,
                error=describe(error),
                # What a program or an endpoint answered is no fault of the code that asked it.
                trace="" if isinstance(error, WorkFailed) else trace_of(error),
            )
        )

    def abandoned(self, run: Run) -> None:
        self._bus.publish(
            events.AttemptAbandoned(
                at=self._now, run_id=run.id, agent=run.agent, session=run.session
            )
        )

    def late(self, turn: Turn) -> None:
        run = turn.run
        self._bus.publish(
            events.LateResult(at=self._now, run_id=run.id, agent=run.agent, session=run.session)
        )

    def emitted(self, turn: Turn, text: str) -> None:
        if self._bus.heard:
            self._bus.publish(
                events.OutputEmitted(
                    at=self._now,
                    run_id=turn.id,
                    agent=turn.agent,
                    session=turn.run.session,
                    text=text,
                )
            )

    def used(self, turn: Turn, tokens_in: int, tokens_out: int) -> None:
        if self._bus.heard:
            self._bus.publish(
                events.TokensUsed(
                    at=self._now,
                    run_id=turn.id,
                    agent=turn.agent,
                    session=turn.run.session,
                    tokens_in=tokens_in,
                    tokens_out=tokens_out,
                )
            )

    def steered(self, message: RunId, turn: Turn) -> None:
        if self._bus.heard:
            run = turn.run
            self._bus.publish(
                events.MessageSteered(
                    at=self._now, message=message, into=run.id, agent=run.agent, session=run.session
                )
            )

    # Settings and operation.

    def stopped(self, session: SessionKey, stopped: Stopped, *, everything: bool) -> None:
        if self._bus.heard:
            self._bus.publish(
                events.SessionStopped(
                    at=self._now,
                    session=session,
                    running=stopped.running,
                    waiting=stopped.waiting,
                    everything=everything,
                )
            )

    def lane_changed(self, name: LaneName, settings: LaneSettings) -> None:
        if self._bus.heard:
            self._bus.publish(
                events.LaneChanged(
                    at=self._now, lane=name, width=settings.width, reserve=settings.reserve
                )
            )

    def lane_cleared(self, name: LaneName, ended: int) -> None:
        if self._bus.heard:
            self._bus.publish(events.LaneCleared(at=self._now, lane=name, ended=ended))

    def limits_changed(self, limits: Limits) -> None:
        if self._bus.heard:
            self._bus.publish(
                events.LimitsChanged(
                    at=self._now,
                    max_queue=limits.max_queue,
                    max_queue_per_agent=limits.max_queue_per_agent,
                    max_inflight=limits.max_inflight,
                    max_inflight_per_agent=limits.max_inflight_per_agent,
                )
            )

    def provider_held(self, provider: str, until: Instant) -> None:
        self._bus.publish(events.ProviderHeld(at=self._now, provider=provider, until=until))

    def adopted(self, run: Run, attempt: int, host: str) -> None:
        self._bus.publish(
            events.WorkerAdopted(
                at=self._now,
                run_id=run.id,
                agent=run.agent,
                session=run.session,
                attempt=attempt,
                host=host,
            )
        )

    def worker_died(self, run: Run, attempt: int, error: str) -> None:
        self._bus.publish(
            events.WorkerDied(
                at=self._now,
                run_id=run.id,
                agent=run.agent,
                session=run.session,
                attempt=attempt,
                error=error,
            )
        )

    def orphan_ended(self, run_id: RunId, agent: AgentName, attempt: int) -> None:
        self._bus.publish(
            events.OrphanEnded(at=self._now, run_id=run_id, agent=agent, attempt=attempt)
        )

    def resume_exhausted(self, run: Run, attempts: int) -> None:
        self._bus.publish(
            events.ResumeExhausted(
                at=self._now,
                run_id=run.id,
                agent=run.agent,
                session=run.session,
                attempts=attempts,
            )
        )

    def draining(self, running: int) -> None:
        self._bus.publish(events.NodeDraining(at=self._now, running=running))

    def restarted(self, incarnation: int) -> None:
        self._bus.publish(events.NodeRestarted(at=self._now, incarnation=incarnation))

    def broken(self, error: str) -> None:
        self._bus.publish(events.NodeBroken(at=self._now, error=error))

    # Among other nodes.

    def node_dead(self, number: int) -> None:
        self._bus.publish(events.NodeDead(at=self._now, node=number))

    def fenced(self, number: int, reason: str) -> None:
        self._bus.publish(events.NodeFenced(at=self._now, node=number, reason=reason))

    def died(self, number: int) -> None:
        self._bus.publish(events.NodeDied(at=self._now, node=number))

    def sessions_lost(self, count: int) -> None:
        if count:
            self._bus.publish(events.SessionsLost(at=self._now, count=count))

    def store_away(self, error: str) -> None:
        self._bus.publish(events.StoreAway(at=self._now, error=error))

    def store_back(self) -> None:
        self._bus.publish(events.StoreBack(at=self._now))

    def delivery_failed(self, delivery: Delivery, error: str, again_at: Instant | None) -> None:
        self._bus.publish(
            events.DeliveryFailed(
                at=self._now,
                delivery=delivery.id,
                run_id=delivery.run_id,
                session=delivery.session,
                channel=delivery.route.channel,
                error=error,
                again_at=again_at,
            )
        )

    # Jobs.

    def jobs_changed(self) -> None:
        if self._bus.heard:
            self._bus.publish(events.JobsChanged(at=self._now))

    def fired(self, decision: Decision) -> None:
        job = decision.job
        if decision.paused:
            self._bus.publish(
                events.JobPaused(
                    at=self._now,
                    job=job.id,
                    name=job.name,
                    agent=job.agent,
                    reason=decision.paused,
                )
            )
        if self._bus.heard:
            for entry in decision.advance.entries:
                self._bus.publish(_told(job, entry))

    def quiet(self, run: Run, reason: HeartbeatSkip) -> None:
        if self._bus.heard:
            self._bus.publish(
                events.HeartbeatQuiet(
                    at=self._now,
                    run_id=run.id,
                    agent=run.agent,
                    session=run.session,
                    reason=reason,
                )
            )

    def callback_failed(self, callback: str, error: str) -> None:
        self._bus.publish(events.CallbackFailed(at=self._now, callback=callback, error=error))

    @property
    def _now(self) -> Instant:
        return self._clock.now()


def _told(job: Job, entry: Entry) -> events.Event:
    if entry.run_id is None:
        return events.JobPassed(
            at=entry.at,
            job=job.id,
            name=job.name,
            agent=job.agent,
            due_at=entry.due_at,
            kind=entry.kind,
            reason=entry.reason,
            count=entry.count,
        )
    return events.JobFired(
        at=entry.at,
        job=job.id,
        name=job.name,
        agent=job.agent,
        due_at=entry.due_at,
        run_id=entry.run_id,
        kind=entry.kind,
    )
