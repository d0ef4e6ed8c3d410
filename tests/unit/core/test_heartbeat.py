"""Heartbeats: when an agent is woken, what it is told, and who hears its answer (H-1 to H-4)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from headway.core.acknowledgement import TOKEN, without_token
from headway.core.heartbeat import (
    COALESCE,
    REPEAT_WINDOW,
    SPACING,
    Alert,
    Go,
    Silent,
    Skip,
    cadence,
    has_content,
    in_hours,
    judge,
    look,
    next_in_hours,
    next_wake,
    phase,
    read_hours,
    text_key,
)
from headway.model.errors import InvalidInput
from headway.model.heartbeat import DEFAULT_PROMPT, HeartbeatSettings
from headway.model.hours import ActiveHours
from headway.model.run import AgentName, Route
from headway.model.schedule import Every
from headway.model.time import HOUR, MILLISECOND, MINUTE, SECOND, Instant, as_timedelta, instant_of
from headway.model.words import HeartbeatSkip

ALL_WELL = Silent(HeartbeatSkip.ALL_WELL)
SHORT = "Inbox read, nothing new."
LONG = "The disk of db-2 is almost full. " * 12 + "Please look."
assert len(SHORT) < 300 < len(LONG)

INLINE_WRAPPERS = [
    ("", ""),
    ("*", "*"),
    ("_", "_"),
    ("**", "**"),
    ("__", "__"),
    ("***", "***"),
    ("**_", "_**"),
    ("~~", "~~"),
    ("||", "||"),
    ("`", "`"),
    ("``", "``"),
    ("```", "```"),
    ("**`", "`**"),
    ("`**", "**`"),
    ("** ", " **"),
    ('"', '"'),
    ("'", "'"),
    ("\u201c", "\u201d"),
    ("\u201e", "\u201c"),
    ("\u2018", "\u2019"),
    ("«", "»"),
    ("« ", " »"),
    ("「", "」"),
    ("(", ")"),
    ("[", "]"),
    ("<", ">"),
    ("<b>", "</b>"),
    ("<B>", "</b>"),
    ("<strong>", "</strong>"),
    ("<i>", "</i>"),
    ("<em>", "</em>"),
    ("<code>", "</code>"),
    ("<pre><code>", "</code></pre>"),
    ('<span class="ok">', "</span>"),
    ("<b><i>", "</i></b>"),
    ("<b>**", "**</b>"),
    ("<p>", "</p>"),
    ("<p>\n  ", "\n</p>"),
]
LINE_WRAPPERS = [
    ("```\n", "\n```"),
    ("```text\n", "\n```"),
    ("``` \n", "\n```"),
    ("~~~\n", "\n~~~"),
    ("````markdown\n", "\n````"),
    ("# ", ""),
    ("### **", "**"),
    ("> ", ""),
    (">> ", ""),
    ("- ", ""),
    ("* ", ""),
    ("+ ", ""),
    ("• ", ""),
    ("- [x] ", ""),
    ("1. ", ""),
    ("2) ", ""),
    ("- **", "**"),
    ("<div>\n<p>", "</p>\n</div>"),
]
PUNCTUATION = ["", ".", "!", "!!!", "…", "...", "?", ":", ",", ";", "\u3002", "\uff01"]


def said(opening: str, closing: str) -> list[str]:
    """The token in its wrapping, with every punctuation inside it and outside."""
    return [
        *(f"{opening}{TOKEN}{stop}{closing}" for stop in PUNCTUATION),
        *(f"{opening}{TOKEN}{closing}{stop}" for stop in PUNCTUATION),
    ]


def check(reply: str, rest: str) -> None:
    """The reply says the token, and this beside it."""
    assert (reply, without_token(reply)) == (reply, rest)
    assert judge(reply, False, 300) == (Alert(rest) if len(rest) > 300 else ALL_WELL)


@pytest.mark.parametrize(("opening", "closing"), [*INLINE_WRAPPERS, *LINE_WRAPPERS])
def test_h3_the_token_alone_is_silent_in_every_wrapping(opening: str, closing: str) -> None:
    for token in said(opening, closing):
        for reply in (token, f"\n  {token}\t\n", f"\ufeff{token}\u200b", f"{token}\r\n"):
            check(reply, "")
            assert judge(reply, False, 0) == ALL_WELL


@pytest.mark.parametrize(("opening", "closing"), INLINE_WRAPPERS)
def test_h3_the_token_on_the_line_of_a_text(opening: str, closing: str) -> None:
    for token in said(opening, closing):
        for text in (SHORT, LONG, f"**{LONG}**", f"`db-2` {LONG}", f"<i>{LONG}</i>"):
            check(f"{token} {text}", text)
            check(f"{text} {token}", text)


@pytest.mark.parametrize(("opening", "closing"), [*INLINE_WRAPPERS, *LINE_WRAPPERS])
def test_h3_the_token_on_lines_of_its_own(opening: str, closing: str) -> None:
    texts = (
        SHORT,
        LONG,
        f"**Alert**: {LONG}",
        f"- {LONG}\n- and more",
        f"1. {LONG}\n2. and more",
        f"## Disk\n\n{LONG}",
        f"> {LONG}",
        f"```\n{LONG}\n```",
        f"| disk |\n|---|\n| {LONG} |",
        f"<p>{LONG}</p>",
    )
    for token in said(opening, closing):
        for text in texts:
            for gap in ("\n", "\n\n", "\r\n\r\n", "\n \n"):
                check(f"{token}{gap}{text}", text)
                check(f"{text}{gap}{token}", text)


@pytest.mark.parametrize(
    ("reply", "rest"),
    [
        # A wrapping around more than the token stays with the text.
        (f"**{TOKEN} all is well**", "**all is well**"),
        (f"**all is well {TOKEN}**", "**all is well**"),
        (f"<p>{TOKEN} all is well</p>", "<p>all is well</p>"),
        (f"<p>all is well. <b>{TOKEN}</b></p>", "<p>all is well.</p>"),
        (f"<p><b>{TOKEN}</b> all is well</p>", "<p>all is well</p>"),
        (f"<p>{TOKEN}</p><p>all is well</p>", "<p>all is well</p>"),
        (f'"{TOKEN}, all is well"', '"all is well"'),
        (f"```text\n{TOKEN}\nall is well\n```", "```text\nall is well\n```"),
        (f"```\nall is well\n{TOKEN}\n```", "```\nall is well\n```"),
        (f"- {TOKEN}: all is well\n- so far", "- all is well\n- so far"),
        (f"> {TOKEN}\n> all is well", "> all is well"),
        (f"- all is well\n- {TOKEN}", "- all is well"),
        (f"1. {TOKEN}\n2. all is well", "2. all is well"),
        # What follows is not taken for the end of the wrapping.
        (f"* {TOKEN} *so far* well", "* *so far* well"),
        (f"{TOKEN} **all** is well", "**all** is well"),
        (f"**{TOKEN}** **all** is well", "**all** is well"),
        (f"**all** is **well** {TOKEN}", "**all** is **well**"),
        (f"{TOKEN}\n---\nall is well", "all is well"),
        (f"all is well\n\n---\n\n{TOKEN}", "all is well"),
        (f"{TOKEN}\n  - all\n  - is well", "  - all\n  - is well"),
        # What leads from one to the other goes with the token.
        (f"{TOKEN} - all is well", "all is well"),
        (f"{TOKEN} — all is well", "all is well"),
        (f"{TOKEN}- all is well", "all is well"),
        (f"{TOKEN}—all is well", "all is well"),
        (f"{TOKEN} : all is well", "all is well"),
        (f"{TOKEN} | all is well", "all is well"),
        (f"{TOKEN} -5 °C outside", "-5 °C outside"),
        (f"all is well - {TOKEN}", "all is well"),
        (f"all is well: {TOKEN}", "all is well"),
        (f"all is well ({TOKEN}).", "all is well"),
        (f"All is well. {TOKEN}.", "All is well."),
        (f"All is well.{TOKEN}", "All is well."),
        (f"{TOKEN}.All is well", "All is well"),
        # More than one.
        (f"{TOKEN}\n\n{TOKEN}", ""),
        (f"**{TOKEN}** all is well `{TOKEN}`", "all is well"),
        (f"{TOKEN}, {TOKEN}! all is well", "all is well"),
        # Signs without letters are no text before it, but they are kept.
        (f"✅ {TOKEN} all is well", "✅ all is well"),
        (f"all is well {TOKEN} ✅", "all is well ✅"),
        (f"{TOKEN} 👍", "👍"),
        # Escaped, as Markdown of some channels wants it; and in scripts without spaces.
        (r"HEARTBEAT\_OK", ""),
        (r"*HEARTBEAT\_OK* all is well", "all is well"),
        (f"{TOKEN}一切正常", "一切正常"),
        (f"一切正常{TOKEN}", "一切正常"),
        (f"{TOKEN}<br/>", ""),
        (f"&nbsp;{TOKEN}&nbsp;", ""),
        (f"<{TOKEN}/>", ""),
        (f"[bot] {TOKEN}", "[bot]"),
    ],
)
def test_h3_the_token_is_removed_cleanly(reply: str, rest: str) -> None:
    check(reply, rest)
    assert judge(reply, True, 300) == Alert(rest)


@pytest.mark.parametrize(
    "reply",
    [
        f"I would answer {TOKEN} if the disk were not full",
        f"The disk is full. **{TOKEN}** it is not.",
        f"I did not say `{TOKEN}`, see below",
        f"{TOKEN}AY",
        f"{TOKEN}_NOT",
        f"{TOKEN}2",
        f"{TOKEN}É",
        f"{TOKEN}e\u0301",
        f"{TOKEN}\u0301",
        f"NOT_{TOKEN}",
        f"NOT__{TOKEN}__",
        f"X{TOKEN}",
        f"3{TOKEN}",
        f"not-{TOKEN}",
        f"{TOKEN}-ish",
        f"{TOKEN}'s meaning",
        f"{TOKEN}/2",
        f"replies/{TOKEN}",
        f"{TOKEN}.md is gone",
        "heartbeat_ok",
        "Heartbeat_OK",
        "HEARTBEAT OK",
        "HEARTBEAT-OK",
        "HEARTBEATOK",
        "HEARTBEAT_O K",
        "OK",
        "The disk is full.",
        ".",
    ],
)
def test_h3_in_the_middle_or_in_a_longer_word_it_is_text(reply: str) -> None:
    assert without_token(reply) is None
    assert judge(reply, False, 300) == Alert(reply)
    assert judge(reply, True, 300) == Alert(reply)


@pytest.mark.parametrize(
    "character",
    ["x", "é", "ж", "水", "👍", "\U0001f9d1", "\u0301", "\u200d", "\ufe0f"],
)
@pytest.mark.parametrize("form", ["{token} {rest}", "{rest} {token}", "**{token}**\n\n{rest}"])
def test_h3_the_rest_is_counted_in_characters_not_in_bytes(form: str, character: str) -> None:
    fits, too_long = f"a{character * 298}z", f"a{character * 299}z"
    assert judge(form.format(token=TOKEN, rest=fits), False, 300) == ALL_WELL
    assert judge(form.format(token=TOKEN, rest=too_long), False, 300) == Alert(too_long)


@pytest.mark.parametrize(
    ("shown", "characters"),
    [
        ("👍", 1),
        ("👍🏽", 2),
        ("🇫🇷", 2),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", 5),
        ("e\u0301", 2),
        ("\u00e9", 1),
    ],
)
def test_h3_what_people_see_as_one_sign_counts_by_its_code_points(
    shown: str, characters: int
) -> None:
    reply = f"{TOKEN} {shown}"
    assert judge(reply, False, characters) == ALL_WELL
    assert judge(reply, False, characters - 1) == Alert(shown)


def test_h3_with_no_characters_allowed_only_the_token_itself_is_silent() -> None:
    assert judge(f"**{TOKEN}**!", False, 0) == ALL_WELL
    assert judge(f"{TOKEN} ok", False, 0) == Alert("ok")


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (TOKEN, ""),
        (f"**{TOKEN}**.", ""),
        (f"{TOKEN} see the chart", "see the chart"),
        (f"see the chart {TOKEN}", "see the chart"),
        ("see the chart", "see the chart"),
        ("", ""),
    ],
)
def test_h3_attachments_are_always_delivered(reply: str, text: str) -> None:
    assert judge(reply, True, 300) == Alert(text)


@pytest.mark.parametrize("reply", ["", " ", "\n\t\r\n", "\u00a0", "\ufeff", "\u200b \u200b"])
def test_h3_an_empty_reply_is_silent(reply: str) -> None:
    assert judge(reply, False, 300) == Silent(HeartbeatSkip.EMPTY_REPLY)


MANY = 100_000


@pytest.mark.parametrize(
    ("reply", "silent"),
    [
        ("*" * MANY + TOKEN + "*" * MANY, True),
        ("*_" * MANY + TOKEN + "_*" * MANY, True),
        ("<b>" * MANY + TOKEN + "</b>" * MANY, True),
        ("\n-" * MANY + TOKEN, True),
        (TOKEN + "\n " * MANY + "x", True),
        (TOKEN + " " * MANY + "." * MANY + "x", False),
        ("<a " * MANY + TOKEN + "<a " * MANY, False),
        (f"{TOKEN} " * MANY, False),
        ("```a\n" * MANY + TOKEN + "\n```" * MANY, False),
    ],
    ids=["stars", "mixed", "tags", "bullets", "lines", "dots", "half tags", "tokens", "fences"],
)
def test_h3_a_huge_reply_is_judged_like_any_other(reply: str, silent: bool) -> None:
    """Work that grew faster than the reply would take minutes here."""
    assert (judge(reply, False, 300) == ALL_WELL) is silent


def local(text: str, zone: str = "UTC", fold: int = 0) -> Instant:
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return instant_of(moment.astimezone(UTC), "at")


@pytest.mark.parametrize(
    ("written", "start", "end"),
    [
        ("22:00-06:00", 1320, 360),
        ("9:00-17:30", 540, 1050),
        (" 09:00 - 17:30 ", 540, 1050),
        ("09:00–17:30", 540, 1050),
        ("00:00-24:00", 0, 1440),
        ("22:00-24:00", 1320, 1440),
        ("22:00-00:00", 1320, 0),
        (("22:00", "06:00"), 1320, 360),
        (["08:15", "24:00"], 495, 1440),
        ("23:59-00:00", 1439, 0),
    ],
)
def test_h1_hours_are_read(written: object, start: int, end: int) -> None:
    assert read_hours(written, "Europe/Paris") == ActiveHours(start, end, "Europe/Paris")


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ("", "hours"),
        ("22:00", "hours"),
        ("22:00-06:00-07:00", "hours"),
        ("at night", "hours"),
        (None, "hours"),
        (22, "hours"),
        (("22:00",), "hours"),
        (("22:00", "06:00", "07:00"), "hours"),
        ((22, 6), "hours"),
        (b"22:00-06:00", "hours"),
        ({"start": "22:00", "end": "06:00"}, "hours"),
        ("08:00-08:00", "hours"),
        ("00:00-00:00", "hours"),
        ("22-06:00", "hours.start"),
        ("24:00-06:00", "hours.start"),
        ("25:00-06:00", "hours.start"),
        ("22:60-06:00", "hours.start"),
        ("-06:00", "hours.start"),
        ("22:0-06:00", "hours.start"),
        ("22:00pm-06:00", "hours.start"),
        ("222:00-06:00", "hours.start"),
        ("\u0662\u0662:\u0660\u0660-06:00", "hours.start"),
        (("", "06:00"), "hours.start"),
        ("22:00-6", "hours.end"),
        ("22:00-24:01", "hours.end"),
        ("22:00-06:00:00", "hours.end"),
        ("22:00-", "hours.end"),
        (("22:00", "6 am"), "hours.end"),
    ],
)
def test_h1_malformed_hours_are_refused_naming_the_field(written: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_hours(written)
    assert refused.value.field == field


def test_h1_the_refusal_of_empty_hours_says_how_to_write_a_whole_day() -> None:
    with pytest.raises(InvalidInput, match=r"two times that differ; 00:00-24:00 is the whole day"):
        read_hours("08:00-08:00")


@pytest.mark.parametrize(
    "zone", ["Mars/Base", "", "Europe", "../passwd", "/etc/localtime", "a\0b", "x" * 999, None, 1]
)
def test_h1_an_unknown_zone_is_refused(zone: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_hours("22:00-06:00", zone)
    assert refused.value.field == "tz"


@pytest.mark.parametrize(
    ("hours", "time", "inside"),
    [
        ("22:00-06:00", "21:59", False),
        ("22:00-06:00", "21:59:59.999999", False),
        ("22:00-06:00", "22:00", True),
        ("22:00-06:00", "23:59:59", True),
        ("22:00-06:00", "00:00", True),
        ("22:00-06:00", "05:59", True),
        ("22:00-06:00", "05:59:59.999999", True),
        ("22:00-06:00", "06:00", False),
        ("22:00-06:00", "12:00", False),
        ("09:00-17:30", "08:59", False),
        ("09:00-17:30", "09:00", True),
        ("09:00-17:30", "17:29", True),
        ("09:00-17:30", "17:30", False),
        ("22:00-24:00", "21:59", False),
        ("22:00-24:00", "23:59:59.999999", True),
        ("22:00-24:00", "00:00", False),
        ("22:00-00:00", "23:59", True),
        ("22:00-00:00", "00:00", False),
        ("00:00-06:00", "00:00", True),
        ("00:00-06:00", "23:59", False),
        ("00:00-24:00", "00:00", True),
        ("00:00-24:00", "23:59:59.999999", True),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/Sao_Paulo", "Asia/Tokyo", "Asia/Kathmandu"])
def test_h1_the_start_is_in_the_hours_and_the_end_is_not(
    zone: str, hours: str, time: str, inside: bool
) -> None:
    assert in_hours(read_hours(hours, zone), local(f"2026-05-04T{time}", zone)) is inside


@pytest.mark.parametrize(
    ("hours", "utc", "inside"),
    [
        # 29 March 2026 in Paris: 02:00 is 03:00. The night is an hour shorter.
        ("22:00-06:00", "2026-03-28T20:59", False),
        ("22:00-06:00", "2026-03-28T21:00", True),
        ("22:00-06:00", "2026-03-29T00:59", True),
        ("22:00-06:00", "2026-03-29T01:00", True),
        ("22:00-06:00", "2026-03-29T03:59", True),
        ("22:00-06:00", "2026-03-29T04:00", False),
        ("22:00-06:00", "2026-03-29T19:59", False),
        ("22:00-06:00", "2026-03-29T20:00", True),
        ("02:00-03:00", "2026-03-29T00:59", False),
        ("02:00-03:00", "2026-03-29T01:00", False),
        ("02:30-04:00", "2026-03-29T00:59", False),
        ("02:30-04:00", "2026-03-29T01:00", True),
        # 25 October 2026: 03:00 is 02:00 again. The night is an hour longer.
        ("22:00-06:00", "2026-10-24T19:59", False),
        ("22:00-06:00", "2026-10-24T20:00", True),
        ("22:00-06:00", "2026-10-25T00:59", True),
        ("22:00-06:00", "2026-10-25T01:00", True),
        ("22:00-06:00", "2026-10-25T04:59", True),
        ("22:00-06:00", "2026-10-25T05:00", False),
        ("22:00-06:00", "2026-10-25T20:59", False),
        ("22:00-06:00", "2026-10-25T21:00", True),
        ("02:00-03:00", "2026-10-25T00:00", True),
        ("02:00-03:00", "2026-10-25T00:59", True),
        ("02:00-03:00", "2026-10-25T01:00", True),
        ("02:00-03:00", "2026-10-25T01:59", True),
        ("02:00-03:00", "2026-10-25T02:00", False),
        ("02:00-02:30", "2026-10-25T00:30", False),
        ("02:00-02:30", "2026-10-25T01:00", True),
    ],
)
def test_h1_hours_follow_the_wall_clock_through_the_nights_that_change_it(
    hours: str, utc: str, inside: bool
) -> None:
    assert in_hours(read_hours(hours, "Europe/Paris"), local(utc)) is inside


@pytest.mark.parametrize(("day", "hours_long"), [("2026-03-28", 7), ("2026-10-24", 9)])
def test_h1_the_whole_night_is_in_the_hours_minute_by_minute(day: str, hours_long: int) -> None:
    hours = read_hours("22:00-06:00", "Europe/Paris")
    noon = local(f"{day}T12:00", "Europe/Paris")
    inside = [minute for minute in range(1440) if in_hours(hours, noon + minute * MINUTE)]
    assert inside == list(range(600, 600 + hours_long * 60))


@pytest.mark.parametrize(
    ("hours", "now", "then"),
    [
        ("22:00-06:00", "2026-05-04T23:15:20", "2026-05-04T23:15:20"),
        ("22:00-06:00", "2026-05-04T06:00", "2026-05-04T22:00"),
        ("22:00-06:00", "2026-05-04T21:59:59.5", "2026-05-04T22:00"),
        ("09:00-17:00", "2026-05-04T17:00", "2026-05-05T09:00"),
        ("09:00-17:00", "2026-03-28T17:30:10", "2026-03-29T09:00"),
        ("09:00-17:00", "2026-10-24T17:30:10", "2026-10-25T09:00"),
        ("02:30-04:00", "2026-03-28T12:00", "2026-03-29T03:00"),
        ("02:10-02:40", "2026-03-28T12:00", "2026-03-30T02:10"),
        ("02:10-02:40", "2026-10-24T12:00", "2026-10-25T02:10"),
    ],
)
def test_h1_the_next_instant_in_the_hours(hours: str, now: str, then: str) -> None:
    paris = "Europe/Paris"
    assert next_in_hours(read_hours(hours, paris), local(now, paris)) == local(then, paris)


def test_h1_hours_that_come_twice_in_a_night_are_both_found() -> None:
    hours = read_hours("02:10-02:40", "Europe/Paris")
    between = local("2026-10-25T02:45", "Europe/Paris", fold=0)
    assert next_in_hours(hours, between) == local("2026-10-25T02:10", "Europe/Paris", fold=1)


@pytest.mark.parametrize(
    "checklist",
    [
        "",
        " ",
        "\n\n\t\n",
        "\ufeff",
        "#",
        "# Heartbeat",
        "\ufeff# Heartbeat\r\n\r\n## Mornings\r\n",
        "###### Deep",
        "  # Indented",
        "Heartbeat\n=========\n",
        "<!-- nothing yet -->",
        "<!--\n- buy milk\n- call Bob\n-->",
        "# Heartbeat <!-- of Ada -->\n<!-- one --> <!-- two -->\n",
        "<!---->",
        "<!-->",
        "<!--->",
        "-",
        "*",
        "+",
        "•",
        "- ",
        "- [ ]",
        "- [ ] ",
        "- [x]",
        "- []",
        "* [X]",
        "[ ]",
        "1.",
        "1. ",
        "12)",
        "1. [ ]",
        "- -",
        "  - \n    * \n",
        ">",
        "> -",
        "- <!-- an example -->",
        "---",
        "- - -",
        "***",
        "___",
        "=====",
        "```\n```",
        "```markdown\n# Heartbeat\n```",
        "~~~\n~~~",
        "# Heartbeat\n\n<!-- Add what is to be looked after. -->\n\n- [ ]\n-\n\n---\n",
    ],
)
def test_h2_a_checklist_of_nothing_but_its_form_has_no_content(checklist: str) -> None:
    assert not has_content(checklist)


@pytest.mark.parametrize(
    "checklist",
    [
        "Look after the inbox",
        "- buy milk",
        "* x",
        "- [ ] buy milk",
        "- [x] buy milk",
        "1. buy milk",
        "1) buy milk",
        "12",
        "1.5",
        "-5",
        "-x",
        "> buy milk",
        "[notes](notes.md)",
        "#todo",
        "####### seven",
        "水を飲む",
        "👀",
        "?",
        "# Heartbeat\n\n- [ ]\n- [ ] buy milk\n",
        "<!-- a --> buy milk <!-- b -->",
        "<!-- a -->\nbuy milk\n<!-- b -->",
        "<!-->\nbuy milk\n<!-- b -->",
        "# Heartbeat <!-- over\ntwo lines --> buy milk",
        "<!-- never closed\nbuy milk",
        "buy milk <!--",
        "-->",
        "```\nbuy milk\n```",
        "**buy milk**",
        "**",
        "buy milk\n---",
        "Heartbeat\n===\nbuy milk",
        "---\nbuy milk\n---",
    ],
)
def test_h2_a_checklist_with_something_on_it_has_content(checklist: str) -> None:
    assert has_content(checklist)


DAYTIME = read_hours("08:00-22:00", "Europe/Paris")
NOON = local("2026-05-04T12:00", "Europe/Paris")
NIGHT = local("2026-05-04T23:00", "Europe/Paris")


@pytest.mark.parametrize(
    ("prompt", "checklist", "found"),
    [
        ("", None, Skip(HeartbeatSkip.NO_CHECKLIST)),
        ("  \n", None, Skip(HeartbeatSkip.NO_CHECKLIST)),
        ("", "", Skip(HeartbeatSkip.EMPTY_CHECKLIST)),
        ("", "# Heartbeat\n- [ ]", Skip(HeartbeatSkip.EMPTY_CHECKLIST)),
        ("Look around.", "# Heartbeat\n- [ ]", Skip(HeartbeatSkip.EMPTY_CHECKLIST)),
        ("Look around.", None, Go("Look around.")),
        ("Look around.\n", "\n- buy milk\n", Go("Look around.\n\n---\n\n- buy milk")),
        ("", "# Today\n- buy milk", Go(f"{DEFAULT_PROMPT}\n\n---\n\n# Today\n- buy milk")),
    ],
)
def test_h2_an_agent_is_woken_if_there_is_something_to_do(
    prompt: str, checklist: str | None, found: Skip | Go
) -> None:
    for hours in (None, DAYTIME):
        settings = HeartbeatSettings(prompt=prompt, hours=hours)
        assert look(settings, checklist, NOON) == found
    settings = HeartbeatSettings(prompt=prompt, hours=DAYTIME)
    assert look(settings, checklist, NIGHT) == Skip(HeartbeatSkip.OUTSIDE_HOURS)


def test_h2_the_built_in_prompt_names_the_token() -> None:
    assert TOKEN in DEFAULT_PROMPT


CHAT = Route("telegram", "bot", "42", "7")
ADA = AgentName("ada")


@pytest.mark.parametrize(
    "again",
    ["The disk is full.", "  The disk\nis full.\n", "The\u00a0disk is\t\tfull."],
)
def test_h2_the_same_alert_has_the_same_key_whatever_its_white_space(again: str) -> None:
    assert text_key(ADA, CHAT, again) == text_key(ADA, CHAT, "The disk is full.")


def test_h2_another_alert_agent_or_place_has_another_key() -> None:
    keys = [
        text_key(ADA, CHAT, "full"),
        text_key(ADA, CHAT, "Full"),
        text_key(ADA, CHAT, "full."),
        text_key(ADA, CHAT, ""),
        text_key(AgentName("bob"), CHAT, "full"),
        text_key(ADA, None, "full"),
        text_key(ADA, Route(""), "full"),
        text_key(ADA, Route("telegram", "bot", "42"), "full"),
        text_key(ADA, Route("telegram", "bot", "427"), "full"),
        text_key(ADA, Route("telegrambot", "", "42", "7"), "full"),
        text_key(ADA, CHAT, "full \udc80"),
    ]
    assert len(set(keys)) == len(keys)


def test_h2_a_key_is_the_same_in_every_process() -> None:
    assert text_key(ADA, CHAT, "The disk is full.") == "b7d0af18e45c7765ebdca106f2e8b937"


def test_h1_a_phase_is_the_same_in_every_process() -> None:
    assert phase(ADA, 30 * MINUTE) == 152_513_651


@pytest.mark.parametrize("interval", [1, 7, SECOND, 30 * MINUTE, 24 * HOUR])
def test_h1_a_phase_is_within_the_interval(interval: int) -> None:
    assert all(0 <= phase(AgentName(f"a{number}"), interval) < interval for number in range(500))


def test_h1_agents_are_spread_over_the_interval() -> None:
    tenths = [0] * 10
    for number in range(2_000):
        tenths[phase(AgentName(f"agent-{number}"), 30 * MINUTE) // (3 * MINUTE)] += 1
    assert min(tenths) > 150
    assert max(tenths) < 250


def test_h1_an_agent_keeps_its_share_of_another_interval() -> None:
    assert abs(phase(ADA, 60 * MINUTE) - 2 * phase(ADA, 30 * MINUTE)) <= 1


def test_h1_the_cadence_is_anchored_and_shown_in_the_zone_of_the_hours() -> None:
    anchor = phase(ADA, 10 * MINUTE)
    assert cadence(ADA, HeartbeatSettings(interval=10 * MINUTE)) == Every(10 * MINUTE, anchor)
    settings = HeartbeatSettings(interval=10 * MINUTE, hours=DAYTIME)
    assert cadence(ADA, settings) == Every(10 * MINUTE, anchor, "Europe/Paris")


@pytest.mark.parametrize(
    ("last_start", "manual", "pending", "wait"),
    [
        (None, False, None, COALESCE),
        (None, True, None, COALESCE),
        (-HOUR, False, None, COALESCE),
        (-SPACING, False, None, COALESCE),
        (-29 * SECOND, False, None, SECOND),
        (-SPACING + 100 * MILLISECOND, False, None, COALESCE),
        (-SECOND, False, None, 29 * SECOND),
        (0, False, None, SPACING),
        (-SECOND, True, None, COALESCE),
        (0, True, None, COALESCE),
        # The clock was an hour ahead at the latest start.
        (HOUR, False, None, SPACING),
        # Others joined it, or it joins another.
        (None, False, 100 * MILLISECOND, 100 * MILLISECOND),
        (None, False, SECOND, COALESCE),
        (0, False, 10 * SECOND, 10 * SECOND),
        (0, True, 10 * SECOND, COALESCE),
    ],
)
def test_h4_wakes_coalesce_and_keep_their_distance(
    last_start: int | None, manual: bool, pending: int | None, wait: int
) -> None:
    asked = NOON
    started_at = None if last_start is None else asked + last_start
    pending_at = None if pending is None else asked + pending
    assert next_wake(asked, started_at, manual, pending_at) == asked + wait


def test_h4_a_burst_of_wakes_is_one() -> None:
    asks = [NOON + number * 10 * MILLISECOND for number in range(20)]
    pending: Instant | None = None
    for asked_at in asks:
        pending = next_wake(asked_at, None, False, pending)
    assert pending == NOON + COALESCE


def test_h2_h4_the_spans_are_those_of_the_rule() -> None:
    assert as_timedelta(COALESCE) == timedelta(milliseconds=250)
    assert as_timedelta(SPACING) == timedelta(seconds=30)
    assert as_timedelta(REPEAT_WINDOW) == timedelta(hours=24)
