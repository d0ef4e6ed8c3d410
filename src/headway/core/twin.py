"""A copy of a kernel, to try out what would happen next. The original is not touched, whatever the copy does.

Runs, sessions and alarms are many, so they are copied by hand; all else is copied as it comes.
"""

from copy import copy, deepcopy
from heapq import heapify

from headway.core.alarms import Alarm
from headway.core.bells import Bell, DeadlinePassed, SlotAwaited
from headway.core.kernel import Kernel
from headway.core.session import SessionQueue
from headway.core.stage import Stage


def twin_of(kernel: Kernel) -> Kernel:
    """The copy, with nothing decided yet, and without the idle sessions that are still at hand.

    It knows no deadlines, and calls nobody back who waits for a slot: who stands in line before whom does not hang
    on how long runs may take.
    """
    return _Copying(kernel.stage).of(kernel)


class _Copying:
    """Copies by hand what is many, and announces it in the memo, where `deepcopy` looks first."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._lives = {id(live): copy(live) for live in stage.runs.values()}
        self._sessions = {id(session): copy(session) for session in stage.busy_sessions}
        self._memo: dict[int, object] = {**self._lives, **self._sessions}
        self._memo[id(stage.actions)] = []

    def of(self, kernel: Kernel) -> Kernel:
        stage, memo, lives = self._stage, self._memo, self._lives
        self._stand_in_lanes()
        floor = deepcopy(stage.floor, memo)
        lanes = {id(lane): floor.lanes[name] for name, lane in stage.floor.lanes.items()}
        agents = {id(agent): floor.agents[name] for name, agent in stage.floor.agents.items()}
        for live in lives.values():
            live.session = self._sessions[id(live.session)]
            live.lane = lanes[id(live.lane)]
            live.agent = agents[id(live.agent)]
            live.deadline_alarm = None
            if live.alarm is not None:
                live.alarm = self._alarm(live.alarm)
            if live.ties is not None:
                live.ties = deepcopy(live.ties, memo)
        for session in self._sessions.values():
            self._line_up(session)
        memo[id(stage.alarms)] = stage.alarms.twin((DeadlinePassed, SlotAwaited), memo)
        memo[id(stage.runs)] = dict(zip(stage.runs, lives.values(), strict=True))
        memo[id(stage.sessions)] = {each.key: each for each in self._sessions.values()}
        return deepcopy(kernel, memo)

    def _stand_in_lanes(self) -> None:
        lives = self._lives
        for lane in self._stage.floor.lanes.values():
            for flows in lane.flows:
                for flow in flows.values():
                    for line in (flow.heads, flow.next_up):
                        copied = [
                            (rank, order, stamp, lives[id(live)])
                            for rank, order, stamp, live in line
                            if live.posted
                        ]
                        if len(copied) < len(line):
                            heapify(copied)
                        self._memo[id(line)] = copied

    def _line_up(self, session: SessionQueue) -> None:
        lives = self._lives
        session.waiting = [lives[id(live)] for live in session.waiting]
        session.running = [lives[id(live)] for live in session.running]
        if session.posted is not None:
            session.posted = lives[id(session.posted)]
        if session.quiet_alarm is not None:
            session.quiet_alarm = self._alarm(session.quiet_alarm)
        if session.offspring is not None:
            session.offspring = [lives[id(live)] for live in session.offspring]
        if session.buffers is not None:
            session.buffers = deepcopy(session.buffers, self._memo)

    def _alarm(self, alarm: Alarm[Bell]) -> Alarm[Bell]:
        return deepcopy(alarm, self._memo)
