"""What must hold for every value: alarms, buckets, durations, merging, requests, commands."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from headway.core.alarms import Alarm, Alarms
from headway.core.bucket import Bucket
from headway.core.commands import parse
from headway.core.merge import merged
from headway.core.request import AGENT_CHECKS, QUEUE_OPTIONS, Composer, queue_options
from headway.core.retry import delay
from headway.model.errors import InvalidInput
from headway.model.outcome import Attachment
from headway.model.run import AgentName, LaneName, Route, Run, RunId, Sender, SessionKey
from headway.model.settings import AgentSettings
from headway.model.time import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    as_datetime,
    instant_of,
    instant_text,
    span,
    span_text,
)
from headway.model.words import Source, Word

SUBMIT_OPTIONS = [
    "session",
    "source",
    "lane",
    "priority",
    "attachments",
    "route",
    "sender",
    "message_id",
    "sent_at",
    "due",
    "deadline",
    "timeout",
    "mode",
    "cap",
    "drop",
    "debounce",
    "steer_fallback",
    "max_concurrent",
    "max_attempts",
    "retries",
    "preemptible",
    "trace_id",
    "idempotency_key",
    "on_repeat",
]
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=30),
    st.binary(max_size=5),
    st.datetimes(timezones=st.one_of(st.none(), st.timezones(), st.just(UTC))),
    st.timedeltas(),
    st.from_regex(r"[0-9]{1,30}(\.[0-9]{1,30})?(ms|s|m|h|d|w)?", fullmatch=True),
    st.sampled_from(["task", "collect", "old", "retry", Source.FIRING, Route("web"), Sender("x")]),
    st.lists(st.one_of(st.text(max_size=3), st.just(Attachment("a"))), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def refusal(call: Callable[[], object]) -> InvalidInput | None:
    """How a call was refused, if it was. Any other error is a failure of the test."""
    try:
        call()
    except InvalidInput as refused:
        return refused
    return None


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("set"), st.integers(0, 50)),
            st.tuples(st.just("cancel"), st.integers(0, 99)),
            st.tuples(st.just("ring"), st.integers(0, 10)),
        ),
        min_size=20,
        max_size=80,
    )
)
def test_f5_alarms_ring_like_a_sorted_list(steps: list[tuple[str, int]]) -> None:
    alarms: Alarms[str] = Alarms()
    model: dict[str, tuple[int, int]] = {}
    handles: list[tuple[str, Alarm[str]]] = []
    now = 0
    for number, (step, value) in enumerate(steps):
        match step:
            case "set":
                name = f"bell{number}"
                handles.append((name, alarms.set(now + value, name)))
                model[name] = (now + value, number)
            case "cancel" if handles:
                name, alarm = handles[value % len(handles)]
                alarms.cancel(alarm)
                model.pop(name, None)
            case _:
                now += value
                due = sorted((key, name) for name, key in model.items() if key[0] <= now)
                rung = [(alarm.at, alarm.bell) for alarm in alarms.take_due(now)]
                assert rung == [(at, name) for (at, _), name in due]
                for _, name in due:
                    del model[name]
        assert len(alarms) == len(model)
        earliest = min((at for at, _ in model.values()), default=None)
        assert alarms.next_at == earliest
        assert earliest is None or alarms.due_at <= earliest


@given(
    st.integers(1, 200),
    st.lists(st.tuples(st.integers(0, 90 * SECOND), st.integers(0, 50)), min_size=5, max_size=30),
)
def test_x6_a_bucket_is_exact(per_minute: int, steps: list[tuple[int, int]]) -> None:
    """`next_at` is the first instant with a token, and no window gives more than its worth."""
    bucket = Bucket(per_minute, 0)
    now = taken = 0
    for wait, count in steps:
        now += wait
        for _ in range(count):
            free_at = bucket.next_at(now)
            assert free_at >= now
            assert bucket.has_one(now) == (free_at == now)
            if free_at > now:
                assert not bucket.has_one(free_at - 1)
                assert bucket.has_one(free_at)
                now = free_at
            bucket.take(1, now)
            taken += 1
    assert taken <= per_minute + now * per_minute // MINUTE


@given(
    st.lists(
        st.tuples(st.integers(0, 10_000), st.sampled_from(["ms", "s", "m", "h", "d"])),
        min_size=1,
        max_size=5,
    )
)
def test_g_a_written_duration_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    units = {"ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
    total = sum(number * units[unit] for number, unit in parts)
    text = "".join(f"{number}{unit}" for number, unit in parts)
    if total <= 365_000 * DAY:
        assert span(text, "x") == total


@given(st.integers(0, 10_000 * DAY))
@example(59_999_999)
@example(999_999)
def test_g_a_shown_duration_reads_back_as_what_it_was(microseconds: int) -> None:
    """Exact where it can be said exactly; else within what three figures, or a second, can say."""
    again = span(span_text(microseconds), "x")
    allowed = SECOND // 2 if microseconds >= MINUTE else microseconds // 150
    assert abs(again - microseconds) <= allowed


@given(st.integers(1, 10_000 * 86_400))
def test_g_whole_seconds_and_whole_milliseconds_read_back_exactly(number: int) -> None:
    assert span(span_text(number * SECOND), "x") == number * SECOND
    few = number % 1000 * MILLISECOND
    assert span(span_text(few), "x") == few


@given(ANYTHING)
def test_g_a_duration_is_read_or_refused_and_nothing_else(value: object) -> None:
    refused = refusal(lambda: span(value, "wait"))
    if refused is None:
        assert span(value, "wait") >= 0
    else:
        assert refused.field == "wait"


@given(st.datetimes(timezones=st.just(UTC)))
def test_g_instants_round_trip(moment: datetime) -> None:
    instant = instant_of(moment, "at")
    assert as_datetime(instant) == moment
    assert datetime.fromisoformat(instant_text(instant)) - moment <= timedelta(milliseconds=1)


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_c9_a_retry_waits_within_its_bounds(retry: int, jitter: float) -> None:
    plain = min(2 * 2 ** min(retry, 20), 30) * SECOND
    assert 0.75 * plain <= delay(retry, jitter) <= 1.25 * plain


TEXTS = st.lists(
    st.tuples(st.text(max_size=20), st.lists(st.text(max_size=3), max_size=3)),
    min_size=1,
    max_size=8,
)


@given(TEXTS)
def test_s7_merging_keeps_every_text_and_every_attachment_in_order(
    parts: list[tuple[str, list[str]]],
) -> None:
    runs = [
        Run(
            RunId(f"r{number}"),
            AgentName("a"),
            SessionKey("s"),
            Source.MESSAGE,
            LaneName("main"),
            0,
            number,
            text,
            tuple(Attachment(name) for name in names),
        )
        for number, (text, names) in enumerate(parts)
    ]
    whole = merged(runs)
    assert whole.text == "\n".join(text for text, _ in parts if text)
    assert [each.name for each in whole.attachments] == [n for _, names in parts for n in names]
    assert whole.merged_from == tuple(run.id for run in runs)
    assert whole.id not in whole.merged_from


@given(
    st.dictionaries(st.sampled_from(SUBMIT_OPTIONS), ANYTHING, max_size=4),
    st.one_of(st.text(max_size=5), ANYTHING),
    st.booleans(),
)
def test_g_a_request_becomes_a_run_or_invalid_input_that_names_its_field(
    options: dict[str, object], text: object, delegated: bool
) -> None:
    composer = Composer(AgentName("a"), AgentSettings())
    parent = composer.compose(RunId("r0"), "", {}, 10**15) if delegated else None

    def compose() -> Run:
        return composer.compose(RunId("r1"), text, options, 10**15, parent)  # type: ignore[arg-type]

    refused = refusal(compose)
    if refused is None:
        run = compose()
        for instant in (run.due_at, run.deadline_at, run.sent_at):
            assert instant is None or instant_text(instant)
    else:
        assert refused.field in {*options, "text"}
        assert refused.allowed
        assert str(refused).startswith(f"{refused.field}: ")


@given(st.text(max_size=12), ANYTHING)
def test_g_an_unknown_option_is_refused_whatever_it_holds(name: str, value: object) -> None:
    composer = Composer(AgentName("a"), AgentSettings())
    if name not in SUBMIT_OPTIONS:
        refused = refusal(lambda: composer.compose(RunId("r1"), "", {name: value}, 10**15))
        assert refused is not None
        assert refused.field == name


@given(st.sampled_from(sorted(AGENT_CHECKS)), ANYTHING)
def test_g_an_agents_option_is_read_or_refused(name: str, value: object) -> None:
    refused = refusal(lambda: AGENT_CHECKS[name](value, name))
    assert refused is None or refused.field == name


@given(
    st.dictionaries(
        st.one_of(st.sampled_from(sorted(QUEUE_OPTIONS)), st.text(max_size=5)), ANYTHING
    )
)
def test_s5_queue_options_are_read_or_refused(options: dict[str, object]) -> None:
    refused = refusal(lambda: queue_options(options))
    assert refused is None or refused.field in options


COMMAND_WORDS = st.one_of(
    st.sampled_from(
        (
            "/stop /stopall /queue /QUEUE@bot status clear reset collect cap: cap:5 drop:old "
            f"debounce:2s mode:steer debounce:9d9d cap:{'9' * 5000}"
        ).split()
    ),
    st.text(max_size=10),
)


@given(st.lists(COMMAND_WORDS, max_size=5), st.sampled_from([" ", "  ", "\n", "\t", ""]))
def test_s5_s9_any_text_is_a_command_or_not_or_a_clear_refusal(
    words: list[str], between: str
) -> None:
    text = between.join(words)
    refused = refusal(lambda: parse(text))
    start = text.strip().lower()
    if refused is None:
        assert parse(text) is None or start.startswith(("/stop", "/queue"))
    else:
        assert start.startswith("/queue")
        assert refused.field in {"queue", *QUEUE_OPTIONS}


@given(st.text())
def test_s9_text_without_a_slash_is_never_a_command(text: str) -> None:
    if not text.strip().startswith("/"):
        assert parse(text) is None


@given(st.sampled_from([word for kind in Word.__subclasses__() for word in kind]))
def test_g_words_are_plain_lower_case(word: Word) -> None:
    assert word == word.value.lower()
    assert word.replace("_", "").isalpha()
