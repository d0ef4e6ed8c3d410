"""What the kernel's alarms ring for."""

from dataclasses import dataclass
from typing import TypeAlias

from headway.core.debounce import Buffer
from headway.core.lanes import AgentLoad, Lane
from headway.core.live import LiveRun
from headway.core.session import SessionQueue


@dataclass(slots=True)
class DeadlinePassed:
    live: LiveRun


@dataclass(slots=True)
class TimeoutPassed:
    live: LiveRun


@dataclass(slots=True)
class GraceOver:
    live: LiveRun


@dataclass(slots=True)
class HoldOver:
    live: LiveRun


@dataclass(slots=True)
class WindowClosed:
    buffer: Buffer


@dataclass(slots=True)
class QuietOver:
    session: SessionQueue


@dataclass(slots=True)
class AgentFree:
    agent: AgentLoad


@dataclass(slots=True)
class LaneFree:
    lane: Lane


@dataclass(slots=True)
class SlotAwaited:
    lane: Lane


Bell: TypeAlias = (
    DeadlinePassed
    | TimeoutPassed
    | GraceOver
    | HoldOver
    | WindowClosed
    | QuietOver
    | AgentFree
    | LaneFree
    | SlotAwaited
)
