"""Events by the dozen, and journals that hold them."""

from headway.gateway.stream.journal import Journal
from headway.model.events import Event, OutputEmitted, RunFinished, RunStarted
from headway.model.run import AgentName, LaneName, RunId, SessionKey
from headway.model.time import SECOND
from headway.model.words import Source, State
from headway.testing.clock import ORIGIN

BOOT = "1k3f9a2x"


def journal(memory: int = 100) -> Journal:
    return Journal(BOOT, memory, lambda: ORIGIN)


def started(number: int, agent: str = "a", session: str = "s", attempt: int = 1) -> RunStarted:
    return RunStarted(
        at=ORIGIN + number * SECOND,
        run_id=RunId(f"r-{number}"),
        agent=AgentName(agent),
        session=SessionKey(session),
        lane=LaneName("main"),
        attempt=attempt,
        source=Source.MESSAGE,
    )


def finished(number: int, agent: str = "a", session: str = "s") -> RunFinished:
    return RunFinished(
        at=ORIGIN + number * SECOND,
        run_id=RunId(f"r-{number}"),
        agent=AgentName(agent),
        session=SessionKey(session),
        lane=LaneName("main"),
        attempt=1,
        state=State.DONE,
        source=Source.MESSAGE,
    )


def emitted(number: int, text: str, agent: str = "a", session: str = "s") -> OutputEmitted:
    return OutputEmitted(
        at=ORIGIN,
        run_id=RunId(f"r-{number}"),
        agent=AgentName(agent),
        session=SessionKey(session),
        text=text,
    )


def noted(count: int, memory: int = 100) -> Journal:
    """A journal in which so many runs have started."""
    kept = journal(memory)
    for number in range(1, count + 1):
        kept.note(started(number))
    return kept


def everything(_: Event) -> bool:
    return True
