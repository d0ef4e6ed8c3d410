"""S-9 and X-3: stopping is one step that reaches everything, and refuses what comes too late."""

import asyncio
from datetime import timedelta

import pytest

from headway import Handle, Headway, MessageStale, State, Turn, TurnOver
from headway.model.events import SessionStopped
from headway.model.places import Order, Stop
from headway.model.time import as_datetime
from headway.testing import virtual_time
from headway.testing.clock import ORIGIN
from tests.unit.runtime.worlds import (
    CHAT,
    Recorder,
    ask,
    deaf_sleep,
    each,
    ending,
    endings,
    hear,
    moment,
    now_s,
    only,
    quick_queue,
    with_agents,
)

START = as_datetime(ORIGIN)


@virtual_time
async def test_s9_stop_cancels_the_oldest_running_attempt_alone() -> None:
    recorder = Recorder(takes=10)
    async with with_agents(recorder) as hw:
        handles = [await hw.submit("a", text, session="s", max_concurrent=2) for text in each(3)]
        await asyncio.sleep(1)
        assert await hw.command("s", "/stop") == "1 running stopped"
        assert await endings(*handles) == ["cancelled/stopped", "done", "done"]


@virtual_time
async def test_s9_stop_reaches_a_run_that_still_waits_for_a_lane() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        hw.set_lane("main", 1)
        await hw.submit("a", "other", session="t")
        waiting = await hw.submit("a", "waiting", session="s")
        await moment()
        assert await hw.command("s", "/stop") == "1 waiting stopped"
        assert await endings(waiting) == ["cancelled/stopped"]
        assert recorder.started == ["other"]


@virtual_time
async def test_s9_stop_while_the_stopped_turn_still_ends_spares_what_waits_behind_it() -> None:
    """It neither runs nor waits for a lane: an impatient second `/stop` does not take it away."""
    recorder = Recorder(takes=10, deaf=3)
    async with with_agents(recorder) as hw:
        first = await hw.submit("a", "first", session="s")
        second = await hw.submit("a", "second", session="s")
        await asyncio.sleep(1)
        assert await hw.command("s", "/stop") == "1 running stopped"
        assert await hw.command("s", "/stop") == "nothing to stop"
        assert await endings(first, second) == ["cancelled/stopped", "done"]


@virtual_time
async def test_s9_stop_reaches_a_text_that_is_still_in_its_window() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handle = await hw.submit("a", "oops", session="s", route=CHAT)
        await asyncio.sleep(0.3)
        assert await hw.command("s", "/stop") == "1 waiting stopped"
        assert await endings(handle) == ["cancelled/stopped"]


@virtual_time
async def test_s9_stopall_300_ms_after_a_text_in_its_debounce_window() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handle = await hw.submit("a", "oops", session="s", route=CHAT)
        await asyncio.sleep(0.3)
        assert await hw.command("s", "/stopall", route=CHAT) == "1 waiting stopped"
        assert await endings(handle) == ["cancelled/stopped"]
        await asyncio.sleep(10)
        assert recorder.started == []
        assert hw.sessions() == {}


@virtual_time
async def test_s9_stopall_ends_running_waiting_buffered_later_and_retrying_in_one_step() -> None:
    recorder = Recorder(takes=10)
    hw = with_agents(recorder)

    @hw.agent("flaky")
    async def flaky(turn: Turn) -> str:
        raise ValueError

    async with hw:
        heard = hear(hw)
        handles = [await hw.submit("flaky", "retries", session="s", retries=3, max_concurrent=3)]
        await moment()
        handles.append(await hw.submit("a", "waits", session="s"))
        handles.append(await hw.submit("a", "buffered", session="s", route=CHAT))
        handles.append(await hw.submit("a", "later", session="s", due="1h"))
        handles.append(await hw.submit("a", "task", session="s", source="task"))
        elsewhere = await hw.submit("a", "elsewhere", session="t")
        await moment()
        assert await hw.command("s", "/stopall") == "5 waiting stopped"
        await moment()
        assert [ending(handle.outcome) for handle in handles] == ["cancelled/stopped"] * 5
        (stopped,) = only(heard, SessionStopped)
        assert (stopped.running, stopped.waiting, stopped.everything) == (0, 5, True)
        assert await endings(elsewhere) == ["done"]


@virtual_time
async def test_s9_the_reply_counts_what_was_stopped() -> None:
    async with with_agents(Recorder()) as hw:
        for text in each(5):
            await hw.submit("a", text, session="s", max_concurrent=2)
        await moment()
        assert await hw.command("s", "/stopall") == "2 running and 3 waiting stopped"
        assert await hw.command("s", "/stopall") == "nothing to stop"
        assert await hw.command("idle", "/stop") == "nothing to stop"


@pytest.mark.parametrize(
    "text",
    ["/stop", "/STOP", "/Stop@mybot", "  /stop  ", "/stop@My_Bot_2", "/stop\n"],
)
def test_s9_stop_is_seen_in_any_case_and_with_the_bots_name(text: str) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            for number in each(2):
                await hw.submit("a", number, session="s")
            await moment()
            assert await hw.command("s", text) == "1 running stopped"

    main()


@pytest.mark.parametrize("text", ["/stopall", "/STOPALL", "/StopAll@mybot", " /stopall "])
def test_s9_stopall_is_seen_in_any_case_and_with_the_bots_name(text: str) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            for number in each(2):
                await hw.submit("a", number, session="s")
            await moment()
            assert await hw.command("s", text) == "1 running and 1 waiting stopped"

    main()


async def _is_stale(hw: Headway, **options: object) -> bool:
    try:
        await ask(hw, "a", "late", {"session": "s", "debounce": 0, **options})
    except MessageStale as refusal:
        return ending(refusal.outcome) == "cancelled/stale"
    return False


@virtual_time
async def test_s9_messages_sent_before_the_cutoff_are_stale() -> None:
    async with with_agents(Recorder()) as hw:
        await asyncio.sleep(100)
        await hw.stop_all("s", sent_at=START + timedelta(seconds=90))
        assert await _is_stale(hw, sent_at=START + timedelta(seconds=89))
        assert not await _is_stale(hw, sent_at=START + timedelta(seconds=90)), "not before it"
        assert not await _is_stale(hw, sent_at=START + timedelta(seconds=91))
        assert not await _is_stale(hw), "without a time or an id nothing says that it is old"


@virtual_time
async def test_s9_without_a_time_of_its_own_the_cutoff_is_now() -> None:
    async with with_agents(Recorder()) as hw:
        await asyncio.sleep(100)
        await hw.command("s", "/stopall")
        assert await _is_stale(hw, sent_at=START + timedelta(seconds=99))
        assert not await _is_stale(hw, sent_at=START + timedelta(seconds=101))


@pytest.mark.parametrize(
    ("message_id", "stale"),
    [("9", True), ("99", True), ("100", False), ("101", False), ("x9", False)],
)
def test_s9_else_the_numeric_message_id_decides_as_a_number(message_id: str, stale: bool) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            await hw.command("s", "/stopall", message_id="100", route=CHAT)
            assert await _is_stale(hw, message_id=message_id, route=CHAT) == stale

    main()


@virtual_time
async def test_s9_the_time_counts_before_the_id() -> None:
    async with with_agents(Recorder()) as hw:
        await asyncio.sleep(100)
        sent_at = START + timedelta(seconds=90)
        await hw.command("s", "/stopall", message_id="100", route=CHAT, sent_at=sent_at)
        later = sent_at + timedelta(seconds=1)
        assert not await _is_stale(hw, message_id="9", route=CHAT, sent_at=later)
        earlier = sent_at - timedelta(seconds=1)
        assert await _is_stale(hw, message_id="101", route=CHAT, sent_at=earlier)


@virtual_time
async def test_s9_the_cutoff_never_moves_back() -> None:
    """A `/stopall` that was delayed on its way, or has no id, does not revive older messages."""
    async with with_agents(Recorder()) as hw:
        await asyncio.sleep(100)
        for old_id, seconds, message_id in (("81", 90, "100"), ("82", 50, "60"), ("83", 95, None)):
            await hw.stop_all(
                "s",
                sent_at=START + timedelta(seconds=seconds),
                message_id=message_id,
                route=CHAT,
            )
            await moment()
            assert await _is_stale(hw, sent_at=START + timedelta(seconds=80))
            assert await _is_stale(hw, message_id=old_id, route=CHAT)


@virtual_time
async def test_s9_the_cutoff_is_the_sessions_own_and_outlives_its_idle_times() -> None:
    async with with_agents(Recorder(), idle_sessions=0) as hw:
        await hw.stop_all("s", message_id="100", route=CHAT)
        await asyncio.sleep(3600)
        assert await _is_stale(hw, message_id="9", route=CHAT)
        other = await hw.submit("a", "x", session="t", message_id="8", route=CHAT)
        assert ending(await other.wait()) == "done"


@virtual_time
async def test_s9_tasks_and_firings_are_never_stale() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.stop_all("s", message_id="100")
        for source in ("task", "firing", "heartbeat"):
            assert await hw.send("a", "x", session="s", source=source) == "re: x"


@virtual_time
async def test_s9_a_stale_message_can_be_told_from_its_error() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.stop_all("s", message_id="100", route=CHAT)
        with pytest.raises(MessageStale) as refusal:
            await hw.send("a", "x", session="s", message_id="9", route=CHAT)
        await moment()
        view = await hw.run(refusal.value.run_id)
        assert view.state is State.CANCELLED


class Family:
    """Parent, child and grandchild, each waiting for the next; the last works for 100 s."""

    def __init__(self, deaf: float = 0.0) -> None:
        self.hw = Headway()
        self.leaf = Recorder(takes=100, deaf=deaf)
        self.hw.agent("grandchild")(self.leaf)

        @self.hw.agent("parent")
        async def parent(turn: Turn) -> str:
            return await turn.delegate("child", session="child")

        @self.hw.agent("child")
        async def child(turn: Turn) -> str:
            return await turn.delegate("grandchild", "x", session="grandchild")

    async def begin(self) -> Handle:
        handle = await self.hw.submit("parent", session="top")
        await asyncio.sleep(1)
        assert self.leaf.live == 1
        return handle


@pytest.mark.parametrize("command", ["/stop", "/stopall"])
@pytest.mark.parametrize(("session", "running"), [("top", 3), ("child", 2), ("grandchild", 1)])
def test_x3_descendants_are_stopped_from_whichever_session(
    command: str, session: str, running: int
) -> None:
    @virtual_time
    async def main() -> None:
        family = Family()
        async with family.hw as hw:
            handle = await family.begin()
            assert await hw.command(session, command) == f"{running} running stopped"
            await handle.wait()
            await moment()
            assert family.leaf.cancelled == ["x"]
            assert now_s() == pytest.approx(1)
            assert hw.sessions() == {}
            states = {str(view.run.agent): view.state.value for view in (await hw.runs()).runs}
            assert states["grandchild"] == "cancelled"

    main()


@virtual_time
async def test_x3_waiting_descendants_are_stopped_too() -> None:
    family = Family()
    async with family.hw as hw:
        hw.set_lane("subagent", 0)
        handle = await hw.submit("parent", session="top")
        await asyncio.sleep(1)
        assert str(await handle.cancel()) == "1 running and 1 waiting stopped"
        await handle.wait()
        hw.set_lane("subagent", 5)
        await asyncio.sleep(1)
        assert family.leaf.turns == []


@virtual_time
async def test_x3_descendants_whose_parent_has_ended_are_stopped_with_the_session() -> None:
    leaf = Recorder(takes=100)
    hw = with_agents(leaf)

    @hw.agent("parent")
    async def parent(turn: Turn) -> str:
        await turn.submit("a", "goes on")
        return "done"

    async with hw:
        await hw.send("parent", session="top")
        await asyncio.sleep(1)
        assert leaf.live == 1
        assert await hw.command("top", "/stopall") == "1 running stopped"
        await moment()
        assert leaf.cancelled == ["goes on"]


@pytest.mark.parametrize("how", ["/stop", "/stopall", "cancel"])
def test_x3_a_stopped_turn_that_tries_to_start_a_sub_run_is_refused(how: str) -> None:
    @virtual_time
    async def main() -> None:
        leaf = Recorder()
        hw = with_agents(leaf)
        refused: list[str] = []

        @hw.agent("stubborn")
        async def stubborn(turn: Turn) -> str:
            await deaf_sleep(5)
            for start in (turn.submit, turn.delegate):
                with pytest.raises(TurnOver) as refusal:
                    await start("a", "too late")
                refused.append(refusal.value.run_id)
            return "returned"

        async with hw:
            handle = await hw.submit("stubborn", session="s")
            await asyncio.sleep(1)
            if how == "cancel":
                await handle.cancel()
            else:
                await hw.command("s", how)
            await handle.wait()
            assert refused == [handle.id, handle.id]
            assert leaf.turns == []
            assert len((await hw.runs(agent="a")).runs) == 0

    main()


@virtual_time
async def test_x3_a_sub_run_asked_for_in_the_same_moment_as_the_stop_is_refused() -> None:
    """The stop is decided before the turn hears of it; the sub-run must not slip through."""
    leaf = Recorder()
    hw = with_agents(leaf)
    asked: list[object] = []

    @hw.agent("parent")
    async def parent(turn: Turn) -> str:
        await asyncio.sleep(1)
        order = Order("order", turn.session, Stop())
        hw.engine.kernel.carry_out(order, turn.start.epoch, None, 0)
        try:
            asked.append(await turn.submit("a", "slips"))
        except TurnOver as refusal:
            asked.append(refusal)
        return "x"

    async with hw:
        handle = await hw.submit("parent", session="s")
        await handle.wait()
        await asyncio.sleep(5)
        assert isinstance(asked[0], TurnOver)
        assert leaf.turns == []


@virtual_time
async def test_x3_a_turn_that_has_ended_can_start_nothing_more() -> None:
    turns: list[Turn] = []
    hw = with_agents(Recorder())

    @hw.agent("keeper")
    async def keeper(turn: Turn) -> str:
        turns.append(turn)
        return "done"

    async with hw:
        await hw.send("keeper")
        with pytest.raises(TurnOver):
            await turns[0].submit("a", "afterwards")


@virtual_time
async def test_x3_a_turn_may_stop_its_own_session() -> None:
    hw = with_agents(Recorder())

    @hw.agent("quitter")
    async def quitter(turn: Turn) -> str:
        await hw.stop_all(turn.session)
        await asyncio.sleep(10)
        return "never"

    async with hw:
        first = await hw.submit("quitter", session="s")
        second = await hw.submit("a", "waits", session="s")
        assert await endings(first, second) == ["cancelled/stopped"] * 2
        assert now_s() == 0


@virtual_time
async def test_s9_new_messages_run_after_a_stopall() -> None:
    recorder = Recorder(takes=5, deaf=2)
    async with with_agents(recorder, queue=quick_queue()) as hw:
        await hw.submit("a", "old", session="s", route=CHAT)
        await asyncio.sleep(1)
        await hw.command("s", "/stopall", route=CHAT)
        assert await hw.send("a", "new", session="s", route=CHAT) == "re: new"
        assert recorder.started_at == pytest.approx([0, 3])
