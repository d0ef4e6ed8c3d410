"""Holds what agents wrote down against what the store says and what callers were told.

How a zombie is judged: an attempt whose process was frozen for longer than its lease counts as live until the
freeze began. What it still writes in the first moment after the thaw cannot be prevented by any scheduler (that
is what fences are for); it is counted as fenced if another attempt of the session has begun meanwhile. Anything
it does after that moment is a violation.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headway.model.words import FINAL_STATES
from tests.e2e.ledger import Line

SECOND = 1_000_000
THAW_GRACE = 3 * SECOND
"""How long a thawed process may need to find out that it is dead."""


@dataclass(frozen=True)
class Asked:
    """A run whose submission was acknowledged."""

    session: str
    number: int
    max_attempts: int


@dataclass(frozen=True)
class Ending:
    """How a run ended, as a caller was told it."""

    state: str
    reason: str = ""
    text: str = ""


@dataclass(frozen=True)
class Past:
    """An attempt that did not end its run, and how it ended itself."""

    attempt: int
    epoch: int
    ending: str


@dataclass(frozen=True)
class Stored:
    """What the store says about a run."""

    session: str
    number: int
    ending: Ending
    attempt: int
    history: Sequence[Past] = ()


@dataclass(frozen=True)
class Freeze:
    """A process stood still from then to then."""

    process: str
    frozen_at: int
    thawed_at: int


@dataclass(frozen=True)
class Violation:
    """A promise that was not kept."""

    promise: str
    detail: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.detail}"


@dataclass
class Evidence:
    """Everything that is known about what happened."""

    asked: Mapping[str, Asked]
    told: Mapping[str, Ending]
    stored: Mapping[str, Stored]
    lines: Sequence[Line]
    deaths: Mapping[str, int] = field(default_factory=dict)
    """When each process that ended was last alive for sure."""
    freezes: Sequence[Freeze] = ()
    lease: int = 3 * SECOND


@dataclass
class Verdict:
    """What the evidence adds up to."""

    violations: list[Violation]
    fenced: int
    """Lines that zombies wrote under an old fence, right after they were thawed."""
    repeated: int
    """Attempts after the first one of their run."""


def check(evidence: Evidence) -> Verdict:
    zombies = _Zombies(evidence)
    violations = [
        *_lost(evidence),
        *_twice(evidence),
        *_outcomes(evidence),
        *_order(evidence, zombies),
        *_overlaps(evidence, zombies),
        *_unrecorded(evidence),
        *zombies.still_acting(),
    ]
    begins = [line for line in evidence.lines if line.kind == "begin"]
    return Verdict(violations, zombies.fenced(), sum(line.attempt > 1 for line in begins))


def _lost(evidence: Evidence) -> Iterator[Violation]:
    """None lost, none without an outcome, every waiting caller told the same."""
    for run, asked in evidence.asked.items():
        stored = evidence.stored.get(run)
        if stored is None:
            yield Violation("none lost", f"{asked} was acknowledged as {run} and is gone")
            continue
        if stored.ending.state not in FINAL_STATES:
            yield Violation("none without an outcome", f"{run} is {stored.ending.state}")
        told = evidence.told.get(run)
        if told is None:
            yield Violation("every caller is told", f"nobody was told how {run} ended")
        elif told != stored.ending:
            yield Violation("every caller is told", f"{run}: told {told}, kept {stored.ending}")


def _twice(evidence: Evidence) -> Iterator[Violation]:
    """A repeated submission gives the first run."""
    first: dict[tuple[str, int], str] = {}
    for run, stored in evidence.stored.items():
        other = first.setdefault((stored.session, stored.number), run)
        if other != run:
            yield Violation(
                "taken once", f"{stored.session} {stored.number} is both {other} and {run}"
            )


def _outcomes(evidence: Evidence) -> Iterator[Violation]:
    """A run is done by its latest attempt, or gave up visibly because it had no attempt left."""
    ends = {
        (line.run, f"{line.number} {line.attempt} {line.fence[0]}.{line.fence[1]}")
        for line in evidence.lines
        if line.kind == "end"
    }
    for run, stored in evidence.stored.items():
        ending, asked = stored.ending, evidence.asked.get(run)
        if ending.state not in FINAL_STATES:
            continue
        if ending.state == "done":
            latest = ending.text.startswith(f"{stored.number} {stored.attempt} ")
            if not latest or _was_given_up(stored) or (run, ending.text) not in ends:
                yield Violation(
                    "one outcome, of the latest attempt",
                    f"{run} (attempt {stored.attempt}, before it {stored.history}) "
                    f"has the reply {ending.text!r}",
                )
        elif (ending.state, ending.reason) != ("failed", "orphaned"):
            yield Violation("one outcome, of the latest attempt", f"{run}: {ending}")
        elif asked is not None and stored.attempt < asked.max_attempts:
            yield Violation(
                "tried again if it may be",
                f"{run} gave up after {stored.attempt} of {asked.max_attempts} attempts",
            )


def _was_given_up(stored: Stored) -> bool:
    """Whether the attempt whose reply was kept had been taken from its node before."""
    epoch = int(stored.ending.text.split()[-1].partition(".")[0])
    return any(
        (past.attempt, past.epoch, past.ending) == (stored.attempt, epoch, "orphaned")
        for past in stored.history
    )


def _order(evidence: Evidence, zombies: "_Zombies") -> Iterator[Violation]:
    """In each session numbers and fences of begins only grow."""
    latest: dict[str, Line] = {}
    for line in evidence.lines:
        if line.kind != "begin" or zombies.excuses(line):
            continue
        before = latest.get(line.session)
        if before is not None and line.number < before.number:
            yield Violation(
                "order is kept", f"{line.session}: {line.number} began after {before.number}"
            )
        if before is not None and line.fence <= before.fence:
            yield Violation("fences grow", f"{line.session}: {line.fence} after {before.fence}")
        latest[line.session] = line


def _overlaps(evidence: Evidence, zombies: "_Zombies") -> Iterator[Violation]:
    """Never two live attempts of one session."""
    latest: dict[str, tuple[int, Line]] = {}
    for lines in sorted(_attempts(evidence.lines).values(), key=lambda lines: lines[0].at):
        begin = lines[0]
        if begin.kind != "begin" or zombies.excuses(begin):
            continue
        live_until, before = latest.get(begin.session, (0, begin))
        if begin.at < live_until:
            yield Violation(
                "never two live attempts",
                f"{begin.session}: {begin.number} (attempt {begin.attempt}, {begin.process}) began "
                f"{(live_until - begin.at) / 1_000:.1f} ms before {before.number} "
                f"(attempt {before.attempt}, {before.process}) was over",
            )
        until = zombies.live_until(lines)
        if until >= live_until:
            latest[begin.session] = (until, begin)


def _unrecorded(evidence: Evidence) -> Iterator[Violation]:
    """Every repeated attempt is recorded as such."""
    begun: dict[str, dict[int, Line]] = defaultdict(dict)
    for line in evidence.lines:
        if line.kind == "begin":
            other = begun[line.run].setdefault(line.attempt, line)
            if other is not line:
                yield Violation(
                    "repeated attempts are recorded",
                    f"{line.run} began twice as attempt {line.attempt}: "
                    f"{other.process} {other.fence}, {line.process} {line.fence}",
                )
    for run, stored in evidence.stored.items():
        earlier = set(range(1, stored.attempt))
        if missing := earlier - {past.attempt for past in stored.history}:
            yield Violation(
                "repeated attempts are recorded",
                f"{run} is at attempt {stored.attempt}, but {sorted(missing)} are not in its history",
            )
        if unknown := {attempt for attempt in begun[run] if attempt > stored.attempt}:
            yield Violation(
                "repeated attempts are recorded",
                f"{run} began attempts {sorted(unknown)}; the store knows {stored.attempt}",
            )


def _attempts(lines: Sequence[Line]) -> Mapping[tuple[str, int, tuple[int, int]], list[Line]]:
    """The lines of each attempt, in order."""
    found: dict[tuple[str, int, tuple[int, int]], list[Line]] = defaultdict(list)
    for line in lines:
        found[line.run, line.attempt, line.fence].append(line)
    return found


class _Zombies:
    """Which processes stood still for longer than their lease, and what they did afterwards."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._attempts = _attempts(evidence.lines)
        self._freezes: dict[str, list[Freeze]] = defaultdict(list)
        for freeze in evidence.freezes:
            if freeze.thawed_at - freeze.frozen_at > evidence.lease:
                self._freezes[freeze.process].append(freeze)

    def excuses(self, line: Line) -> bool:
        """Whether its process was thawed a moment ago."""
        return any(
            freeze.thawed_at <= line.at <= freeze.thawed_at + THAW_GRACE
            for freeze in self._freezes[line.process]
        )

    def live_until(self, lines: Sequence[Line]) -> int:
        """Until when an attempt was surely live: its end, its process's death, or the freeze."""
        begin, last = lines[0], lines[-1]
        until = last.at
        if last.kind not in {"end", "cut"}:
            until = max(until, self._evidence.deaths.get(begin.process, until))
        freeze = self._frozen_in(begin, until)
        return until if freeze is None else freeze.frozen_at

    def fenced(self) -> int:
        newest: dict[str, tuple[int, int]] = {}
        count = 0
        for line in self._evidence.lines:
            newest[line.session] = max(newest.get(line.session, line.fence), line.fence)
            count += line.fence < newest[line.session]
        return count

    def still_acting(self) -> Iterator[Violation]:
        """Nothing is done under an old fence, but in the first moment after a thaw."""
        newest: dict[str, Line] = {}
        for line in self._evidence.lines:
            if line.kind == "begin":
                best = newest.get(line.session)
                if best is None or line.fence > best.fence:
                    newest[line.session] = line
            else:
                best = newest.get(line.session)
            if best is not None and line.fence < best.fence and not self.excuses(line):
                yield Violation(
                    "an old owner stops",
                    f"{line.session}: {line.process} wrote {line.kind} of {line.number} under "
                    f"{line.fence} after {best.process} began under {best.fence}",
                )

    def _frozen_in(self, begin: Line, until: int) -> Freeze | None:
        frozen = (
            freeze
            for freeze in self._freezes[begin.process]
            if begin.at <= freeze.frozen_at <= until
        )
        return min(frozen, key=lambda freeze: freeze.frozen_at, default=None)
