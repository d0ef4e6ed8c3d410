"""Rate limits: when a model provider asks for a pause, everybody who shares its key waits.

An agent raises `RateLimited`. Headway holds back all agents with that provider and tries the run
again afterwards: no run fails, and none is spent on finding out the same thing once more.

Output::

    writer: the provider asks for a pause
    editor waits: rate_limited
    mailer has another provider, and works: sent
    writer: written
    editor: edited
    calls to the provider: 3
"""

import headway
from headway import Headway, RateLimited, Turn

hw = Headway()
calls: list[str] = []


def call_model(text: str) -> None:
    """Pretends to be a model provider that is overloaded at first."""
    calls.append(text)
    if len(calls) == 1:
        raise RateLimited("500ms")


@hw.agent("writer", provider="big-model")
@hw.agent("editor", provider="big-model")
async def author(turn: Turn) -> str:
    try:
        call_model(turn.text)
    except RateLimited:
        print(f"{turn.agent}: the provider asks for a pause")
        raise
    return turn.text


@hw.agent("mailer")
async def mailer(_turn: Turn) -> str:
    return "sent"


async def main() -> None:
    async with hw:
        writer = await hw.submit("writer", "written")
        mail = await hw.send("mailer", "hello")
        editor = await hw.submit("editor", "edited")
        print("editor waits:", (await hw.why(editor)).rule)
        print("mailer has another provider, and works:", mail)
        print("writer:", await writer.reply())
        print("editor:", await editor.reply())
        print("calls to the provider:", len(calls))


headway.run(main())
