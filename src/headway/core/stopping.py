"""Commands to a session: stop, stop all, cancel, clear and its own options (S-5, S-9, X-3).

Each makes its changes and leaves it to the kernel to start what may start then.
"""

from typing import assert_never

import msgspec

from headway.core.actions import Remember, Respond, Stopped
from headway.core.endings import FINAL_CUTS
from headway.core.live import LiveRun
from headway.core.session import SessionQueue, with_options
from headway.core.stage import Stage
from headway.model.places import (
    Answer,
    Cancel,
    Clear,
    Command,
    Configure,
    Order,
    Stop,
    StopAll,
)
from headway.model.run import QueueOptions
from headway.model.words import Cut, Reason, Source, State


class Stopping:
    """Carries out what a person or program asks of a session as a whole."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def carry_out(self, order: Order, session: SessionQueue) -> Respond:
        """Do what the order says, and keep the answer for whoever gave it (N-13)."""
        answer = self._obey(order.command, session)
        respond = Respond(order, answer, session.epoch)
        self._stage.actions.append(respond)
        return respond

    def _obey(self, command: Command, session: SessionQueue) -> Answer:
        match command:
            case Stop():
                stopped = self.stop(session)
            case StopAll():
                stopped = self.stop_all(session, command)
            case Cancel(run_id, superseded, waiting):
                live = self._stage.runs.get(run_id)
                if live is None or (waiting and live.ticket):
                    stopped = Stopped()
                else:
                    stopped = self.cancel(live, Cut.SUPERSEDED if superseded else Cut.STOPPED)
            case Clear():
                stopped = Stopped(waiting=self.clear(session))
            case Configure(options, change):
                if change and options is not None:
                    options = with_options(session.memory.options or QueueOptions(), options)
                self.configure(session, options)
                stopped = Stopped()
            case _:
                assert_never(command)
        return Answer(stopped.running, stopped.waiting)

    def cancel(self, live: LiveRun, cut: Cut = Cut.STOPPED) -> Stopped:
        return self._end([live, *self._stage.descendants(live)], cut)

    def stop(self, session: SessionQueue) -> Stopped:
        for live in session.running or session.waiting:
            if live.cut not in FINAL_CUTS:
                return self.cancel(live)
        if session.running:
            return Stopped()
        return self._end(self.buffered(session))

    def stop_all(self, session: SessionQueue, command: StopAll) -> Stopped:
        stage = self._stage
        sent_at = stage.now if command.sent_at is None else command.sent_at
        session.cut_off(sent_at, command.message_id, command.route)
        stage.actions.append(Remember(session.key, session.memory, session.epoch))
        own = [*session.running, *session.waiting, *self.buffered(session)]
        if session.later:
            own += [live for live in stage.runs.values() if live.session is session]
        reached = {live.run.id: live for live in (*own, *(session.offspring or ()))}
        for live in own:
            reached |= {below.run.id: below for below in stage.descendants(live)}
        stopped = self._end(list(reached.values()))
        stage.touched.append(session)
        return stopped

    def clear(self, session: SessionQueue) -> int:
        waiting = [
            live
            for live in (*session.waiting, *self.buffered(session))
            if live.run.source is Source.MESSAGE and not live.begun
        ]
        for live in waiting:
            self._stage.finish_waiting(live, State.CANCELLED, Reason.CLEARED)
        self._stage.touched.append(session)
        return len(waiting)

    def configure(self, session: SessionQueue, options: QueueOptions | None) -> None:
        """What waits was taken by the old options, and stays as it was decided then (N-12)."""
        stage = self._stage
        for live in session.waiting:
            if live.run.source is Source.MESSAGE and not (live.turn or live.begun):
                stage.note_place(live)
        session.memory = msgspec.structs.replace(session.memory, options=options)
        stage.actions.append(Remember(session.key, session.memory, session.epoch))
        stage.touched.append(session)

    def buffered(self, session: SessionQueue) -> list[LiveRun]:
        buffers = session.buffers or {}
        return [live for buffer in buffers.values() for live in buffer.messages]

    def _end(self, reached: list[LiveRun], cut: Cut = Cut.STOPPED) -> Stopped:
        """End all of these: the running ones by a cut, the others at once."""
        stage = self._stage
        stoppable = [live for live in reached if stage.can_stop(live)]
        running = sum(live.ticket != 0 for live in stoppable)
        for live in stoppable:
            stage.stop(live, cut)
        return Stopped(running, len(stoppable) - running)
