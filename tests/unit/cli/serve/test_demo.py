"""The demo of a server, in virtual time: who works there, who asks, and what a person is told."""

import asyncio
import io
from collections import Counter

from rich.console import Console

from headway import Headway
from headway.cli.serve.demo.agents import CHANNEL, Pace, hire
from headway.cli.serve.demo.hints import hints
from headway.cli.serve.demo.narrator import Narrator
from headway.cli.serve.demo.showing import OnlyErrors, put_on
from headway.cli.serve.demo.traffic import CRAWL, Traffic
from headway.model.events import Event, RunFinished
from headway.model.words import Reason, State
from headway.testing import virtual_time


@virtual_time
async def test_all_agents_are_busy_and_one_fills_its_queue() -> None:
    hw = Headway("memory://")
    pace = Pace(7)
    hire(hw, pace)
    ended: list[RunFinished] = []

    def note(event: Event) -> None:
        if isinstance(event, RunFinished):
            ended.append(event)

    async with hw:
        hw.engine.bus.tap(note)
        await _for_a_while(Traffic(hw, pace, lambda who, what: None), 120)
    done = Counter(str(event.agent) for event in ended if event.state is State.DONE)
    assert set(done) == {"support", "browser", "crawler", "nightly", "watcher"}
    assert done["nightly"] >= 120 // 8 - 2, "it is asked each eight seconds"
    refused = [event for event in ended if event.reason is Reason.QUEUE_FULL]
    assert {event.agent for event in refused} == {"crawler"}
    assert not [event for event in ended if event.state is State.FAILED]
    assert any(event.reason is Reason.MERGED for event in ended), "people write in bursts"


@virtual_time
async def test_the_narrator_tells_who_said_what_to_whom() -> None:
    hw = Headway("memory://")
    pace = Pace(7)
    hire(hw, pace)
    out = io.StringIO()
    narrator = Narrator(hw, Console(file=out, width=200))
    hw.add_channel(CHANNEL, narrator)
    async with hw, asyncio.TaskGroup() as group:
        telling = group.create_task(narrator.run())
        await _for_a_while(Traffic(hw, pace, narrator.tell), 60)
        telling.cancel()
    lines = [line.split(maxsplit=1)[1] for line in out.getvalue().splitlines()]
    for beginning in ("cleo → support", "support → ", "browser", "nightly", "watcher", "crawler"):
        assert any(line.startswith(beginning) for line in lines), beginning
    assert any("messages of" in line for line in lines), "bursts are told"
    asked = f"asked for {CRAWL} pages at once"
    assert sum(asked in line for line in lines) >= 1
    assert len(lines) < 250, "it can be followed"


async def _for_a_while(traffic: Traffic, seconds: float) -> None:
    asking = asyncio.get_running_loop().create_task(traffic.run())
    await asyncio.sleep(seconds)
    assert not asking.done(), asking
    asking.cancel()
    await asyncio.wait((asking,))


@virtual_time
async def test_callers_come_again_when_the_node_restarts() -> None:
    hw = Headway("memory://")
    pace = Pace(7)
    hire(hw, pace)
    async with hw:
        asking = asyncio.get_running_loop().create_task(Traffic(hw, pace, lambda *_: None).run())
        await asyncio.sleep(5)
        await hw.restart("10s")
        await asyncio.sleep(10)
        assert not asking.done()
        asking.cancel()
        await asyncio.wait((asking,))
        assert hw.engine.incarnation == 2


def test_a_users_own_agent_keeps_its_name() -> None:
    hw = Headway("memory://")
    hw.agent("support")(lambda turn: "mine")
    hire(hw, Pace(1))
    assert sorted(hw.agents) == ["browser", "crawler", "nightly", "support", "watcher"]


def test_hints_name_the_server_where_it_is_not_the_usual_one() -> None:
    text = "\n".join(hints("http://127.0.0.1:9000"))
    assert "top --server http://127.0.0.1:9000" in text
    assert "http://127.0.0.1:9000/docs" in text
    assert "--server" not in "\n".join(hints("http://127.0.0.1:8787"))


def test_without_a_terminal_the_log_tells_it_all() -> None:
    show = put_on(Headway("memory://"), "http://127.0.0.1:8787", io.StringIO())
    assert show.log_stream is None
    assert len(show.company) == 1


def test_beside_a_narrator_only_errors_are_logged() -> None:
    out = io.StringIO()
    log = OnlyErrors(out)
    log.write('{"level":"info","event":"RunStarted"}\n{"level":"error","event":"NodeBroken"}\n')
    assert out.getvalue() == '{"level":"error","event":"NodeBroken"}\n'
