"""The scribe: what is stored before what, and what is acted on only when it is stored."""

import asyncio
from collections.abc import Sequence

import pytest

from headway import Settings, Turn
from headway.core.actions import Action, Finish, Release, Start
from headway.model.run import AgentName, SessionKey
from headway.model.settings import AgentSettings
from headway.ports import Clock, Recorded
from headway.runners.function import FunctionRunner
from headway.runtime import scribe
from headway.runtime.clock import clock_for
from headway.runtime.engine import Engine
from headway.store.memory import MemoryStore
from headway.testing import virtual_time

SESSIONS = 7
RUNS = 6


class UnevenStore(MemoryStore):
    """Takes several batches at once, some much later than others."""

    writers = 3

    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self.under_way = 0
        self.most_under_way = 0
        self.kept: list[Action] = []

    async def record(self, actions: Sequence[Action]) -> Recorded:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(len(self.kept) % 5 + len(actions) / 10)
        self.under_way -= 1
        self.kept += actions
        return await super().record(actions)


@pytest.mark.parametrize("writers", [1, 3])
def test_n10_a_next_start_is_stored_with_or_after_the_outcome_before_it(
    writers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scribe, "_WORTH_ANOTHER_HAND", 2)
    monkeypatch.setattr(scribe, "_WORTH_A_BATCH", 1)

    @virtual_time
    async def main() -> None:
        settings = Settings()
        clock = clock_for(asyncio.get_running_loop())
        store = UnevenStore(settings, clock)
        store.writers = writers
        engine = Engine(settings, store, clock)
        stored_at_begin: list[bool] = []

        async def agent(turn: Turn) -> str:
            begun = {action.run.id for action in store.kept if isinstance(action, Start)}
            stored_at_begin.append(turn.id in begun)
            return turn.text

        engine.register(AgentName("a"), FunctionRunner(agent), AgentSettings())
        await engine.start()
        handles = [
            await engine.delegate(0, "a", str(number), {"session": f"s{session}"})
            for number in range(RUNS)
            for session in range(SESSIONS)
        ]
        for handle in handles:
            await handle.wait()
        await engine.close()
        assert stored_at_begin == [True] * RUNS * SESSIONS
        assert store.most_under_way == writers
        for session in range(SESSIONS):
            told = [
                (type(action), action.run.text)
                for action in store.kept
                if isinstance(action, Start | Finish) and action.run.session == f"s{session}"
            ]
            assert told == [(kind, str(n)) for n in range(RUNS) for kind in (Start, Finish)]

    main()


@virtual_time
async def test_n7_of_a_session_that_was_given_back_twice_the_last_answer_counts() -> None:
    """What the store says of the first time is outdated: it would be taken in while it is on its way out."""
    settings, clock = Settings(), clock_for(asyncio.get_running_loop())
    writer = Engine(settings, MemoryStore(settings, clock), clock)._scribe
    chat = SessionKey("chat")
    first, second = Release(chat, 7, 3), Release(chat, 7, 4)
    writer._note_releases([first])
    writer._pending.append(second)
    writer._note_releases([second])
    writer._note_released([first], Recorded((), (chat,)))
    assert chat in writer.releasing
    assert chat not in writer.kept
    writer._pending.clear()
    writer._note_released([second], Recorded((), (chat,)))
    assert chat not in writer.releasing
    assert chat in writer.kept
