"""One connection of RPC: calls side by side, answers to each, and bounds on everything."""

import asyncio

import pytest

from headway import Headway
from headway.gateway.access.caller import Caller
from headway.gateway.errors import Unauthorized
from headway.gateway.rpc.connection import CALLS, Connection, FellBehind
from headway.gateway.rpc.method import Method
from headway.gateway.rpc.methods import METHODS
from headway.model.server import ServerSettings
from headway.model.words import Scope
from headway.testing import virtual_time
from headway.wire.base import Answer, Request
from tests.unit.gateway.calling import opened
from tests.unit.gateway.rpc.lines import Line, called, connected, visitor
from tests.unit.gateway.stream.happenings import started


class Word(Request, frozen=True, kw_only=True):
    word: str


class Said(Answer, frozen=True, kw_only=True):
    word: str


class Stage:
    """A method whose calls wait until they are let go."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.inside = 0
        self.most = 0
        self.done: list[str] = []

    async def _say(self, connection: Connection, caller: Caller, params: Word) -> Said:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.open.wait()
        finally:
            self.inside -= 1
        self.done.append(params.word)
        return Said(word=params.word)

    @property
    def methods(self) -> dict[str, Method[Word, Said]]:
        return {
            "say": Method(
                "say", self._say, params=Word, result=Said, scope=Scope.READ, doc="Say it."
            )
        }


@virtual_time
async def test_a_call_is_answered_under_its_own_id() -> None:
    async with called(Headway()) as line:
        line.say('{"id":"mine","method":"health"}')
        assert await line.hear() == {"id": "mine", "result": {"ready": True, "reasons": []}}
        line.say('{"id":7,"method":"health","params":{}}')
        assert (await line.hear())["id"] == 7


@pytest.mark.parametrize(
    ("frame", "id", "code"),
    [
        ("{", None, "bad_json"),
        ("", None, "bad_json"),
        ("[1]", None, "invalid_input"),
        ('{"method":"health"}', None, "missing_field"),
        ('{"id":3}', 3, "missing_field"),
        ('{"id":3,"method":7}', 3, "invalid_input"),
        ('{"id":3,"method":"health","param":{}}', 3, "unknown_option"),
        ('{"id":{},"method":"health"}', None, "invalid_input"),
        ('{"id":3,"method":"health","params":[]}', 3, "invalid_input"),
        ('{"id":3,"method":"health","params":{"x":1}}', 3, "unknown_option"),
        ("[" * 5_000, None, "invalid_input"),
        ('{"id":3,"method":"health","params":' + "[" * 5_000, None, "bad_json"),
        ('{"id":3,"method":"health","params":' + "[" * 5_000 + "]" * 5_000 + "}", None, "bad_json"),
    ],
)
def test_t2_what_cannot_be_read_is_told_in_the_one_form(
    frame: str, id: int | None, code: str
) -> None:
    @virtual_time
    async def told() -> None:
        async with called(Headway()) as line:
            line.say(frame)
            answer = await line.hear()
            assert answer["id"] == id
            error = answer["error"]
            assert isinstance(error, dict)
            assert set(error) == {"error", "code", "retryable", "details"}
            assert error["code"] == code
            assert error["retryable"] is False

    told()


@virtual_time
async def test_an_unknown_method_is_refused_with_a_suggestion() -> None:
    async with called(Headway()) as line:
        error = await line.refused("cron.lst")
        assert error["code"] == "unknown_name"
        assert error["details"]["suggestion"] == "cron.list"  # type: ignore[index]


@virtual_time
async def test_bad_params_name_their_field() -> None:
    async with called(Headway()) as line:
        error = await line.refused("tasks.submit", agentId="a", action="x", prio=1)
        assert error["details"]["suggestion"] == "priority"  # type: ignore[index]
        error = await line.refused("cron.toggle", job="x", enabled="yes")
        assert error["details"]["field"] == "enabled"  # type: ignore[index]


@virtual_time
async def test_a_slow_call_holds_up_no_other() -> None:
    stage = Stage()
    async with opened(Headway()) as gateway, connected(gateway.desk, stage.methods) as line:  # type: ignore[arg-type]
        first = line.ask("say", word="slow")
        await asyncio.sleep(1)
        assert (await line.answer_of(line.ask("nothing")))["error"]
        stage.open.set()
        assert (await line.hear())["id"] == first


@virtual_time
async def test_only_so_many_calls_go_at_once_and_the_others_wait_outside() -> None:
    stage = Stage()
    async with opened(Headway()) as gateway, connected(gateway.desk, stage.methods) as line:  # type: ignore[arg-type]
        for number in range(3 * CALLS):
            line.ask("say", word=str(number))
        await asyncio.sleep(1)
        assert stage.inside == CALLS
        stage.open.set()
        answers = [await line.hear() for _ in range(3 * CALLS)]
        assert sorted(answer["id"] for answer in answers) == list(range(1, 3 * CALLS + 1))  # type: ignore[type-var]
        assert stage.most == CALLS


@virtual_time
async def test_who_reads_no_answers_gets_no_more_calls_done() -> None:
    """Answers are bounded: a place is free again only when its answer has gone out."""
    stage = Stage()
    stage.open.set()
    async with (
        opened(Headway()) as gateway,
        connected(gateway.desk, stage.methods, room=1) as line,  # type: ignore[arg-type]
    ):
        for number in range(1_000):
            line.ask("say", word=str(number))
        await asyncio.sleep(1)
        assert CALLS <= len(stage.done) <= CALLS + 2
        for _ in range(1_000):
            await line.hear()
        assert len(stage.done) == 1_000


@virtual_time
async def test_what_was_asked_for_is_done_although_the_client_has_left() -> None:
    stage = Stage()
    async with opened(Headway()) as gateway:
        async with connected(gateway.desk, stage.methods) as line:  # type: ignore[arg-type]
            line.ask("say", word="last wish")
            await asyncio.sleep(1)
            asyncio.get_running_loop().call_later(5, stage.open.set)
        assert stage.done == ["last wish"]


@virtual_time
async def test_a_fault_of_ours_is_an_answer_too() -> None:
    async def fail(connection: Connection, caller: Caller, params: Word) -> Said:
        raise RuntimeError("secret")

    methods = {"say": Method("say", fail, params=Word, result=Said, scope=None, doc="")}
    async with opened(Headway()) as gateway, connected(gateway.desk, methods) as line:  # type: ignore[arg-type]
        error = await line.refused("say", word="x")
        assert error["code"] == "internal_error"
        assert "secret" not in str(error)
        assert (await line.refused("say", word="x"))["code"] == "internal_error"


@virtual_time
async def test_the_end_of_the_node_ends_the_connection() -> None:
    async with opened(Headway()) as gateway:
        line = Line()
        connection = Connection(gateway.desk, visitor(gateway.desk), {})
        serving = asyncio.get_running_loop().create_task(connection.serve(line.frames(), line.send))
        await asyncio.sleep(1)
        gateway.desk.close()
        await serving


@virtual_time
async def test_o4_each_call_needs_its_scope_and_a_token_that_is_still_good() -> None:
    async with opened(Headway()) as gateway:
        desk = gateway.desk
        token, secret = await desk.hw.tokens.create("reader", [Scope.READ])
        await asyncio.sleep(5)
        line = Line()
        connection = Connection(desk, visitor(desk, secret), METHODS)
        serving = asyncio.get_running_loop().create_task(connection.serve(line.frames(), line.send))
        await line.call("lanes.list")
        assert (await line.refused("lanes.pause", name="main"))["code"] == "forbidden"
        await desk.hw.tokens.revoke(token.id)
        await desk.hw.tokens.create("another", [Scope.READ])
        await asyncio.sleep(5)
        assert (await line.refused("lanes.list"))["code"] == "unauthorized"
        with pytest.raises(ExceptionGroup) as ended:
            await serving
        assert ended.group_contains(Unauthorized), "also one that only listens is not let listen on"


@virtual_time
async def test_the_rate_limit_counts_calls() -> None:
    settings = ServerSettings(requests_per_minute=10)
    async with opened(Headway(), settings) as gateway:
        _, secret = await gateway.desk.hw.tokens.create("busy", [Scope.READ])
        await asyncio.sleep(5)
        async with connected(gateway.desk, token=secret) as line:
            answers = [await line.answer("health") for _ in range(11)]
            assert sum("result" in answer for answer in answers) == 10
            assert answers[-1]["error"]["code"] == "rate_limited"  # type: ignore[index]
            assert isinstance(answers[-1]["retryAfter"], int)


@virtual_time
async def test_who_falls_behind_its_events_is_cut_off_and_nothing_was_kept_for_it() -> None:
    settings = ServerSettings(stream_backlog=100)
    async with opened(Headway(), settings) as gateway:
        line = Line(room=1)
        connection = Connection(gateway.desk, visitor(gateway.desk), METHODS)
        serving = asyncio.get_running_loop().create_task(connection.serve(line.frames(), line.send))
        await line.call("events.subscribe")
        for number in range(3):
            gateway.desk.journal.note(started(number))
        await asyncio.sleep(1)
        for number in range(200):
            gateway.desk.journal.note(started(number))
        await asyncio.sleep(1)
        assert not serving.done(), "it stands still until it takes something, or too long"
        while not serving.done():
            line.out.get_nowait()
            await asyncio.sleep(1)
        with pytest.raises(ExceptionGroup) as ended:
            await serving
        assert ended.group_contains(FellBehind)
