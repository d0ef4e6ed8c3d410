"""A session changes hands: what the store knows of it is put together again (D-7, N-12).

Whoever owned it before has decided about some of its runs; the others only came in. The first are put back where
they stood, the rest is taken in as it would have been then, in the order of its numbers, and orders among them.
A run whose worker outlived its node and was found goes on before all that: it never stopped (W-2).
"""

from collections import deque
from collections.abc import Iterable
from operator import attrgetter

from headway.core.actions import Finish, NoteExhausted, Respond
from headway.core.bells import WindowClosed
from headway.core.debounce import Buffer, buffer_key
from headway.core.endings import FINAL_CUTS, cut_outcome, orphaned, past_deadline
from headway.core.lifecycle import advance
from headway.core.line import line_of, standing_of, was_collected
from headway.core.live import LiveRun
from headway.core.messages import Messages
from headway.core.returning import resumed_at
from headway.core.session import QueueRules, SessionQueue
from headway.core.stage import Stage
from headway.core.stopping import Stopping
from headway.model.outcome import Outcome
from headway.model.places import Holding, Order, Place, Standing
from headway.model.run import Run
from headway.model.settings import QueueSettings
from headway.model.time import Instant
from headway.model.words import Mode, Reason, Rule, Source, State

_OUTSIDE = frozenset({Rule.NOT_DUE, Rule.DEBOUNCE})


class Recovery:
    """Takes sessions in from the store, whole or what is new of them."""

    def __init__(
        self, stage: Stage, rules: QueueRules, messages: Messages, stopping: Stopping
    ) -> None:
        self._stage = stage
        self._rules = rules
        self._messages = messages
        self._stopping = stopping

    def take(self, holding: Holding) -> tuple[Respond, ...]:
        """All of a session that was not here; of one that is, what came after the last that it has seen."""
        session = self._stage.sessions.get(holding.session)
        if session is None:
            session = self._stage.session(holding.session, holding.epoch, holding.memory)
            responds = self._take_over(session, holding)
        else:
            after = session.seen
            places = [place for place in holding.places if place.seq > after]
            orders = [order for order in holding.orders if order.seq > after]
            responds = [
                respond
                for item in _in_order(places, orders)
                if (respond := self._take_new(session, item)) is not None
            ]
        session.seen = max(session.seen, holding.seen)
        return tuple(responds)

    def _take_over(self, session: SessionQueue, holding: Holding) -> list[Respond]:
        decided = _decided_up_to(holding.places)
        session.seen = max(0, decided)
        session.returning = set()
        lined: list[Place] = []
        outside: list[Place] = []
        new: list[Place] = []
        for place in holding.places:
            if self._is_over(place, session):
                continue
            if _is_new(place, decided):
                new.append(place)
            elif place.standing is not None and place.standing.held in _OUTSIDE:
                outside.append(place)
            elif not holding.orders and _is_exhausted(place):
                self._give_up(place.run, place.attempt)
                self._end(place, session, orphaned())
            else:
                lined.append(place)
        exhausted = self._put_all_in_line(lined, session)
        pauses = self._put_outside(outside, session)
        self._restore_quiet(holding.places, session)
        responds = self._take_rest(session, _in_order(new, holding.orders), pauses)
        session.returning = None
        for live in exhausted:
            if live.run.id in self._stage.runs:
                self._give_up(live.run, live.attempt)
                self._stage.drop_out(live)
                self._stage.finish(live, orphaned())
        return responds

    def _put_all_in_line(self, places: list[Place], session: SessionQueue) -> list[LiveRun]:
        """As they stood; what has a worker goes on. Answers those that have no attempt left."""
        exhausted: list[LiveRun] = []
        for place in line_of(places):
            live = self._put_in_line(place, session)
            if _is_exhausted(place):
                exhausted.append(live)
            elif place.adopted:
                self._go_on(live, place)
            elif place.orphaned:
                self._space_out(live)
        if any(live.run.source is Source.MESSAGE for live in session.waiting):
            # That a heartbeat was asked to yield to them, nobody knows any more.
            self._messages.preempt_heartbeats(session)
        return exhausted

    def _is_over(self, place: Place, session: SessionQueue) -> bool:
        """Whether the run has ended already, though its end was never stored.

        One whose worker still lives ends with that, not before (S-3): it is cut as soon as it goes on.
        """
        deadline_at = place.run.deadline_at
        if place.adopted:
            return False
        if place.orphaned and place.cut in FINAL_CUTS:
            assert place.cut is not None
            self._end(place, session, cut_outcome(place.cut))
        elif (
            deadline_at is not None and deadline_at <= self._stage.now and not _is_exhausted(place)
        ):
            self._end(place, session, past_deadline())
        else:
            return False
        return True

    def _put_in_line(self, place: Place, session: SessionQueue) -> LiveRun:
        stage = self._stage
        standing = standing_of(place)
        retries_later = standing.held is Rule.RETRY and not place.adopted
        live = self._admit(place, session, State.PENDING if retries_later else State.QUEUED)
        if place.standing is None and place.run.source is Source.MESSAGE:
            collects = self._settings(place.run, session).mode is Mode.COLLECT
            live.collect = collects or was_collected(place)
        if standing.held is Rule.STEERED:
            assert session.returning is not None
            session.returning.add(place.run.id)
        stage.line_up_again(live)
        if retries_later:
            assert standing.until is not None
            stage.hold(live, Rule.RETRY, standing.until)
        return live

    def _go_on(self, live: LiveRun, place: Place) -> None:
        """Its worker is there. What its node had asked it for, it is asked for again."""
        self._stage.go_on(live)
        if place.cut in FINAL_CUTS and live.cut is None:
            assert place.cut is not None
            self._stage.cut(live, place.cut)

    def _space_out(self, live: LiveRun) -> None:
        """A dead worker's own session is resumed after a pause (W-3)."""
        if live.held is not None:
            return
        until = resumed_at(live, self._stage.now)
        if until is not None:
            live.state = advance(live.state, State.PENDING)
            self._stage.hold(live, Rule.RETRY, until)
            self._stage.note_place(live)

    def _give_up(self, run: Run, attempt: int) -> None:
        """One event says that a dead worker's session is not resumed any more (W-3)."""
        if self._stage.floor.agent(run.agent).settings.resume_after is not None:
            self._stage.actions.append(NoteExhausted(run, attempt))

    def _admit(self, place: Place, session: SessionQueue, state: State) -> LiveRun:
        run, standing = place.run, standing_of(place)
        live = self._stage.admit(run, session, state)
        live.width = self._settings(run, session).max_concurrent
        live.after, live.turn = standing.after, standing.turn
        session.turns = max(session.turns, standing.turn)
        live.collect, live.interrupts = standing.collect, standing.interrupts
        live.attempt = place.attempt
        live.retries, live.limited = standing.retries, standing.limited
        live.begun = _has_begun(place)
        if live.begun:
            live.started_at = run.submitted_at if place.started_at is None else place.started_at
        return live

    def _put_outside(self, places: list[Place], session: SessionQueue) -> "list[_Pause]":
        """Runs that are not due yet and open debounce windows, each with its alarm."""
        stage = self._stage
        pauses: list[_Pause] = []
        for place in sorted(places, key=lambda place: standing_of(place).turn):
            standing = standing_of(place)
            assert standing.until is not None
            live = self._admit(place, session, State.PENDING)
            if standing.held is Rule.NOT_DUE:
                session.later += 1
                stage.hold(live, Rule.NOT_DUE, standing.until)
                pauses.append(live)
            else:
                self._buffer_again(live, standing)
        return sorted((*pauses, *(session.buffers or {}).values()), key=_ends_at)

    def _buffer_again(self, live: LiveRun, standing: Standing) -> None:
        """The latest message of a window says when it closes."""
        assert standing.until is not None
        stage, session = self._stage, live.session
        if session.buffers is None:
            session.buffers = {}
        key = buffer_key(live.run)
        buffer = session.buffers.get(key)
        if buffer is None:
            latest_at = standing.until if standing.latest_at is None else standing.latest_at
            buffer = session.buffers[key] = Buffer(session, key, latest_at)
        live.held = Rule.DEBOUNCE
        live.plain = False
        buffer.messages.append(live)
        buffer.closes_at = standing.until
        if buffer.alarm is not None:
            stage.alarms.cancel(buffer.alarm)
        buffer.alarm = stage.alarms.set(standing.until, WindowClosed(buffer))

    def _restore_quiet(self, places: Iterable[Place], session: SessionQueue) -> None:
        standings = [place.standing for place in places if place.standing is not None]
        quiet_until = max((standing.quiet_until for standing in standings), default=0)
        if quiet_until > self._stage.now:
            self._stage.set_quiet(session, quiet_until)

    def _take_rest(
        self, session: SessionQueue, items: "list[Place | Order]", pauses: "list[_Pause]"
    ) -> list[Respond]:
        """Nobody was there when these came: whatever was to happen before them happens first."""
        responds: list[Respond] = []
        waiting = deque((_ends_at(pause), pause) for pause in pauses)
        for item in items:
            if isinstance(item, Place):
                came_at = min(self._stage.now, item.run.submitted_at)
                while waiting and waiting[0][0] <= came_at:
                    self._end_pause(waiting.popleft()[1], came_at)
            respond = self._take_new(session, item)
            if respond is not None:
                responds.append(respond)
        return responds

    def _end_pause(self, pause: "_Pause", came_at: Instant) -> None:
        """It is over by then, unless something has ended or extended it meanwhile."""
        if isinstance(pause, Buffer):
            is_open = (pause.session.buffers or {}).get(pause.key) is pause
            if is_open and pause.closes_at <= came_at:
                self._messages.window_closed(pause)
        elif pause.run.id in self._stage.runs and pause.alarm is not None:
            self._stage.alarms.cancel(pause.alarm)
            self._messages.became_due(pause)

    def _take_new(self, session: SessionQueue, item: "Place | Order") -> Respond | None:
        """Something that nobody has decided about, in its turn."""
        session.seen = max(session.seen, item.seq)
        if isinstance(item, Order):
            return self._stopping.carry_out(item, session)
        if item.run.id in self._stage.runs:
            return None
        run = item.run
        settings = self._settings(run, session)
        parent = None if run.parent is None else self._stage.runs.get(run.parent)
        refused = self._refused(run, parent) or self._messages.refused(run, session, settings)
        if refused is not None:
            self._end(item, session, refused)
            return None
        if parent is not None and not parent.ticket:
            parent = None
        live = self._messages.take_in(run, session, settings, parent)
        self._stage.rank_by_age(live)
        if parent is not None:
            self._stage.adopt(parent, live)
        return None

    def _refused(self, run: Run, parent: LiveRun | None) -> Outcome | None:
        """What a stop has reached already (N-14), and what comes too late."""
        if not run.ancestors and parent is None and run.deadline_at is None:
            return None
        above = [self._stage.runs.get(run_id) for run_id in run.ancestors]
        stopped = any(live is not None and live.cut in FINAL_CUTS for live in above)
        if stopped or (parent is not None and parent.cut is not None):
            return Outcome(State.CANCELLED, Reason.STOPPED)
        if run.deadline_at is not None and run.deadline_at <= self._stage.now:
            return past_deadline()
        return None

    def _settings(self, run: Run, session: SessionQueue) -> QueueSettings:
        return self._rules.resolve(run.queue, session.memory.options, run.route)

    def _end(self, place: Place, session: SessionQueue, outcome: Outcome) -> None:
        """The run ends without ever having been here."""
        stage = self._stage
        stage.actions.append(
            Finish(place.run, outcome, place.attempt, session.epoch, stage.now, place.started_at)
        )


_Pause = LiveRun | Buffer
"""What waits outside the line: a run that is due later, or a window."""


def _ends_at(pause: _Pause) -> Instant:
    if isinstance(pause, Buffer):
        return pause.closes_at
    assert pause.alarm is not None
    return pause.alarm.at


def _in_order(places: Iterable[Place], orders: Iterable[Order]) -> list[Place | Order]:
    items: list[Place | Order] = [*places, *orders]
    items.sort(key=attrgetter("seq"))
    return items


def _has_begun(place: Place) -> bool:
    standing = place.standing
    return place.orphaned or place.attempt > 0 or (standing is not None and standing.begun)


def _is_exhausted(place: Place) -> bool:
    over = place.attempt >= place.run.max_attempts
    return place.orphaned and over and not place.adopted


def _decided_up_to(places: Iterable[Place]) -> int:
    """The number up to which the owner before must have seen what came, by what it did about it."""
    upto = 0
    for place in places:
        if place.standing is not None or _has_begun(place) or place.run.merged_from:
            upto = max(upto, place.seq, standing_of(place).after)
    return upto


def _is_new(place: Place, decided: int) -> bool:
    untouched = place.standing is None and not _has_begun(place)
    return untouched and not place.run.merged_from and place.seq > decided
