"""A chat whose agent runs on another node: its reply comes to whoever sent the message (D-10)."""

import asyncio

from headway import Headway, Settings, Turn
from headway.gateway.stream.output import Watch
from headway.model.time import SECOND
from tests.postgres import fresh_url
from tests.unit.gateway.calling import opened
from tests.unit.gateway.rpc.lines import connected

QUICK = Settings(lease=2 * SECOND, renew_every=SECOND // 4, poll_every=SECOND // 2)


def test_d10_the_reply_comes_from_the_node_that_has_the_session() -> None:
    async def main() -> None:
        url = fresh_url()
        here, there = Headway(url, settings=QUICK), Headway(url, settings=QUICK)
        here.remote_agent("a")
        asked, go_on = asyncio.Event(), asyncio.Event()

        @there.agent("a")
        async def agent(turn: Turn) -> str:
            turn.emit("nobody here hears this")
            asked.set()
            await go_on.wait()
            return f"re: {turn.text}"

        async with there, opened(here) as gateway, connected(gateway.desk) as line:
            sent = await line.call("chat.send", agentId="a", session="s", text="hello")
            await asked.wait()
            handle = await here.engine.handle_of(sent["runId"])  # type: ignore[arg-type]
            watching = Watch(gateway.desk.journal, handle, 100).told()
            await anext(watching)
            go_on.set()
            reply = (await line.event("chat.reply"))["data"]
            assert isinstance(reply, dict)
            assert reply["runId"] == sent["runId"]
            assert reply["outcome"]["text"] == "re: hello"
            told = b"".join([chunk async for chunk in watching])
            assert b"event: outcome" in told
            assert b"event: output" not in told
            history = await line.call("chat.history", session="s")
            assert history["turns"][0]["outcome"]["text"] == "re: hello"  # type: ignore[index]

    async def within() -> None:
        async with asyncio.timeout(60):
            await main()

    asyncio.run(within())
