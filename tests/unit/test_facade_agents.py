"""Agents that are programs, panes and endpoints, said in code or in the settings (W-1, T-3, O-2)."""

import asyncio
from types import MappingProxyType

import pytest

import headway
from headway import Headway, InvalidInput, Outcome, Reason, Settings, State, Turn
from headway.model.run import AgentName
from headway.model.runner import CommandSpec
from headway.model.settings import AgentSettings
from headway.model.time import MINUTE, SECOND
from headway.testing import virtual_time


def test_w1_a_program_is_an_agent() -> None:
    hw = Headway("memory://")
    hw.command_agent("shout", ["sh", "-c", "echo $1 | tr a-z A-Z", "sh", "{text}"], timeout="30s")

    async def main() -> str:
        async with hw:
            assert hw.agents == ("shout",)
            return await hw.send("shout", "hello there")

    assert headway.run(main()) == "HELLO THERE"


def test_o2_agents_of_the_settings_run_and_those_of_the_code_win() -> None:
    said = CommandSpec(command=("printf", "%s", "from the file: {text}"))
    runners = MappingProxyType({AgentName("a"): said, AgentName("b"): said})
    agents = MappingProxyType({AgentName("a"): AgentSettings(timeout=20 * SECOND)})
    hw = Headway("memory://", settings=Settings(runners=runners, agents=agents))
    hw.command_agent("b", ["printf", "%s", "from the code: {text}"])

    async def main() -> list[str]:
        async with hw:
            return list(await asyncio.gather(hw.send("a", "x"), hw.send("b", "x")))

    assert headway.run(main()) == ["from the file: x", "from the code: x"]
    assert set(hw.agents) == {"a", "b"}


def test_o2_agents_of_the_settings_are_what_the_latest_start_finds() -> None:
    def said(**agents: str) -> Settings:
        specs = {
            AgentName(name): CommandSpec(command=("echo", text)) for name, text in agents.items()
        }
        return Settings(runners=MappingProxyType(specs))

    hw = Headway("memory://", settings=said(a="one", gone="x"))

    async def main() -> str:
        async with hw:
            return await hw.send("a", "")

    assert headway.run(main()) == "one"
    hw.reload(said(a="two", b="x"))
    assert headway.run(main()) == "two"
    assert set(hw.agents) == {"a", "b"}


def test_a_secret_of_the_environment_is_not_shown_with_what_is_wrong_with_it() -> None:
    with pytest.raises(InvalidInput, match="each brace is closed, or doubled") as refused:
        Headway("memory://").command_agent("x", ["ls"], environment={"PASSWORD": "hunter{2"})
    assert refused.value.field == "environment.PASSWORD"
    assert "hunter" not in str(refused.value)


def test_w3_a_resume_command_gives_three_more_tries_a_minute_apart() -> None:
    spec = CommandSpec(command=("true",), resume=("true",))
    settings = Settings(runners=MappingProxyType({AgentName("file"): spec}))
    hw = Headway("memory://", settings=settings)
    hw.command_agent("code", ["true"], resume=["true"])
    hw.command_agent("careful", ["true"], resume=["true"], max_attempts=2)

    async def main() -> None:
        async with hw:
            for name, attempts in (("file", 4), ("code", 4), ("careful", 2)):
                known = hw.engine.agents[AgentName(name)]
                assert (known.max_attempts, known.resume_after) == (attempts, MINUTE)

    headway.run(main())


@pytest.mark.parametrize(
    ("register", "field"),
    [
        (lambda hw: hw.command_agent("x", "ls -l"), "command"),
        (lambda hw: hw.command_agent("x", ["ls", "{txt}"]), "command[1]"),
        (lambda hw: hw.command_agent("x", ["ls"], grace="soon"), "grace"),
        (lambda hw: hw.command_agent("x", ["ls"], environment={"A=B": "c"}), "environment"),
        (lambda hw: hw.command_agent("x", ["ls"], fodler="/"), "fodler"),
        (lambda hw: hw.tmux_agent("x", []), "command"),
        (lambda hw: hw.http_agent("x", "localhost:80"), "url"),
        (lambda hw: hw.http_agent("x", "http://h", method="LOOK"), "method"),
        (lambda hw: hw.tabs_agent("x", instances={"t": "ftp://h"}), "instances.t"),
        (lambda hw: hw.chat_agent("x", "http://h/v1", ""), "model"),
    ],
)
def test_w1_what_is_wrong_with_an_agent_is_said_where_it_is_registered(
    register: "object", field: str
) -> None:
    hw = Headway("memory://")
    with pytest.raises(InvalidInput) as refused:
        register(hw)  # type: ignore[operator]
    assert refused.value.field == field
    assert hw.agents == ()


def test_w1_what_a_command_wrote_before_it_was_cut_is_in_its_outcome() -> None:
    hw = Headway("memory://")
    hw.command_agent("slow", ["sh", "-c", "echo begun; sleep 30"], timeout="3s", grace="20s")

    async def main() -> Outcome:
        async with hw:
            return await (await hw.submit("slow", "go")).wait()

    outcome = headway.run(main())
    assert (outcome.state, outcome.reason) == (State.FAILED, Reason.TIMED_OUT)
    assert outcome.details == {"exit": -15, "output": "begun"}


class Tidy:
    """A runner that needs longer to end than cancelled attempts usually have."""

    patience = 30 * SECOND

    def __init__(self) -> None:
        self.live = 0
        self.most = 0

    async def run(self, turn: Turn) -> str:
        self.live += 1
        self.most = max(self.most, self.live)
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(20)
            self.live -= 1
        return "never"


@virtual_time
async def test_s3_a_session_waits_for_a_runner_that_may_take_longer_than_the_usual_grace() -> None:
    hw = Headway("memory://")
    tidy = Tidy()
    hw.add_agent("tidy", tidy)
    async with hw:
        first = await hw.submit("tidy", "one", session="s")
        second = await hw.submit("tidy", "two", session="s")
        await asyncio.sleep(1)
        await hw.cancel(first)
        assert (await first.wait()).reason is Reason.STOPPED
        await asyncio.sleep(5)
        assert (tidy.live, tidy.most) == (1, 1), "the second began when the first had returned"
        await hw.cancel(second)
        await second.wait()
