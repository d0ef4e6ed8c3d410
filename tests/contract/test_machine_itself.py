"""The state machine finds nothing where there is nothing, and each of these faults."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from headway import Outcome, Settings, State
from headway.core.actions import (
    Action,
    CancelAttempt,
    Deliver,
    Enqueue,
    Finish,
    Merge,
    Release,
    Remember,
    Start,
)
from headway.model.run import Run, RunId
from headway.model.time import MINUTE, SECOND
from headway.ports import Clock, Recorded, RunPage, RunQuery
from headway.store.memory import MemoryStore
from tests.contract.machine import StoreMachine
from tests.contract.world import Maker

TRIED = settings(
    max_examples=300,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    print_blob=False,
    phases=(Phase.generate,),
)


def machine_over(maker: Maker) -> type[StoreMachine]:
    class Machine(StoreMachine):
        @contextmanager
        def database(self) -> Iterator[Maker]:
            yield maker

    return Machine


def test_it_finds_nothing_in_the_memory_store_itself() -> None:
    run_state_machine_as_test(machine_over(MemoryStore), settings=settings(TRIED, max_examples=50))


class _ShortKeys(MemoryStore):
    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(msgspec.structs.replace(settings, dedupe=19 * MINUTE), clock)


class _ForgetsTooSoon(MemoryStore):
    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(
            msgspec.structs.replace(settings, task_retention=5 * MINUTE - SECOND), clock
        )


class _ReleasesOverNewRuns(MemoryStore):
    def _release(self, release: Release) -> bool:
        self._held.pop(release.session, None)
        return True


class _RepeatsEpochs(MemoryStore):
    def _release(self, release: Release) -> bool:
        released = super()._release(release)
        self._epochs -= released
        return released


class _KeepsKeysOfMerged(MemoryStore):
    def _free_keys(self, run: Run, outcome: Outcome) -> None:
        kept = {part: self._records.pop(part) for part in run.merged_from if part in self._records}
        super()._free_keys(run, outcome)
        self._records |= kept


class _KeepsKeysOfAbsorbed(MemoryStore):
    def _absorbed_by(self, run_id: RunId) -> Sequence[RunId]:
        return ()


class _SkipsAPage(MemoryStore):
    async def list(self, query: RunQuery) -> RunPage:
        page = await super().list(query)
        if page.cursor is None:
            return page
        return RunPage(page.runs, str(int(page.cursor) - 1))


class _ListsAnotherState(MemoryStore):
    async def list(self, query: RunQuery) -> RunPage:
        if query.state is State.PENDING:
            query = msgspec.structs.replace(query, state=State.QUEUED)
        return await super().list(query)


def _deaf_to(kind: type[Action]) -> Maker:
    """A store that does not keep one kind of action."""

    class Deaf(MemoryStore):
        async def record(self, actions: Sequence[Action]) -> Recorded:
            return await super().record([one for one in actions if type(one) is not kind])

    return Deaf


FAULTS: dict[str, Maker] = {
    "lets keys end too soon": _ShortKeys,
    "forgets too soon": _ForgetsTooSoon,
    "releases over new runs": _ReleasesOverNewRuns,
    "repeats epochs": _RepeatsEpochs,
    "keeps the keys of merged messages": _KeepsKeysOfMerged,
    "keeps the keys of absorbed messages": _KeepsKeysOfAbsorbed,
    "skips at the end of a page": _SkipsAPage,
    "lists another state": _ListsAnotherState,
    **{
        f"misses a {kind.__name__}": _deaf_to(kind)
        for kind in (Start, Finish, Enqueue, Merge, CancelAttempt, Remember, Release, Deliver)
    },
}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_finds_a_store_that(fault: str) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine_over(FAULTS[fault]), settings=TRIED)
