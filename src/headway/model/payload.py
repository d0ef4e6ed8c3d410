"""What a job asks of its agent, and the look before it does."""

from typing import TypeAlias

from headway.model.value import Value


class Say(Value, frozen=True, tag="message"):
    """The agent is told a text."""

    text: str


class Ask(Value, frozen=True, tag="function"):
    """The agent is told what a function of its program returns when the firing starts."""

    function: str


class Execute(Value, frozen=True, tag="command"):
    """A command is run, without a shell; the agent must be one that runs commands."""

    argv: tuple[str, ...]
    folder: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    stdin: str = ""


Payload: TypeAlias = Say | Ask | Execute


class Gate(Value, frozen=True):
    """A cheap look before an agent is woken (X-7): a function of the program, or a command."""

    function: str = ""
    argv: tuple[str, ...] = ()
