"""Values come back from the database as they went in, whatever a person or an agent wrote into them."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import Attachment, Outcome, Reply, Route, State
from headway.model.errors import InvalidInput
from headway.model.heartbeat import HeartbeatSettings
from headway.model.hours import ActiveHours
from headway.model.job import MAX_SUMMARY, Job
from headway.model.payload import Ask, Execute, Gate, Payload, Say
from headway.model.places import (
    Answer,
    Cancel,
    Clear,
    Command,
    Configure,
    Delivery,
    Standing,
    Stop,
    StopAll,
)
from headway.model.run import (
    AgentName,
    Firing,
    JobId,
    LaneName,
    QueueOptions,
    Run,
    RunId,
    Sender,
    SessionKey,
    SessionMemory,
)
from headway.model.schedule import At, Cron, Every, Schedule
from headway.model.task import Task
from headway.model.token import Token
from headway.model.words import Drop, Misfire, Mode, Overlap, Reason, Rule, Scope, Source
from headway.store import codec
from headway.store.keys import is_freed, keys_of

ODD = "a\0b\x1f\\u0000 \N{GRINNING FACE} \u202e\"'%s\n"
HALF = "half of a pair: \ud83d"

RUN = Run(
    RunId("r-1"),
    AgentName("a"),
    SessionKey(f"s {ODD}"),
    Source.MESSAGE,
    LaneName("main"),
    3,
    1_700_000_000_000_000,
    text=ODD,
    attachments=(Attachment("a.png", "image/png", "file:///a.png"),),
    route=Route("telegram", peer="42"),
    sender=Sender("u", "owner"),
    message_id=ODD,
    queue=QueueOptions(mode=Mode.COLLECT, drop=Drop.SUMMARIZE, debounce=0),
    ancestors=(RunId("p"), RunId("q")),
    root=SessionKey("root"),
    overflow=("one",),
    merged_from=(RunId("x"),),
)


def test_a_run_comes_back_as_it_was() -> None:
    assert codec.decode_run(codec.encode_run(RUN)) == RUN


def test_what_is_at_its_default_is_not_written() -> None:
    plain = Run(
        RunId("r"), AgentName("a"), SessionKey("s"), Source.TASK, LaneName("main"), 0, 7, text="t"
    )
    written = json.loads(codec.encode_run(plain))
    assert sorted(written) == sorted(
        ["id", "agent", "session", "source", "lane", "priority", "submitted_at", "text"]
    )
    assert codec.decode_run(codec.encode_run(plain)) == plain
    assert codec.encode_outcome(Outcome(State.DONE)) == '{"state":"done"}'


@pytest.mark.parametrize(
    "task",
    [
        Task("noop"),
        Task(ODD, ODD, ODD, ODD, {ODD: [ODD, None, True, 2.5, 1 << 80]}),
        Task("click", params={"deep": [[[[{"x": [1, {"y": {}}]}]]]], "": -1e300, "n": None}),
        Task("half", params={HALF: [HALF]}),
    ],
    ids=lambda task: task.action[:5],
)
def test_t1_a_task_and_the_span_of_who_asked_come_back_as_they_were(task: Task) -> None:
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    run = msgspec.structs.replace(RUN, source=Source.TASK, task=task, traceparent=parent)
    assert codec.decode_run(codec.encode_run(run)) == run


def test_o4_a_token_comes_back_as_it_was() -> None:
    plain = Token("t", ODD, "d" * 64, (Scope.READ,), 5)
    whole = Token("t", "n", "d" * 64, tuple(Scope), 5, AgentName(ODD), 9)
    for token in (plain, whole):
        assert codec.decode_token(codec.encode_token(token)) == token
    assert codec._StoredToken.__struct_fields__ == Token.__struct_fields__


def test_n20_a_scope_of_a_newer_version_gives_no_right_but_the_token_counts() -> None:
    written = codec.encode_token(Token("t", "n", "d", (Scope.READ, Scope.SUBMIT), 5))
    newer = written.replace("submit", "dream")
    assert codec.decode_token(newer) == Token("t", "n", "d", (Scope.READ,), 5)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(State.DONE),
        Outcome(State.DONE, reply=Reply(ODD, (Attachment("a"),), {"k": [1, None, 2.5, {"": ODD}]})),
        Outcome(State.DONE, reply=Reply("", data=1 << 80)),
        Outcome(State.FAILED, Reason.ERROR, error=ODD),
        Outcome(State.CANCELLED, Reason.MERGED, into="r-2"),
        Outcome(State.DONE, tokens_in=120, tokens_out=7),
        Outcome(State.DONE, reply=Reply(ODD)),
        Outcome(State.DONE, reply=Reply("x", (Attachment("a"),))),
        Outcome(State.DONE, reply=Reply("x", data=0)),
        Outcome(State.DONE, reply=Reply("x"), error="e"),
        Outcome(State.DONE, reply=Reply("x"), into="r-2"),
        Outcome(State.DONE, reply=Reply("x"), tokens_in=1),
        Outcome(State.DONE, reply=Reply("x"), tokens_out=1),
        Outcome(State.DONE, reply=Reply("x"), code="c"),
        Outcome(State.DONE, reply=Reply("x"), details=0),
        Outcome(State.FAILED, Reason.ERROR, reply=Reply("x")),
        Outcome(State.DONE, Reason.STALE, reply=Reply("x")),
    ],
)
def test_an_outcome_comes_back_as_it_was(outcome: Outcome) -> None:
    assert codec.decode_outcome(codec.encode_outcome(outcome)) == outcome


def test_half_of_a_surrogate_pair_does_not_lose_the_outcome() -> None:
    outcome = Outcome(State.DONE, reply=Reply(HALF, data={HALF: [HALF]}))
    text = codec.encode_outcome(outcome)
    assert text.isascii()
    assert codec.decode_outcome(text) == outcome


def test_the_read_outcome_has_every_field_of_the_written_one() -> None:
    """They are two classes, because msgspec cannot read `Json`: a new field must be in both."""
    for stored, true in ((codec._StoredOutcome, Outcome), (codec._StoredReply, Reply)):
        assert stored.__struct_fields__ == true.__struct_fields__


@pytest.mark.parametrize(
    "command",
    [
        Stop(),
        StopAll(5, ODD, Route("telegram")),
        Cancel(RunId("r")),
        Clear(),
        Configure(QueueOptions(cap=3), change=True),
        Configure(),
    ],
    ids=repr,
)
def test_a_command_comes_back_as_it_was(command: Command) -> None:
    assert codec.decode_command(codec.encode_command(command)) == command


def test_the_other_values_come_back_as_they_were() -> None:
    standing = Standing(-1, held=Rule.RETRY, until=5, begun=True, retries=2)
    assert codec.decode_standing(codec.encode_standing(standing)) == standing
    memory = SessionMemory(QueueOptions(cap=1), 5, 6, "telegram", (ODD,), 2)
    assert codec.decode_memory(codec.encode_memory(memory)) == memory
    assert codec.decode_answer(codec.encode_answer(Answer(1, 2))) == Answer(1, 2)
    attachments = (Attachment(ODD), Attachment("b", url="u"))
    delivery = Delivery("d", Route("web"), ODD, RunId("r"), SessionKey("s"), 4, attachments, 1, 9)
    assert codec.decode_delivery(codec.encode_delivery(delivery)) == delivery
    fields: dict[str, object] = {"node": 3, "why": ODD}
    assert json.loads(codec.encode_fields(fields)) == fields


def test_d10_what_a_newer_version_adds_is_ignored() -> None:
    text = codec.encode_run(RUN).removesuffix("}") + ',"invented_later":{"a":[1]}}'
    assert codec.decode_run(text) == RUN
    assert codec.decode_outcome('{"state":"done","later":1,"reply":{"text":"x","later":2}}') == (
        Outcome(State.DONE, reply=Reply("x"))
    )


def test_d10_a_word_that_this_version_does_not_know_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        codec.decode_outcome('{"state":"unheard of"}')


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_is_lost_and_none_brings_a_nul_into_the_database(text: str) -> None:
    outcome = Outcome(State.FAILED, Reason.ERROR, error=text)
    written = codec.encode_outcome(outcome)
    assert "\0" not in written
    assert codec.decode_outcome(written) == outcome


# Jobs.

JOB = Job(JobId("j-1"), f"n {ODD}", AgentName("a"), Every(60, 5), Say(ODD), 7)


@pytest.mark.parametrize("schedule", [At(9, "Europe/Berlin"), Every(60, 5), Cron("0 9 * * 1")])
@pytest.mark.parametrize(
    "payload", [Say(HALF), Ask("f"), Execute((ODD,), "/", ((ODD, HALF),), ODD)]
)
def test_c1_a_job_comes_back_as_it_was(schedule: Schedule, payload: Payload) -> None:
    job = msgspec.structs.replace(
        JOB,
        schedule=schedule,
        payload=payload,
        lane=LaneName("cron"),
        session="main",
        overlap=Overlap.ALLOW,
        misfire=Misfire.SKIP,
        deliver=Route("web", peer=ODD),
        gate=Gate(argv=(ODD,)),
        heartbeat=HeartbeatSettings(hours=ActiveHours(0, 1440), target=Route("web")),
        declared=True,
    )
    text = codec.encode_job(job)
    assert "\0" not in text
    assert codec.decode_job(text, enabled=True) == job


def test_c10_whether_a_job_is_enabled_stands_beside_its_text() -> None:
    off = msgspec.structs.replace(JOB, enabled=False)
    assert codec.encode_job(off) == codec.encode_job(JOB)
    assert codec.decode_job(codec.encode_job(JOB), enabled=False) == off


def test_a_run_of_a_job_comes_back_as_it_was() -> None:
    firing = Firing(JOB.id, 5, "seen", "f", Execute(("echo", ODD)), ack_max_chars=300)
    run = msgspec.structs.replace(RUN, firing=firing)
    assert codec.decode_run(codec.encode_run(run)) == run


@given(st.text(st.characters(exclude_categories=())))
def test_texts_and_routes_come_back_as_they_were(text: str) -> None:
    route = Route("web", peer=text, thread=text)
    assert codec.decode_text(codec.encode_text(text)) == text
    assert codec.decode_route(codec.encode_route(route)) == route
    assert "\0" not in codec.encode_text(text) + codec.encode_route(route) + codec.said_key(text)


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=5), st.integers(0, 3))
def test_c11_a_summary_is_the_longest_start_of_whole_characters(unit: str, shift: int) -> None:
    times = MAX_SUMMARY // len(unit.encode(errors="surrogatepass")) + 1
    said = "a" * shift + unit * times
    cut = codec.summary_of(Outcome(State.DONE, reply=Reply(said, data=1)))
    size = len(cut.text.encode(errors="surrogatepass"))
    following = said[len(cut.text)].encode(errors="surrogatepass")
    assert said.startswith(cut.text)
    assert size <= MAX_SUMMARY < size + len(following)
    assert cut.reply is not None
    assert cut.reply.data is None


def test_c11_what_is_short_is_shown_as_it_is() -> None:
    for outcome in (Outcome(State.FAILED, error=ODD), Outcome(State.DONE, reply=Reply(HALF))):
        assert codec.summary_of(outcome) == outcome
        assert codec.decode_entry_outcome(codec.encode_outcome(outcome)) == outcome


def test_a_cursor_leads_back_to_its_place() -> None:
    assert codec.read_job_cursor(codec.job_cursor("a", ODD)) == ("a", ODD)
    assert codec.read_letter_cursor(codec.letter_cursor(-5, ODD)) == (-5, ODD)
    for cursor in ("", "x", "[]", "[1]", '["a"]', '["a", "b", "c"]', "[" * 5_000, '{"a": 1}'):
        for read in (codec.read_job_cursor, codec.read_letter_cursor):
            with pytest.raises(InvalidInput):
                read(cursor)


# Keys.


@given(st.lists(st.text(max_size=3), min_size=4, max_size=4), st.data())
def test_s8_no_two_routes_and_ids_share_a_key(parts: list[str], data: st.DataObject) -> None:
    others = data.draw(st.permutations(parts))

    def key(said: list[str]) -> str:
        channel, peer, thread, message_id = said
        route = Route(channel, peer=peer, thread=thread)
        run = msgspec.structs.replace(RUN, route=route, message_id=message_id)
        return keys_of(run)[0].text

    assert (key(parts) == key(list(others))) == (parts == list(others))
    assert "\0" not in key(parts)


def test_s8_without_a_route_a_message_id_counts_within_its_session() -> None:
    first = msgspec.structs.replace(RUN, route=None, session=SessionKey("s"))
    second = msgspec.structs.replace(first, session=SessionKey("t"))
    assert keys_of(first) != keys_of(second)


def test_d6_an_attempt_that_died_frees_its_message_id_but_not_its_idempotency_key() -> None:
    run = msgspec.structs.replace(RUN, message_id="7", idempotency_key="k")
    both = keys_of(run)
    freed = {
        str(outcome.reason): tuple(key for key in both if is_freed(key, outcome))
        for outcome in (
            Outcome(State.FAILED, Reason.ORPHANED),
            Outcome(State.CANCELLED, Reason.DRAINING),
            Outcome(State.REJECTED, Reason.QUEUE_FULL),
            Outcome(State.FAILED, Reason.ERROR),
        )
    }
    assert freed == {"orphaned": both[:1], "draining": both, "queue_full": both, "error": ()}
