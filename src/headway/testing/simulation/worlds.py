"""What simulated nodes look like: narrow lanes, few sessions, and settings that collide.

Each seed leaves out some of what is possible, so that what is left meets more often.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

import msgspec

from headway.model.outcome import Attachment
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Route,
    Run,
    RunId,
    Sender,
    SessionKey,
)
from headway.model.settings import (
    AgentSettings,
    Budget,
    LaneSettings,
    Limits,
    QueueSettings,
    Settings,
)
from headway.model.time import MILLISECOND, SECOND, Instant, Span
from headway.model.words import Drop, Mode, Source, SteerFallback

Choice = TypeVar("Choice")

TICK: Span = 100 * MILLISECOND
"""Most spans are whole ticks, so that instants fall together."""

_LANES = tuple(map(LaneName, ("main", "side", "cron", "team")))
_AGENTS = tuple(map(AgentName, ("ada", "bob", "cyd", "dee", "eve")))
_ROUTES = (
    Route("telegram", peer="1"),
    Route("telegram", peer="2"),
    Route("web", account="x", peer="1"),
)
_SENDERS = (None, Sender("1"), Sender("2"), Sender("1", "owner"))


class World:
    """One seed's node, and how runs are drawn for it."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._last: Run | None = None
        """The last message, for others that follow it in the same words and on the same terms."""
        self._bursts = rng.choice((0, 0.3, 0.7))
        self.swift = rng.random() < 0.3
        """Whether most runs are plain and short, so that their starts are stored ahead of their slots."""
        self.lanes = _LANES[: rng.randint(1, 2 if self.swift else len(_LANES))]
        self.agents = _AGENTS[: rng.randint(1, len(_AGENTS))]
        self.keys = [SessionKey(key) for key in "abcd"[: rng.randint(1, 4)]]
        self.sources = self._some(list(Source)[:4]) or [Source.MESSAGE]
        if self.swift and self.chance(0.85):
            self.sources = [Source.MESSAGE]
        self.modes = self._some(list(Mode)) or [Mode.QUEUE]
        self.drops = self._some(list(Drop)) or [Drop.OLD]
        self.budgets = rng.random() < (0.5 if self.swift else 0.3)
        self.windows = rng.random() < (0.3 if self.swift else 0.7)
        self.deadlines = rng.random() < 0.7
        self.wide_sessions = rng.random() < (0.2 if self.swift else 0.5)
        self.own_options = rng.random() < 0.7
        self.settings = Settings(
            lanes={name: self.lane(open_ones=True) for name in self.lanes},
            queue=QueueSettings(
                mode=rng.choice(self.modes),
                cap=rng.choice((1, 2, 3, 10)),
                drop=rng.choice(self.drops),
                debounce=self._window(),
                steer_fallback=rng.choice(list(SteerFallback)),
                max_concurrent=self._width(),
            ),
            channels={"web": self.options()},
            agents={name: self.agent() for name in self.agents},
            limits=self.limits(),
            ageing=rng.choice((SECOND, 30 * SECOND)),
            cancel_grace=rng.choice((5, 20, 100)) * TICK,
            debounce_limit=rng.randint(1, 5),
        )

    @property
    def _odd(self) -> float:
        """How much of what is special there is."""
        return 0.2 if self.swift else 1

    @property
    def _much(self) -> float:
        """How much background work there is among messages."""
        return 0.6 if self.swift else 1

    def chance(self, share: float) -> bool:
        return self._rng.random() < share

    def lane(self, *, open_ones: bool = False) -> LaneSettings:
        width = self._rng.choice((1, 1, 1, 2, 2, 3, 4) if open_ones else (0, 1, 1, 2, 3, 4))
        reserve = self._rng.randint(0, width) if self.chance(0.3) else 0
        return LaneSettings(width, reserve, self._budget() if self.chance(0.3) else Budget())

    def agent(self) -> AgentSettings:
        rng = self._rng
        return AgentSettings(
            weight=rng.choice((1, 1, 1, 2, 3)),
            steerable=self.chance(0.6),
            provider=rng.choice((None, None, "p", "q")) if self.chance(self._odd) else None,
            max_inflight=rng.choice((None, None, 0, 1, 2)),
            budget=self._budget() if self.chance(0.3) else Budget(),
            resume_after=rng.choice((None, None, 5 * TICK, 40 * TICK)),
        )

    def limits(self) -> Limits:
        rng = self._rng
        return Limits(
            max_queue=rng.choice((0, 2, 5, 1000)),
            max_queue_per_agent=rng.choice((1, 3, 100)),
            max_inflight=rng.choice((0, 1, 2, 20)),
            max_inflight_per_agent=rng.choice((1, 2, 10)),
        )

    def options(self) -> QueueOptions:
        """Queue options that say something of all, or little, or nothing."""
        rng = self._rng
        share = rng.choice((0, 0.3, 0.7))

        def said(value: Choice) -> Choice | None:
            return value if self.chance(share) else None

        return QueueOptions(
            mode=said(rng.choice(self.modes)),
            cap=said(rng.choice((1, 2, 3))),
            drop=said(rng.choice(self.drops)),
            debounce=said(self._window()),
            steer_fallback=said(rng.choice(list(SteerFallback))),
            max_concurrent=said(self._width()),
        )

    def run(self, run_id: RunId, now: Instant, parent: Run | None) -> Run:
        """A run of any source, with terms of any kind; messages come in bursts."""
        last = self._last
        if parent is None and last is not None and self.chance(self._bursts):
            return msgspec.structs.replace(
                last,
                id=run_id,
                submitted_at=now,
                text=run_id,
                message_id=str(self._rng.randint(1, 200)) if self.chance(0.5) else None,
                sent_at=now if self.chance(0.4) else None,
                sender=last.sender if self.chance(0.8) else self._rng.choice(_SENDERS),
            )
        run = self._drawn(run_id, now, parent)
        if run.source is Source.MESSAGE and run.parent is None and run.due_at is None:
            self._last = msgspec.structs.replace(run, deadline_at=None)
        return run

    def _drawn(self, run_id: RunId, now: Instant, parent: Run | None) -> Run:
        rng = self._rng
        source = rng.choice(self.sources)
        if parent is not None and self.chance(0.8):
            source = Source.DELEGATION
        message = source is Source.MESSAGE
        routed = message and self.chance(0.6)
        queue = self.options() if self.own_options and self.chance(0.4) else None
        due_at = now + rng.randint(1, 60) * TICK if self.chance(0.12 * self._odd) else None
        deadline_at = None
        if self.deadlines and self.chance(0.3 * self._odd):
            deadline_at = (due_at or now) + rng.randint(0, 80) * TICK
        return Run(
            run_id,
            rng.choice(self.agents),
            self._key(run_id, parent, source),
            source,
            LaneName("nowhere") if self.chance(0.02) else rng.choice(self.lanes),
            self._priority(source),
            now,
            run_id,
            attachments=(Attachment(f"{run_id}.png"),) if self.chance(0.05) else (),
            route=rng.choice(_ROUTES) if routed else None,
            sender=rng.choice(_SENDERS) if message else None,
            message_id=str(rng.randint(1, 200)) if message and self.chance(0.5) else None,
            sent_at=now - rng.randint(0, 50) * TICK if message and self.chance(0.4) else None,
            due_at=due_at,
            deadline_at=deadline_at,
            timeout=rng.randint(1, 80) * TICK if self.chance(0.15 * self._odd) else None,
            queue=queue,
            max_attempts=rng.choice((1, 2, 3, 3, 3) if self.swift else (1, 2, 3)),
            retries=rng.choice((0, 0, 1, 2)),
            preemptible=self.chance(0.3),
            parent=None if parent is None else parent.id,
        )

    def route(self) -> Route | None:
        return self._rng.choice((None, *_ROUTES))

    def _key(self, run_id: RunId, parent: Run | None, source: Source) -> SessionKey:
        if parent is not None and self.chance(0.15):
            return parent.session
        if parent is None and self.swift and self.chance(0.5):
            return SessionKey(f"run:{run_id}")
        alone = 0.5 if parent is not None else (0.1 if source is Source.MESSAGE else 0.35)
        return SessionKey(f"run:{run_id}") if self.chance(alone) else self._rng.choice(self.keys)

    def _priority(self, source: Source) -> int:
        match source:
            case Source.MESSAGE | Source.DELEGATION:
                return self._rng.choice((0, 0, 0, 5, 10 if self.chance(self._much) else 5))
            case Source.TASK:
                return self._rng.choice((0, 0, 3, 12))
            case Source.FIRING:
                return self._rng.choice((10, 10, 2))
            case _:
                return 20

    def _budget(self) -> Budget:
        if not self.budgets:
            return Budget()
        rng = self._rng
        return Budget(rng.choice((None, 5, 20, 60)), rng.choice((None, 50, 600)))

    def _window(self) -> Span:
        return self._rng.choice((0, 0, 3, 8, 20)) * TICK if self.windows else 0

    def _width(self) -> int:
        return self._rng.choice((1, 1, 2, 3)) if self.wide_sessions else 1

    def _some(self, every: Sequence[Choice]) -> list[Choice]:
        return [one for one in every if self.chance(0.7)]
