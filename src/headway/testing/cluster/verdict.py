"""What must hold when everything is over: nothing lost, everybody told, nothing left behind."""

from collections.abc import Iterator, Sequence

from headway.model.run import RunId
from headway.model.words import FINAL_STATES, Reason, State
from headway.testing.cluster.database import Reader
from headway.testing.cluster.nodes import Node
from headway.testing.cluster.violation import Broken, Violation
from headway.testing.cluster.witness import Witness


def unsettled(witness: Witness, reader: Reader, nodes: Sequence[Node]) -> list[tuple[Broken, str]]:
    """What still goes on, and which promise that would break if it never ended."""
    if reader.is_settled() and not witness.live and all(_is_idle(node) for node in nodes):
        return []
    live = [attempt for attempt in witness.live if attempt.node.gone_at is None]
    return [
        *((Broken.LOST, run) for run in reader.unfinished()),
        *((Broken.ANSWER, f"order {order}") for order in reader.unanswered()),
        *((Broken.OUTBOX, f"outbox {delivery}") for delivery in reader.undelivered()),
        *((Broken.ZOMBIE, f"{attempt} is live") for attempt in live),
        *((Broken.CALLER, f"{node.name}: {what}") for node in nodes for what in _pending(node)),
    ]


def _is_idle(node: Node) -> bool:
    return node.gone_at is not None or not node.calls


def _pending(node: Node) -> Iterator[str]:
    if node.gone_at is None:
        yield from node.calls.values()
        yield from (f"{run_id} was not told" for run_id in node.waiting)


def check_at_the_end(witness: Witness, reader: Reader, nodes: Sequence[Node]) -> None:
    """Raises at the first thing that is wrong."""
    for promise, text in _faults(witness, reader, nodes):
        raise Violation(promise, text)


def _faults(
    witness: Witness, reader: Reader, nodes: Sequence[Node]
) -> Iterator[tuple[Broken, str]]:
    yield from _outcomes(witness, reader)
    yield from _callers(witness, nodes)
    yield from _attempts(witness, reader)
    yield from _steering(witness)
    yield from _outbox(witness)
    yield from witness.timetable.faults(witness.stored)
    for left in reader.left_over():
        yield Broken.LEFT_OVER, left
    if reader.events("slot_conflict"):
        yield Broken.OVERLAP, "two attempts were stored in one slot"


def _outcomes(witness: Witness, reader: Reader) -> Iterator[tuple[Broken, str]]:
    endings = reader.endings()
    for run_id, perhaps in witness.unsure.items():
        _, kept, _ = endings.get(run_id, (None, None, 0))
        if kept is not None and kept in perhaps:
            witness.outcomes.setdefault(run_id, kept)
    for run_id in witness.stored:
        if run_id not in endings:
            yield Broken.LOST, f"{run_id} was stored and is gone"
            continue
        state, outcome, _ = endings[run_id]
        if state not in FINAL_STATES or outcome is None:
            yield Broken.LOST, f"{run_id} has no outcome"
        elif outcome != witness.outcomes.get(run_id):
            seen = witness.outcomes.get(run_id)
            yield Broken.ONE_OUTCOME, f"{run_id} ended {seen}, and the store says {outcome}"
    for run_id in endings.keys() - witness.stored.keys():
        yield Broken.LOST, f"{run_id} is stored, and nobody asked for it"


def _callers(witness: Witness, nodes: Sequence[Node]) -> Iterator[tuple[Broken, str]]:
    for node in nodes:
        for run_id, told in node.told.items():
            expected = witness.final(run_id)
            if told != expected:
                yield Broken.CALLER, f"{node}: {run_id} was told {told}, not {expected}"


def _attempts(witness: Witness, reader: Reader) -> Iterator[tuple[Broken, str]]:
    endings = reader.endings()
    for run_id, run in witness.stored.items():
        outcome = witness.outcomes[run_id]
        attempts = witness.attempts.get(run_id, [])
        latest = endings[run_id][2]
        replied = attempts and attempts[-1].done and attempts[-1].reply == outcome.text
        if outcome.state is State.DONE and not replied:
            begun = ", ".join(map(str, attempts))
            yield Broken.ONE_OUTCOME, f"{run_id} has the reply {outcome.text!r} of {begun}"
        if outcome.reason is Reason.ORPHANED and latest < run.max_attempts:
            yield Broken.ATTEMPTS, f"{run_id} gave up after {latest} of {run.max_attempts} attempts"
        if outcome.reason is Reason.DEADLINE_QUEUED and not latest and attempts:
            yield Broken.DEADLINE, f"{run_id} is said to have waited, but {attempts[-1]} began"


def _steering(witness: Witness) -> Iterator[tuple[Broken, str]]:
    """A message that a turn took is the turn's if that turn counted, and else a turn of its own."""
    for run_id, outcome in witness.outcomes.items():
        own = witness.attempts.get(run_id, [])
        if outcome.into is None or witness.stored[run_id].merged_from:
            continue
        into = RunId(outcome.into)
        if run_id in witness.stored[into].merged_from:
            continue
        takers = [turn for turn in witness.attempts.get(into, []) if run_id in turn.took]
        if not takers or takers[-1] is not witness.attempts[into][-1]:
            yield Broken.STEERING, f"{run_id} went into {into}, whose last turn did not take it"
        if witness.outcomes[into].reason is Reason.ORPHANED:
            yield Broken.STEERING, f"{run_id} went into {into}, whose turn was lost"
        if own and own[-1].done:
            yield Broken.STEERING, f"{run_id} went into {into} after {own[-1]} had replied"


def _outbox(witness: Witness) -> Iterator[tuple[Broken, str]]:
    for delivery in witness.deliveries:
        if delivery not in witness.delivered_ids:
            yield Broken.OUTBOX, f"{delivery} was stored, and never delivered"
    for run_id, outcome in witness.outcomes.items():
        run = witness.stored[run_id]
        answers = run.route is not None and outcome.reply is not None
        if answers and f"{run_id}.reply" not in witness.deliveries:
            yield Broken.OUTBOX, f"the reply of {run_id} was never put into the outbox"
