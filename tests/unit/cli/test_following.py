"""A run that was taken is waited for, whatever becomes of the server; and nothing is told twice at a terminal."""

import functools
import json
from collections.abc import Callable

import httpx
import msgspec
import pytest

from headway.cli.emitted import Emitted
from headway.cli.jobs.remote import RemoteJobs
from headway.client import Client, runs
from headway.testing import virtual_time
from headway.wire.output import AttemptBegun, AttemptOver, OutputPiece
from headway.wire.runs import RunAnswer
from tests.unit.cli.calling import Called, Shell

RUN = "r1"
AWAY = (
    f"headway: the server is away; waiting for run {RUN} (Ctrl-C leaves it; headway runs watch {RUN})\n"
    "headway: the server is back\n"
)
OUTCOME: dict[str, object] = {
    "state": "done",
    "reason": None,
    "text": "the reply",
    "attachments": [],
    "data": None,
    "error": "",
    "into": None,
    "tokensIn": 0,
    "tokensOut": 0,
    "code": "",
    "details": None,
}
STORED: dict[str, object] = {
    **{field.encode_name: None for field in msgspec.structs.fields(RunAnswer)},
    "runId": RUN,
    "agentId": "a",
    "session": "s",
    "source": "message",
    "lane": "main",
    "priority": 0,
    "state": "done",
    "attempt": 1,
    "cancelling": False,
    "text": "hi",
    "attachments": [],
    "createdAt": "2026-01-01T00:00:00Z",
}
TAKEN: dict[str, dict[str, object]] = {
    "/messages": {
        "command": False,
        "reply": None,
        "runId": RUN,
        "session": "s",
        "state": "queued",
        "outcome": None,
    },
    "/tasks": {
        "taskId": RUN,
        "agentId": "a",
        "state": "queued",
        "position": 1,
        "createdAt": "2026-01-01T00:00:00Z",
        "session": "s",
        "lane": "main",
    },
}


def a_server_that_goes_away(
    outcome: dict[str, object],
) -> Callable[[httpx.Request], httpx.Response]:
    """It takes one run, is killed while that waits and when it has ended, and comes back."""
    over = json.dumps({"runId": RUN, "into": None, "outcome": outcome})
    told = f"event: outcome\ndata: {over}\n\n".encode()
    answers: dict[str, list[httpx.Response | None]] = {
        f"/runs/{RUN}/output": [None, *(httpx.Response(200, content=told) for _ in range(2))],
        f"/runs/{RUN}": [None, httpx.Response(200, json=STORED)],
    }

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(202, json=TAKEN[request.url.path])
        said = answers[request.url.path].pop(0)
        if said is None:
            raise httpx.RemoteProtocolError("incomplete chunked read")
        return said

    return answer


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Called]:
    def asked(*words: str, **outcome: object) -> Called:
        transport = httpx.MockTransport(a_server_that_goes_away({**OUTCOME, **outcome}))
        monkeypatch.setattr("headway.client.Client", functools.partial(Client, transport=transport))
        monkeypatch.setattr(runs, "_AGAIN_S", 0.0)
        return Shell("")(*words)

    return asked


@pytest.mark.parametrize(
    "words", ["run a hi", "run a hi --quiet", "send a hi", "tasks submit a b --wait"]
)
def test_d1_what_was_taken_is_waited_for_while_the_server_is_away(
    words: str, ask: Callable[..., Called]
) -> None:
    assert ask(*words.split()) == Called(0, "the reply\n", AWAY)


def test_d1_the_exit_code_is_that_of_the_run(ask: Callable[..., Called]) -> None:
    ended = ask("run", "a", "hi", state="failed", reason="error", error="exit code 7: no\nway")
    told = f"{AWAY}headway: run {RUN} ended failed/error: exit code 7: no\nway\n"
    assert ended == Called(4, "", told)


def test_d1_json_is_waited_for_too(ask: Callable[..., Called]) -> None:
    ended = ask("run", "a", "hi", "--json")
    assert (ended.code, json.loads(ended.out), ended.err) == (0, STORED, AWAY)


@virtual_time
async def test_d1_a_job_that_was_fired_is_waited_for_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    transport = httpx.MockTransport(a_server_that_goes_away(OUTCOME))
    async with Client("http://server", transport=transport) as client:
        ended = await RemoteJobs(client, None).wait(RUN)
    assert (ended.outcome.text, capsys.readouterr().err) == ("the reply", AWAY)


def test_who_only_watches_may_try_again(ask: Callable[..., Called]) -> None:
    assert ask("runs", "watch", RUN).code == 3


def emitted(*pieces: str) -> Emitted:
    shown = Emitted()
    for piece in pieces:
        shown.show(OutputPiece(run_id=RUN, text=piece, cut=False))
    return shown


@pytest.mark.parametrize(
    ("reply", "seen"),
    [
        ("one\ntwo", True),
        ("two", True),
        ("ne\ntwo", True),
        ("wo", False),
        ("three", False),
        ("", False),
    ],
)
def test_a_reply_has_been_seen_if_it_was_emitted_last(reply: str, seen: bool) -> None:
    assert emitted("\x1b[1mone\x1b[0m\n", "tw", "o\n").ends_with(reply) is seen


def test_of_an_error_only_what_was_not_seen_is_told() -> None:
    shown = emitted("one\n", "two\n")
    assert shown.unseen("exit code 7: one\ntwo") == "exit code 7"
    assert shown.unseen("exit code 7: …ne\ntwo") == "exit code 7"
    assert shown.unseen("exit code 7") == "exit code 7"
    assert shown.unseen("exit code 7: three") == "exit code 7: three"


def test_what_an_earlier_attempt_emitted_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    shown = emitted("one\n")
    shown.show(AttemptOver(run_id=RUN, error="exit code 7: one"))
    shown.show(AttemptBegun(run_id=RUN, attempt=2))
    assert not shown.ends_with("one")
    assert capsys.readouterr().err == "one\n(it is tried again: exit code 7)\n(attempt 2)\n"


def test_of_very_long_output_the_end_is_remembered() -> None:
    shown = emitted(*["x" * 1023 + "\n"] * 1000, "the end\n")
    assert shown.ends_with("the end")
    assert sum(map(len, shown._pieces)) < 1024 * 1024
