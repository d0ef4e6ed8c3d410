"""Views of runs and nodes. Reading never writes, and never waits for a write."""

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from headway.model.errors import InvalidInput
from headway.model.outcome import Outcome
from headway.model.places import Answer
from headway.model.run import RunId, SessionKey, SessionMemory
from headway.model.views import NodeView, RunView
from headway.model.words import FINAL_STATES, Source, State
from headway.ports import RunPage, RunQuery
from headway.store.codec import decode_answer, decode_memory, decode_outcome, decode_run
from headway.store.sqlite.database import Column, Database
from headway.store.sqlite.statements import STATEMENTS

_LONGEST_NUMBER = 18

_read_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode


def find(database: Database, run_id: RunId) -> RunView | None:
    row = database.row("views", run_id)
    return None if row is None else _view(row)


def list_runs(database: Database, query: RunQuery) -> RunPage:
    """Newest first. What is unfinished is in the queue, so a list of it does not look at the rest."""
    conditions = ["TRUE"]
    values: list[Column] = []
    if query.cursor is not None:
        conditions.append("runs.number <= ?")
        values.append(position(query.cursor))
    if query.agent is not None:
        conditions.append("runs.agent = ?")
        values.append(query.agent)
    if query.session is not None:
        conditions.append("runs.session = ?")
        values.append(query.session)
    if query.state is not None:
        condition, value = _of_state(query.state)
        conditions.append(condition)
        values += value
    if query.source is not None:
        condition, value = _of_source(query.source)
        conditions.append(condition)
        values += value
    select, _, _ = STATEMENTS["views"].text.rpartition("WHERE")
    text = f"{select} WHERE {' AND '.join(conditions)} ORDER BY runs.number DESC LIMIT ?"
    rows = database.plain(text, (*values, query.limit + 1))
    views = tuple(_view(row) for row in rows[: query.limit])
    return RunPage(views, str(rows[query.limit][0]) if len(rows) > query.limit else None)


def descendants(database: Database, run_id: RunId, most: int) -> list[RunView]:
    """A run and all below it that is still kept, the oldest first."""
    return [_view(row) for row in database.rows("tree", run_id, most)]


def _of_state(state: State) -> tuple[str, tuple[Column, ...]]:
    if state in FINAL_STATES:
        return "runs.state = ?", (state,)
    unfinished = "runs.number IN (SELECT number FROM queue)"
    if state is State.RUNNING:
        return f"{unfinished} AND attempts.number IS NOT NULL", ()
    return f"{unfinished} AND attempts.number IS NULL AND queue.state = ?", (state,)


def _of_source(source: Source) -> tuple[str, tuple[Column, ...]]:
    """Tasks have an index of their own; who asked for the others is read as they are met."""
    if source is Source.TASK:
        return "runs.task = 1", ()
    return "runs.task = 0 AND json_extract(runs.body, '$.source') = ?", (source,)


def _view(row: tuple[Column, ...]) -> RunView:
    _, body, state, attempt, started_at, finished_at, outcome = row[:7]
    waiting, waited, cancelling, live, live_since, live_on = row[7:]
    run = decode_run(cast(str, body))
    if state is not None:
        return RunView(
            run,
            State(cast(str, state)),
            cast(int, attempt),
            cast(int | None, started_at),
            cast(int | None, finished_at),
            None if outcome is None else decode_outcome(cast(str, outcome)),
        )
    if live is not None:
        since, node = cast(int, live_since), cast(int, live_on)
        return RunView(
            run, State.RUNNING, cast(int, live), since, cancelling=bool(cancelling), node=node
        )
    return RunView(run, State(cast(str, waiting)), cast(int, waited))


def position(cursor: str) -> int:
    """The number of the run that a page goes on with."""
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _LONGEST_NUMBER):
        raise InvalidInput("cursor", cursor, "the cursor of an earlier page")
    return int(cursor)


def outcomes(database: Database, runs: Sequence[RunId]) -> Mapping[RunId, Outcome]:
    found = database.read("outcomes", [(run_id,) for run_id in runs])
    return {
        RunId(run_id): decode_outcome(outcome)
        for (text,) in found
        for run_id, outcome in _read_pairs(cast(str, text))
    }


def answers(database: Database, orders: Sequence[str]) -> Mapping[str, Answer]:
    found = database.read("answers", [(order_id,) for order_id in orders])
    return {
        order_id: decode_answer(answer)
        for (text,) in found
        for order_id, answer in _read_pairs(cast(str, text))
    }


def memory_of(database: Database, session: SessionKey) -> SessionMemory | None:
    row = database.row("memory_of", session)
    return None if row is None or row[0] is None else decode_memory(cast(str, row[0]))


def nodes(database: Database) -> tuple[NodeView, ...]:
    rows = cast(list[tuple[int, str, int, int, int, str, int, int, str]], database.rows("nodes"))
    return tuple(NodeView(*row) for row in rows)


def counts(database: Database) -> dict[State, int]:
    """How many runs there are, by state."""
    rows = cast(list[tuple[str, int]], database.rows("counts"))
    return {State(state): count for state, count in rows}
