"""Runs that are kept all, or none (T-5)."""

from collections.abc import Awaitable, Callable, Sequence

import asyncpg

from headway.model.errors import InvalidInput
from headway.model.settings import Settings
from headway.ports import Admission, Clock, TurnedAway
from headway.store.codec import decode_outcome, encode_outcome
from headway.store.keys import keys_of
from headway.store.postgres.admissions import (
    MOST_AT_ONCE,
    MOST_BYTES,
    AdmissionBatch,
    Asked,
    size_of,
)
from headway.store.postgres.connections import Connections
from headway.store.postgres.hints import Hints
from headway.store.postgres.statements import statements
from headway.store.postgres.troubles import BAD_DATA, constraint_of
from headway.store.refusals import FULL, STOPPED

RUN_KEY = "runs_pkey"
_ARGUMENTS = 36
_FULL_TEXT, _STOPPED_TEXT = encode_outcome(FULL), encode_outcome(STOPPED)


class PostgresTogether:
    """The part of the store that admits runs together."""

    def __init__(
        self,
        connections: Connections,
        schema: str,
        hints: Hints,
        *,
        settings: Settings,
        clock: Clock,
        limits_for: Callable[[int], Awaitable[tuple[int | None, int | None]]],
        told: Callable[[AdmissionBatch, Sequence[asyncpg.Record]], None],
        repeated: Callable[[asyncpg.Record], Admission],
    ) -> None:
        self._connections = connections
        self._hints = hints
        self._settings = settings
        self._clock = clock
        self._limits_for = limits_for
        self._told = told
        self._repeated = repeated
        self._known = statements(schema)["known_runs"]
        numbers = ", ".join(f"${number}" for number in range(1, _ARGUMENTS + 1))
        self._admit = f"select * from {schema}.admit_together_v1({numbers})"

    async def admit(self, asked: Sequence[Asked]) -> Sequence[Admission] | TurnedAway:
        if not asked:
            return ()
        try:
            refused = await self._try(asked)
        except asyncpg.UniqueViolationError as error:
            if constraint_of(error) != RUN_KEY:
                raise _refusal(asked, error) from None
            return await self._admit_again(asked)
        except (*BAD_DATA, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise _refusal(asked, error) from None
        return refused or [one.answer.result() for one in asked]

    async def _admit_again(self, asked: Sequence[Asked]) -> Sequence[Admission]:
        """They are kept already, as the answer was lost, but for those that a key led to an earlier run."""
        rows = await self._connections.call(self._known, [one.run.id for one in asked])
        known = {row["id"]: row for row in rows}
        rest = [one for one in asked if one.run.id not in known]
        if rest:
            try:
                refused = await self._try(rest)
            except BAD_DATA as error:
                raise _refusal(asked, error) from None
            if refused is not None:
                for one in rest:
                    one.answer.set_result(refused)
        for one in asked:
            if one.run.id in known:
                one.answer.set_result(self._repeated(known[one.run.id]))
        return [one.answer.result() for one in asked]

    async def _try(self, asked: Sequence[Asked]) -> TurnedAway | None:
        """Keep them, and give each its answer; or answer why not."""
        now = self._clock.now()
        batches = [AdmissionBatch(part, self._settings, now) for part in _parts_of(asked)]
        limits = await self._limits_for(sum(batch.tasks for batch in batches))
        checks = (*limits, _FULL_TEXT, _STOPPED_TEXT)
        node = self._hints.node
        calls = [(*batch.columns(node, now), *batch.checks(), *checks) for batch in batches]
        answers = await self._connections.call_all(self._admit, calls, unless=_turned_away)
        if answers and _turned_away(answers[-1]):
            return TurnedAway(decode_outcome(answers[-1][0]["said"]))
        for batch, rows in zip(batches, answers, strict=True):
            self._told(batch, rows)
        return None


def _turned_away(rows: Sequence[asyncpg.Record]) -> bool:
    return bool(rows) and rows[0]["kind"] == "turned"


def _parts_of(asked: Sequence[Asked]) -> list[list[Asked]]:
    """What can be written with one call each, in order, mostly all of it: a key comes in a call only once."""
    parts: list[list[Asked]] = []
    taken: set[str] = set()
    size = 0
    for one in asked:
        keys = {key.text for key in keys_of(one.run)}
        if not parts or len(parts[-1]) == MOST_AT_ONCE or size > MOST_BYTES or keys & taken:
            parts.append([])
            taken.clear()
            size = 0
        parts[-1].append(one)
        taken |= keys
        size += size_of(one.run)
    return parts


def _refusal(asked: Sequence[Asked], error: BaseException) -> InvalidInput:
    ids = ", ".join(one.run.id for one in asked)
    return InvalidInput("runs", ids, f"new runs with texts that can be stored ({error})")
