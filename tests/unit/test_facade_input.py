"""Bad input: the error names the field and what is allowed, and nothing is kept."""

from datetime import datetime, timedelta
from typing import cast

import pytest

from headway import (
    AgentSettings,
    Attachment,
    Headway,
    InvalidInput,
    LaneSettings,
    Limits,
    Mode,
    NotFound,
    QueueOptions,
    QueueSettings,
    Route,
    Sender,
    Settings,
    Turn,
)
from headway.core.session_key import session_key
from headway.facade import LimitChoices
from headway.model.run import AgentName, LaneName
from headway.model.settings import MAX_TEXT
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Recorder, ask, moment, with_agents

NAIVE = datetime(2025, 6, 15, 12, 0)  # noqa: DTZ001

BAD_OPTIONS: list[tuple[str, object, str]] = [
    ("mode", "quue", "queue, followup, collect, steer, interrupt, reject"),
    ("mode", 5, "queue, followup"),
    ("mode", ["queue"], "queue, followup"),
    ("drop", "oldest", "old, new, summarize"),
    ("steer_fallback", "queue", "interrupt, followup"),
    ("source", "person", "message, task, firing, heartbeat, delegation"),
    ("on_repeat", "again", "replay, retry"),
    ("on_repeat", [], "replay, retry"),
    ("cap", -1, "whole number from 1"),
    ("cap", 0, "whole number from 1"),
    ("cap", "10", "whole number"),
    ("cap", True, "whole number"),
    ("cap", 2.5, "whole number"),
    ("max_concurrent", 0, "whole number from 1"),
    ("max_attempts", 0, "whole number from 1"),
    ("retries", -1, "whole number from 0"),
    ("priority", "high", "whole number"),
    ("priority", 101, "-100 to 100"),
    ("preemptible", "yes", "True or False"),
    ("session", "", "1 to 512 characters"),
    ("session", 42, "a text"),
    ("session", "x" * 513, "512"),
    ("session", "a\0b", "a text"),
    ("lane", "", "1 to 512 characters"),
    ("message_id", 42, "a text"),
    ("idempotency_key", "", "1 to 512 characters"),
    ("trace_id", 42, "a text"),
    ("route", "telegram", "a Route"),
    ("sender", "ann", "a Sender"),
    ("attachments", "pic.png", "a list of Attachment"),
    ("attachments", ["pic.png"], "a list of Attachment"),
    ("attachments", Attachment("x"), "a list of Attachment"),
    ("sent_at", NAIVE, "time zone"),
    ("sent_at", "yesterday", "time zone"),
    ("sent_at", 1_750_000_000, "time zone"),
    ("due", NAIVE, "time zone"),
    ("due", "tomorrow", "duration"),
    ("deadline", NAIVE, "time zone"),
    ("deadline", [], "duration"),
    *[
        (field, bad, "500ms, 30s, 10m, 1.5h, 1d or 1h30m")
        for field in ("debounce", "timeout", "deadline", "due")
        for bad in (
            "500x",
            "5 minutes",
            "",
            "s",
            "1.s",
            "-5s",
            "30",
            "1h 30m",
            "1e3s",
            "∞s",
            "9" * 400 + "d",
            -1,
            30,
            1.5,
            True,
            timedelta(seconds=-1),
            None.__class__,
        )
    ],
]


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    BAD_OPTIONS,
    ids=[f"{field}={str(value)[:20]!r}" for field, value, _ in BAD_OPTIONS],
)
def test_a_bad_option_names_its_field_and_what_is_allowed(
    field: str, value: object, allowed: str
) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            with pytest.raises(InvalidInput) as refusal:
                await ask(hw, "a", "x", {field: value})
            assert refusal.value.field == field
            assert allowed in str(refusal.value)
            assert len(str(refusal.value)) < 400
            await _nothing_is_kept(hw)

    main()


async def _nothing_is_kept(hw: Headway) -> None:
    await moment()
    assert (await hw.runs()).runs == ()
    assert hw.sessions() == {}
    assert not hw.engine._handles


GOOD_DURATIONS = {
    "500ms": 0.5,
    "30s": 30,
    "10m": 600,
    "1.5h": 5400,
    "1d": 86400,
    "1h30m": 5400,
    "0": 0,
    "0s": 0,
}


@pytest.mark.parametrize("text", list(GOOD_DURATIONS))
def test_g_durations_that_people_write(text: str) -> None:
    @virtual_time
    async def main() -> None:
        recorder = Recorder(takes=0)
        async with with_agents(recorder) as hw:
            await hw.send("a", "x", debounce=text)
            await hw.send("a", "y", debounce=timedelta(seconds=GOOD_DURATIONS[text]))
            seconds = GOOD_DURATIONS[text]
            assert recorder.started_at == pytest.approx([seconds, 2 * seconds])

    main()


@pytest.mark.parametrize("agent", ["", "nobody", None, 5, [], {}, b"a"], ids=repr)
def test_an_unknown_agent_is_refused_by_name(agent: object) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder(), Recorder()) as hw:
            with pytest.raises(InvalidInput, match="agent") as refusal:
                await hw.send(agent, "x")  # type: ignore[arg-type]
            assert refusal.value.field == "agent"
            assert "one of: a, b" in str(refusal.value)
            await _nothing_is_kept(hw)

    main()


@virtual_time
async def test_a_misspelt_agent_gets_a_suggestion() -> None:
    hw = Headway()
    hw.agent("support")(Recorder())
    async with hw:
        with pytest.raises(InvalidInput, match="did you mean 'support'"):
            await hw.send("suport", "x")


@virtual_time
async def test_without_agents_the_error_says_that_there_are_none() -> None:
    async with Headway() as hw:
        with pytest.raises(InvalidInput, match="none yet"):
            await hw.send("a", "x")


@virtual_time
async def test_an_unknown_option_is_refused_with_a_suggestion() -> None:
    async with with_agents(Recorder()) as hw:
        with pytest.raises(InvalidInput, match="did you mean 'mode'") as refusal:
            await ask(hw, "a", "x", {"mod": "queue"})
        assert refusal.value.field == "mod"
        with pytest.raises(InvalidInput, match="debounce"):
            await ask(hw, "a", "x", {"colour": "red"})
        await _nothing_is_kept(hw)


@pytest.mark.parametrize("text", [5, None, b"bytes", ["x"]], ids=repr)
def test_text_must_be_text(text: object) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            with pytest.raises(InvalidInput, match=r"text: .* it must be a string"):
                await hw.send("a", text)  # type: ignore[arg-type]
            await _nothing_is_kept(hw)

    main()


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_text_over_the_limit_is_refused_in_bytes_of_utf_8(letter: str) -> None:
    @virtual_time
    async def main() -> None:
        recorder = Recorder(takes=0)
        async with with_agents(recorder) as hw:
            fits = letter * (MAX_TEXT // len(letter.encode()))
            with pytest.raises(InvalidInput, match="at most 1048576 bytes") as refusal:
                await hw.send("a", fits + letter)
            assert len(str(refusal.value)) < 400, "the text itself is not repeated"
            await _nothing_is_kept(hw)
            await hw.send("a", fits)
            assert len(recorder.turns[0].text) == len(fits)

    main()


@virtual_time
async def test_text_that_is_no_unicode_is_refused() -> None:
    """A lone surrogate cannot be stored or sent anywhere; it is better refused here."""
    async with with_agents(Recorder()) as hw:
        with pytest.raises(InvalidInput, match="text"):
            await hw.send("a", "broken \ud800")
        await _nothing_is_kept(hw)


@pytest.mark.parametrize(
    "option",
    [
        {"weight": 0},
        {"weight": "2"},
        {"steerable": 1},
        {"provider": ""},
        {"max_inflight": -1},
        {"runs_per_minute": 0},
        {"tokens_per_minute": -5},
        {"timeout": "500x"},
        {"max_attempts": 0},
        {"retries": -1},
        {"lane": ""},
        {"wieght": 2},
    ],
    ids=str,
)
def test_a_bad_option_of_an_agent_is_refused_and_the_agent_is_not_registered(
    option: dict[str, object],
) -> None:
    hw = Headway()
    (field,) = option
    with pytest.raises(InvalidInput) as refusal:
        hw.agent("a", **option)(Recorder())  # type: ignore[arg-type]
    assert refusal.value.field == field
    hw.agent("a")(Recorder())


@pytest.mark.parametrize("name", ["", None, 5, "x" * 513])
def test_a_bad_name_of_an_agent_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput, match="agent"):
        Headway().agent(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("thing", [None, "function", 5])
def test_an_agent_must_be_callable(thing: object) -> None:
    hw = Headway()
    with pytest.raises(InvalidInput, match="function"):
        hw.agent("a")(thing)  # type: ignore[type-var]


@pytest.mark.parametrize(
    "width",
    [
        -1,
        1.5,
        "3",
        True,
        None,
        LaneSettings(3, reserve=4),
        LaneSettings(-1),
        LaneSettings(3, reserve=-1),
    ],
    ids=repr,
)
def test_l1_a_bad_lane_is_refused(width: object) -> None:
    with pytest.raises(InvalidInput, match=r"lanes\.main"):
        Headway(lanes={"main": width})  # type: ignore[dict-item]

    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            with pytest.raises(InvalidInput, match=r"lanes\.main"):
                hw.set_lane("main", width)  # type: ignore[arg-type]
            assert hw.lanes()["main"].width == 30

    main()


@pytest.mark.parametrize("store", ["redis://x", "", 5, "sqlite", "sqlite://", "postgresql://"])
def test_an_unknown_store_is_refused(store: object) -> None:
    with pytest.raises(InvalidInput, match="store"):
        Headway(store)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limit", "value"),
    [("max_queue", -1), ("max_inflight", "5"), ("max_queue_per_agent", None), ("max_quue", 5)],
)
def test_f1_a_bad_limit_is_refused_and_changes_none(limit: str, value: object) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            before = hw.engine.kernel.stage.floor.limits
            with pytest.raises(InvalidInput) as refusal:
                hw.set_limits(**cast(LimitChoices, {"max_inflight_per_agent": 3, limit: value}))
            assert refusal.value.field == limit
            assert hw.engine.kernel.stage.floor.limits == before

    main()


@virtual_time
async def test_f1_a_new_limit_leaves_the_others_alone() -> None:
    async with with_agents(Recorder()) as hw:
        hw.set_limits(max_inflight=5)
        hw.set_limits(max_queue=7)
        limits = hw.engine.kernel.stage.floor.limits
        assert (limits.max_inflight, limits.max_queue, limits.max_queue_per_agent) == (5, 7, 100)


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 1001},
        {"limit": "10"},
        {"state": "runing"},
        {"state": 5},
        {"agent": 5},
        {"session": []},
        {"cursor": 5},
        {"cursor": "nonsense"},
    ],
    ids=str,
)
def test_a_bad_query_is_refused(query: dict[str, object]) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder(takes=0)) as hw:
            await hw.send("a", "x")
            with pytest.raises(InvalidInput) as refusal:
                await hw.runs(**query)  # type: ignore[arg-type]
            assert refusal.value.field in query

    main()


@pytest.mark.parametrize(
    "arguments",
    [
        {"sent_at": NAIVE},
        {"sent_at": "yesterday"},
        {"sent_at": 1_750_000_000},
        {"message_id": 42},
        {"route": "telegram"},
    ],
    ids=str,
)
def test_s9_a_bad_stopall_is_refused_and_stops_nothing(arguments: dict[str, object]) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            handle = await hw.submit("a", "x", session="s")
            await moment()
            (field,) = arguments
            with pytest.raises(InvalidInput) as refusal:
                await hw.stop_all("s", **arguments)  # type: ignore[arg-type]
            assert refusal.value.field == field
            assert (await handle.wait()).ok

    main()


@pytest.mark.parametrize("session", ["", None, 5, "a\0b"], ids=repr)
def test_s9_a_bad_session_is_refused(session: object) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            for call in (hw.stop, hw.stop_all, hw.set_queue):
                with pytest.raises(InvalidInput, match="session"):
                    await call(session)  # type: ignore[arg-type]
            with pytest.raises(InvalidInput, match="session"):
                await hw.command(session, "/stop")  # type: ignore[arg-type]

    main()


@pytest.mark.parametrize("options", [{"cap": 0}, {"mode": "x"}, {"colour": "red"}], ids=str)
def test_s5_bad_queue_options_are_refused(options: dict[str, object]) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            (field,) = options
            with pytest.raises(InvalidInput) as refusal:
                await hw.set_queue("s", **options)  # type: ignore[arg-type]
            assert refusal.value.field == field

    main()


@pytest.mark.parametrize("grace", ["5 minutes", -1, 5, True, "soon"], ids=repr)
def test_l5_a_bad_grace_is_refused_before_anything_is_drained(grace: object) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            for call in (hw.drain, hw.restart, hw.close):
                with pytest.raises(InvalidInput, match="grace"):
                    await call(grace)  # type: ignore[arg-type]
            assert await hw.send("a", "x") == "re: x"

    main()


@virtual_time
async def test_a_deadline_beyond_all_calendars_is_refused_or_can_be_read() -> None:
    """What is admitted must be readable: `turn.deadline` must not raise."""
    read: list[object] = []
    hw = with_agents(Recorder())

    @hw.agent("reader")
    async def reader(turn: Turn) -> str:
        read.append(turn.deadline)
        return "read"

    async with hw:
        with pytest.raises(InvalidInput, match="deadline"):
            await hw.send("reader", deadline="99999999d")
        assert await hw.send("reader", deadline="365d") == "read"


@virtual_time
async def test_none_means_not_said() -> None:
    recorder = Recorder(takes=0)
    async with with_agents(recorder) as hw:
        await ask(hw, "a", "x", {"session": None, "mode": None, "deadline": None, "cap": None})
        await moment()
        assert recorder.started == ["x"]


def test_settings_in_code_are_taken_as_they_are() -> None:
    assert Headway(settings=Settings(retained_runs=5)).settings.retained_runs == 5


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (Settings(queue=QueueSettings(cap=0)), "settings.queue.cap"),
        (Settings(queue=QueueSettings(mode="bogus")), "settings.queue.mode"),  # type: ignore[arg-type]
        (Settings(limits=Limits(max_queue=-1)), "settings.limits.max_queue"),
        (Settings(ageing=-1), "settings.ageing"),
        (Settings(channels={"tg": QueueOptions(cap=-3)}), "settings.channels[...].cap"),
        (Settings(agents={AgentName("a"): AgentSettings(weight=0)}), "settings.agents[...].weight"),
        (Settings(lanes={LaneName("main"): LaneSettings(-1)}), "settings.lanes[...].width"),
        ({}, "settings"),
    ],
    ids=str,
)
def test_settings_made_in_code_are_checked_too(wrong: Settings, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Headway(settings=wrong)
    assert caught.value.field == field


def test_a_mode_may_be_written_as_plain_text() -> None:
    hw = Headway(settings=Settings(queue=QueueSettings(mode="reject")))  # type: ignore[arg-type]
    assert hw.settings.queue.mode is Mode.REJECT


HALF = "half \ud83d"


@pytest.mark.parametrize(
    "option",
    [
        {"session": HALF},
        {"session": HALF, "priority": 1},
        {"idempotency_key": HALF},
        {"traceparent": HALF},
        {"task": {"action": HALF}},
        {"task": {"action": "click", "selector": HALF}},
        {"route": Route("web", peer=HALF)},
        {"route": Route("web", peer="nul\0")},
        {"sender": Sender(HALF)},
    ],
)
@virtual_time
async def test_d2_a_name_that_not_every_store_can_keep_is_refused(
    option: dict[str, object],
) -> None:
    async with with_agents(Recorder()) as hw:
        with pytest.raises(InvalidInput):
            await hw.submit("a", **option)  # type: ignore[arg-type]
        await _nothing_is_kept(hw)


@virtual_time
async def test_d2_nothing_is_sought_that_not_every_store_can_be_asked_for() -> None:
    async with with_agents(Recorder()) as hw:
        for odd in (HALF, "nul\0"):
            for asked in (hw.run(odd), hw.cancel(odd), hw.why(odd), hw.position(odd)):
                with pytest.raises(NotFound):
                    await asked
            for listed in (hw.runs(agent=odd), hw.runs(session=odd), hw.letters(channel=odd)):
                with pytest.raises(InvalidInput):
                    await listed
            with pytest.raises(InvalidInput):
                await hw.session(odd)
            assert not await hw.retry_letter(odd)


@virtual_time
async def test_s1_a_message_without_a_session_goes_where_its_route_leads() -> None:
    """The same place is the same session, whether a program submits it or a client posts it; another never is."""
    async with with_agents(Recorder()) as hw:
        keys = []
        for route in (
            Route("web", peer="42"),
            Route("web", account="42"),
            Route("web", thread="42"),
        ):
            handle = await hw.submit("a", "hello", route=route)
            keys.append((await hw.run(handle.id)).run.session)
            assert keys[-1] == session_key(AgentName("a"), route)
        assert len(set(keys)) == 3


@pytest.mark.parametrize("name", ["", HALF, "nul\0", 5])
def test_names_of_nodes_channels_and_functions_are_refused_by_what_they_are(name: str) -> None:
    hw = Headway("memory://")
    with pytest.raises(InvalidInput, match=r"^name: "):
        Headway("memory://", name=name)
    with pytest.raises(InvalidInput, match=r"^name: "):
        hw.use_name(name)
    with pytest.raises(InvalidInput, match=r"^function: "):
        hw.function(name)
    for register in (hw.channel, hw.remote_channel):
        with pytest.raises(InvalidInput, match=r"^channel: "):
            register(name)
