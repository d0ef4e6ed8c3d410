"""What must hold for every reply, checklist and zone of a heartbeat (H-1 to H-4)."""

import re
from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import assume, example, given
from hypothesis import strategies as st

from headway.core.acknowledgement import TOKEN, without_token
from headway.core.heartbeat import (
    COALESCE,
    SPACING,
    Alert,
    Silent,
    has_content,
    in_hours,
    judge,
    next_in_hours,
    next_wake,
    phase,
    read_hours,
    text_key,
)
from headway.model.errors import InvalidInput
from headway.model.hours import ActiveHours
from headway.model.run import AgentName, Route
from headway.model.time import DAY, MINUTE, SECOND, Instant, instant_of
from headway.model.words import HeartbeatSkip

MARKUP = [
    *("**", "__", "*", "_", "`", "```", "~~~", "~~", "||", '"', "'", "(", ")", "[", "]", "«", "»"),
    *(
        "#",
        "##",
        ">",
        "-",
        "+",
        "|",
        "\\",
        "&",
        "&nbsp;",
        "<",
        "<b",
        "</",
        "<b>",
        "</b>",
        "<p>",
        "</p>",
    ),
    *(
        "<br/>",
        "</i>",
        "---",
        ".",
        "!",
        "…",
        ":",
        ",",
        ";",
        "?",
        "👍",
        "\u200b",
        "\ufeff",
        "\u0301",
    ),
]
SPACE = [" ", "  ", "\n", "\n\n", "\t", "\r\n", ""]
REPLIES = st.lists(
    st.one_of(
        st.sampled_from([TOKEN, *MARKUP, *SPACE]),
        st.sampled_from([TOKEN, "x", "Disk full", "一切正常", "3.", "HEARTBEAT", "_OK", "y" * 150]),
        st.text(max_size=8),
    ),
    max_size=12,
).map("".join)
ATTACHED = st.booleans()
AT_MOST = st.integers(0, 400)


@given(REPLIES, ATTACHED, AT_MOST)
def test_h3_any_reply_is_judged_and_silence_means_that_little_was_said(
    reply: str, attached: bool, at_most: int
) -> None:
    rest = without_token(reply)
    match judge(reply, attached, at_most):
        case Silent(reason=HeartbeatSkip.ALL_WELL):
            assert TOKEN in reply
            assert rest is not None
            assert len(rest) <= at_most
            assert not attached
        case Silent(reason=reason):
            assert reason is HeartbeatSkip.EMPTY_REPLY
            assert not re.search(r"\w", reply)
            assert not attached
        case Alert(text=text):
            assert text == (reply if rest is None else rest)
            assert attached or rest is None or len(rest) > at_most


@given(REPLIES)
@example(f"{TOKEN} {TOKEN}")
@example(f"- {TOKEN}\n- **{TOKEN}** and more {TOKEN}")
def test_h3_no_word_is_lost_with_the_token_and_none_is_made_up(reply: str) -> None:
    # What names a language or ticks a box goes with the token, so it is left out here.
    assume(not re.search(r"```|~~~|\[x\]", reply, re.IGNORECASE))
    rest = without_token(reply)
    if rest is not None:
        kept, before = letters(rest), letters(reply)
        at_the_edges = r"(?:HEARTBEATOK)*"
        assert re.fullmatch(f"{at_the_edges}{re.escape(kept)}{at_the_edges}", before)
        assert len(kept) < len(before)


def letters(text: str) -> str:
    return "".join(re.findall(r"[^\W\d_]", re.sub(r"</?[A-Za-z]+/?>|&nbsp;", "", text)))


@given(st.text(alphabet="ab \n.*`", max_size=40))
def test_h3_a_text_without_the_token_is_delivered_as_it_is(reply: str) -> None:
    assert judge(reply, True, 300) == Alert(reply)
    if reply.strip():
        assert judge(reply, False, 300) == Alert(reply)


WRAPPINGS = [
    ("**", "**"),
    ("_", "_"),
    ("`", "`"),
    ("```\n", "\n```"),
    ("<b>", "</b>"),
    ("<p>\n", "\n</p>"),
    ('"', '"'),
    ("(", ")"),
    ("「", "」"),
]
PLAIN = st.from_regex(r"[a-z][a-z0-9 ]{0,30}[a-z][.!?]?", fullmatch=True)


@given(
    st.lists(st.sampled_from(WRAPPINGS), max_size=4),
    st.sampled_from(["", ".", "!", "…", "?!"]),
    PLAIN,
    st.sampled_from(["\n", "\n\n", "\r\n\r\n"]),
)
def test_h3_wrappings_may_be_nested_as_one_likes(
    wrappings: list[tuple[str, str]], stop: str, text: str, gap: str
) -> None:
    wrapped = TOKEN
    for opening, closing in wrappings:
        wrapped = f"{opening}{wrapped}{closing}"
    for reply in (f"{wrapped}{stop}", f"{stop}{wrapped}"):
        assert without_token(reply) == ""
    assert without_token(f"{wrapped}{stop}{gap}{text}") == text
    assert without_token(f"{text}{gap}{wrapped}{stop}") == text


FORM = st.sampled_from(
    [
        "# Title",
        "",
        "  ",
        "-",
        "* ",
        "- [ ]",
        "1.",
        "<!-- a -->",
        "<!--\n- b\n-->",
        "---",
        ">",
        "====",
    ]
)


@given(st.lists(FORM, max_size=10), st.lists(FORM, max_size=10), PLAIN)
def test_h2_only_what_is_written_counts(above: list[str], below: list[str], text: str) -> None:
    assert not has_content("\n".join([*above, *below]))
    for line in (text, f"- {text}", f"- [ ] {text}", f"1. {text}", f"> {text}"):
        # A line under it would make a title of it.
        assert has_content("\n".join([*above, line, "", *below]))


@given(st.text(max_size=60))
def test_h2_any_checklist_can_be_looked_at(checklist: str) -> None:
    if not has_content(checklist):
        above, *_ = checklist.split("\n=")
        assert not re.match(r"[^\W\d]", above)


ZONES = ["UTC", "Europe/Paris", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]
HOURS = st.builds(
    ActiveHours, st.integers(0, 1439), st.integers(0, 1440), st.sampled_from(ZONES)
).filter(lambda hours: hours.start != hours.end)
# Days on which one of the zones changes its clocks, and days beside them.
DAYS = [
    "2026-03-07",
    "2026-03-28",
    "2026-04-04",
    "2026-06-10",
    "2026-10-03",
    "2026-10-24",
    "2026-10-31",
]
INSTANTS: st.SearchStrategy[Instant] = st.builds(
    lambda day, shift: instant_of(datetime.fromisoformat(day).replace(tzinfo=UTC), "at") + shift,
    st.sampled_from(DAYS),
    st.integers(0, 2 * DAY),
)


@given(HOURS, INSTANTS)
def test_h1_the_next_instant_in_the_hours_is_the_first(hours: ActiveHours, now: Instant) -> None:
    found = next_in_hours(hours, now)
    assert found >= now
    assert in_hours(hours, found)
    if found > now:
        assert found % MINUTE == 0
        minutes = range(now, found, MINUTE)
        assert not any(in_hours(hours, instant) for instant in (*minutes, found - 1))


def refused_field(written: object) -> str | None:
    try:
        read_hours(written)
    except InvalidInput as refused:
        return refused.field
    return None


@given(st.integers(0, 1439), st.integers(0, 1440), st.sampled_from("-–"), st.booleans())
def test_h1_hours_read_as_they_were_written(start: int, end: int, dash: str, pair: bool) -> None:
    first, last = (f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (start, end))
    written = (first, last) if pair else f"{first}{dash}{last}"
    assert refused_field(written) == ("hours" if start == end else None)
    if start != end:
        assert read_hours(written) == ActiveHours(start, end)


@given(st.one_of(st.text(max_size=12), st.tuples(st.text(max_size=6), st.text(max_size=6))))
def test_h1_hours_are_read_or_refused_and_nothing_else(written: object) -> None:
    field = refused_field(written)
    assert field in {"hours", "hours.start", "hours.end", None}
    if field is None:
        hours = read_hours(written)
        assert 0 <= hours.start < 1440
        assert 0 <= hours.end <= 1440


@given(st.text(max_size=20), st.integers(1, 400 * DAY))
def test_h1_a_phase_is_in_its_interval_and_stable(agent: str, interval: int) -> None:
    found = phase(AgentName(agent), interval)
    assert 0 <= found < interval
    assert found == phase(AgentName(agent), interval)


@given(
    st.lists(st.tuples(st.integers(0, 90 * SECOND), st.booleans()), min_size=1, max_size=30),
    st.integers(-60 * SECOND, 0),
)
def test_h4_whatever_is_asked_starts_keep_their_distance_unless_a_person_asks(
    asks: list[tuple[int, bool]], last_start: int
) -> None:
    started: list[tuple[Instant, bool]] = [(last_start, False)]
    pending: Instant | None = None
    by_hand = False
    for asked_at, manual in sorted(asks):
        if pending is not None and pending <= asked_at:
            started.append((pending, by_hand))
            pending, by_hand = None, False
        pending = next_wake(asked_at, started[-1][0], manual, pending)
        by_hand = by_hand or manual
        assert asked_at < pending <= asked_at + SPACING
        assert not manual or pending <= asked_at + COALESCE
    for (before, _), (after, manual) in pairwise(started):
        assert manual or after - before >= SPACING


@given(st.text(max_size=30), st.text(max_size=30))
def test_h2_alerts_share_a_key_if_they_differ_in_white_space_alone(one: str, other: str) -> None:
    agent, route = AgentName("a"), Route("log")
    same = text_key(agent, route, one) == text_key(agent, route, other)
    assert same == (one.split() == other.split())
