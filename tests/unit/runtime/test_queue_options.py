"""S-5: whose queue options count, and how a chat changes them."""

import asyncio
from types import MappingProxyType

import pytest

from headway import Drop, Headway, Mode, Route, SessionBusy
from headway.model.run import QueueOptions
from headway.model.settings import QueueSettings
from headway.testing import virtual_time
from tests.unit.runtime.worlds import (
    CHAT,
    Recorder,
    ask,
    endings,
    moment,
    now_s,
    quick_queue,
    with_agents,
)

SLACK = Route("slack", peer="42")
CHANNELS = MappingProxyType({"slack": QueueOptions(mode=Mode.REJECT, debounce=0)})


async def _is_refused(hw: Headway, route: Route | None = None, **options: str) -> bool:
    """Whether a second message is refused, that is: whether `reject` is in force for it."""
    await hw.submit("a", "first", session="s", debounce=0, mode="queue")
    await moment()
    try:
        place = {} if route is None else {"route": route}
        await ask(hw, "a", "second", {"session": "s", "debounce": 0, **place, **options})
    except SessionBusy:
        return True
    finally:
        await hw.stop_all("s")
    return False


@virtual_time
async def test_s5_the_built_in_mode_is_queue() -> None:
    async with with_agents(Recorder()) as hw:
        assert not await _is_refused(hw)


@virtual_time
async def test_s5_global_comes_before_built_in() -> None:
    async with with_agents(Recorder(), queue=quick_queue(mode=Mode.REJECT)) as hw:
        assert await _is_refused(hw)
        assert await _is_refused(hw, CHAT)


@virtual_time
async def test_s5_channel_comes_before_global() -> None:
    async with with_agents(Recorder(), queue=quick_queue(), channels=CHANNELS) as hw:
        assert await _is_refused(hw, SLACK)
        assert not await _is_refused(hw, CHAT)


@virtual_time
async def test_s5_session_comes_before_channel() -> None:
    async with with_agents(Recorder(), channels=CHANNELS) as hw:
        await hw.set_queue("s", mode="followup")
        assert not await _is_refused(hw, SLACK)


@virtual_time
async def test_s5_the_message_itself_comes_first() -> None:
    async with with_agents(Recorder(), channels=CHANNELS) as hw:
        await hw.set_queue("s", mode="followup")
        assert await _is_refused(hw, SLACK, mode="reject")
        await hw.set_queue("s", mode="reject")
        assert not await _is_refused(hw, SLACK, mode="queue")


@virtual_time
async def test_s5_each_option_is_looked_up_on_its_own() -> None:
    """The session says only the cap; mode and drop come from wider scopes."""
    recorder = Recorder()
    channels = MappingProxyType({"slack": QueueOptions(drop=Drop.NEW)})
    async with with_agents(recorder, queue=quick_queue(cap=5), channels=channels) as hw:
        await hw.set_queue("s", cap=1)
        for text in ("running", "waits"):
            await hw.submit("a", text, session="s", route=SLACK)
        with pytest.raises(Exception, match="queue_full"):
            await hw.submit("a", "too many", session="s", route=SLACK)


@virtual_time
async def test_s5_debounce_is_the_channels_800_ms_for_routes_and_0_for_the_library() -> None:
    recorder = Recorder(takes=0)
    async with with_agents(recorder) as hw:
        await hw.send("a", "library", session="s")
        await hw.send("a", "channel", session="s", route=CHAT)
        assert recorder.started_at == pytest.approx([0, 0.8])
        assert QueueSettings().cap == 10


@virtual_time
async def test_s5_queue_command_sets_the_options_of_its_session_alone() -> None:
    recorder = Recorder(takes=0)
    async with with_agents(recorder) as hw:
        reply = await hw.command("s", "/queue collect debounce:2s cap:25 drop:summarize")
        assert reply is not None
        for part in ("mode collect", "cap 25", "drop summarize", "debounce 2s"):
            assert part in reply
        mine = await hw.submit("a", "mine", session="s", route=CHAT)
        other = await hw.submit("a", "other", session="t", route=CHAT)
        await endings(mine, other)
        assert dict(zip(recorder.started, recorder.started_at, strict=True)) == pytest.approx(
            {"other": 0.8, "mine": 2.0}
        )


@virtual_time
async def test_s5_a_second_queue_command_keeps_what_it_does_not_name() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.command("s", "/queue collect cap:25")
        await hw.command("s", "/queue drop:new")
        reply = await hw.command("s", "/queue status")
        assert reply is not None
        for part in ("mode collect", "cap 25", "drop new"):
            assert part in reply


@virtual_time
async def test_s5_queue_status_counts_what_runs_and_waits() -> None:
    async with with_agents(Recorder()) as hw:
        for text in ("running", "one", "two"):
            await hw.submit("a", text, session="s")
        await hw.submit("a", "buffered", session="s", debounce="1s")
        await moment()
        reply = await hw.command("s", "/queue status")
        assert reply is not None
        assert reply.startswith("1 running, 3 waiting; mode queue, cap 10, drop old")
        assert await hw.command("s", "/queue") == reply


@virtual_time
async def test_s5_queue_status_shows_the_options_of_the_sessions_channel() -> None:
    async with with_agents(Recorder(takes=5), channels=CHANNELS) as hw:
        await hw.submit("a", "x", session="s", route=SLACK)
        await moment()
        reply = await hw.command("s", "/queue status", route=SLACK)
        assert reply is not None
        assert "mode reject" in reply


@virtual_time
async def test_s5_queue_clear_ends_what_waits_and_counts_it() -> None:
    async with with_agents(Recorder()) as hw:
        running = await hw.submit("a", "running", session="s")
        waiting = [await hw.submit("a", text, session="s") for text in ("one", "two")]
        task = await hw.submit("a", "task", session="s", source="task")
        await moment()
        assert await hw.command("s", "/queue clear") == "2 waiting cleared"
        assert await endings(running, *waiting, task) == [
            "done",
            "cancelled/cleared",
            "cancelled/cleared",
            "done",
        ]


@virtual_time
async def test_s5_queue_reset_follows_the_wider_settings_again() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.command("s", "/queue reject")
        assert await _is_refused(hw)
        await hw.command("s", "/queue reset")
        assert not await _is_refused(hw)


@virtual_time
async def test_s5_options_of_a_session_outlive_its_idle_times() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.set_queue("s", mode="reject")
        for _ in range(3):
            assert await _is_refused(hw)
            await asyncio.sleep(3600)
        assert hw.sessions() == {}


@virtual_time
async def test_s5_options_count_for_a_message_in_the_same_moment() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.set_queue("s", debounce="3s")
        await hw.send("a", "x", session="s")
        assert now_s() == pytest.approx(4)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("/queue collct", "queue"),
        ("/queue cap:0", "cap"),
        ("/queue cap:-1", "cap"),
        ("/queue cap:many", "cap"),
        ("/queue drop:oldest", "drop"),
        ("/queue debounce:500x", "debounce"),
        ("/queue debounce:5 minutes", "queue"),
        ("/queue colour:red", "queue"),
    ],
)
def test_s5_a_bad_queue_command_says_what_is_wrong_and_changes_nothing(
    text: str, field: str
) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            before = await hw.command("s", "/queue status")
            reply = await hw.command("s", text)
            assert reply is not None
            assert reply.startswith(f"{field}: ")
            assert "it must be" in reply
            assert await hw.command("s", "/queue status") == before

    main()


@pytest.mark.parametrize(
    "text", ["hello", "", "/stopp", "/stop now please", "stop", "/queues", "a /stop", "/start"]
)
def test_s5_ordinary_text_is_no_command(text: str) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            assert await hw.command("s", text) is None

    main()


@virtual_time
async def test_s5_modes_are_for_messages_alone() -> None:
    """Tasks, firings and heartbeats always wait their turn, whatever the session's mode and cap."""
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await hw.set_queue("s", mode="reject", cap=1)
        await hw.submit("a", "running", session="s")
        handles = [
            await hw.submit("a", f"{source} {number}", session="s", source=source)
            for source in ("task", "firing", "heartbeat")
            for number in (1, 2)
        ]
        assert await endings(*handles) == ["done"] * 6
