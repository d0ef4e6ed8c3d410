"""What happens in the demo: ten scenes, each showing one thing that Headway does."""

from collections.abc import Awaitable, Callable
from typing import Unpack

from headway import Handle, Headway, Route
from headway.cli.demo.cast import CHANNEL, CHATS, LANES, Tempo, chat_session
from headway.core.request import SubmitOptions

Announce = Callable[[str, str], None]
"""Told the headline of a scene and the line below it."""

QUIET = "A quiet evening"
BURST = "A burst collapses"
COLLECT = "What waits is collected"
FULL = "A queue fills up"
RUSH = "Everybody writes at once"
WIDER = "The lane widens"
SUBRUNS = "Agents ask agents"
CHANGE = "A change of mind"
STOP = "Stop means stop"
REST = "All comes to rest"

SCENES: tuple[tuple[str, str], ...] = (
    (QUIET, "A chat gets one turn at a time. Lanes bound how much runs at once."),
    (BURST, "Quick messages of one person become one turn."),
    (COLLECT, "Eve collects: what came during her turn becomes the next one, together."),
    (FULL, "In Finn's chat three may wait. For a fourth, the oldest gives way."),
    (RUSH, "People come first: nightly work gives its slots back and waits its turn."),
    (WIDER, "Four more slots: what waits starts at once. Tasks keep to two per agent."),
    (SUBRUNS, "A researcher asks the reader and waits; sub-runs have a lane of their own."),
    (CHANGE, "Gia's new message replaces her turn. Hal's goes into the running one."),
    (STOP, "/stop ends Dan's turn, /stopall everything in Ben's chat, at once."),
    (REST, "The lane shrinks back: what runs may finish. Every run gets one outcome."),
)
"""The scenes in order, each with a line that explains it."""


class Story:
    """Plays all parts but the agents'."""

    def __init__(self, hw: Headway, tempo: Tempo, announce: Announce) -> None:
        self._hw = hw
        self._tempo = tempo
        self._announce = announce
        self._handles: list[Handle] = []

    async def tell(self) -> None:
        """From the first scene to the last; ends when all that was asked for has ended."""
        scenes: dict[str, Callable[[], Awaitable[None]]] = {
            QUIET: self._quiet,
            BURST: self._burst,
            COLLECT: self._collect,
            FULL: self._full,
            RUSH: self._rush,
            WIDER: self._wider,
            SUBRUNS: self._subruns,
            CHANGE: self._change,
            STOP: self._stop,
            REST: self._rest,
        }
        for title, line in SCENES:
            self._announce(title, line)
            await scenes[title]()

    async def _quiet(self) -> None:
        for _ in range(3):
            await self._ask("nightly", "deep tidying", source="firing", lane="main")
            await self._ask("nightly", "report", source="firing", lane="cron")
            await self._pause(0.2)
        for person in ("cleo", "gia", "kim"):
            await self._write(person, "hello")
            await self._pause(0.4)
        await self._pause(0.4)

    async def _burst(self) -> None:
        for text in ("hi", "my order", "it is late", "number 1203"):
            await self._type("ada", text)
            if text != "hi":
                await self._type("hal", text)
            await self._pause(0.25)
        await self._write("dan", "good evening")
        await self._pause(1.1)

    async def _collect(self) -> None:
        await self._hw.command(chat_session("eve"), "/queue collect")
        await self._write("eve", "a long question")
        for text in ("and then", "one more thing", "that is all"):
            await self._pause(0.4)
            await self._write("eve", text)
        await self._pause(1.0)

    async def _full(self) -> None:
        for number in range(7):
            text = "a long one" if number == 0 else f"message {number}"
            await self._write("finn", text, cap=3)
            await self._pause(0.25)
        await self._pause(0.4)

    async def _rush(self) -> None:
        for person in CHATS:
            if person != "finn":
                await self._write(person, "are you there?")
                await self._pause(0.08)
        await self._pause(1.0)

    async def _wider(self) -> None:
        self._hw.set_lane("main", LANES["main"] + 4)
        for number in range(5):
            await self._ask("coder", f"task {number}", source="task")
        await self._pause(1.8)

    async def _subruns(self) -> None:
        for person in ("jon", "kim", "leo"):
            await self._write(person, "lanes")
            await self._pause(0.15)
        for person in ("ada", "cleo"):
            await self._write(person, "thank you")
            await self._pause(0.3)
        await self._pause(1.1)

    async def _change(self) -> None:
        for person in ("gia", "hal"):
            await self._write(person, "make it blue")
            await self._type("eve", "by the way")
        await self._pause(0.8)
        await self._write("gia", "no, red", mode="interrupt")
        await self._write("hal", "dark blue", mode="steer")
        await self._pause(1.1)

    async def _stop(self) -> None:
        for number in range(4):
            for person in ("dan", "ben"):
                if person == "ben" or number < 2:
                    text = "a long one" if number == 0 else f"and {number}"
                    await self._write(person, text)
            await self._pause(0.12)
        await self._write("finn", "still there?")
        await self._pause(0.5)
        await self._hw.command(chat_session("dan"), "/stop")
        await self._pause(0.6)
        await self._hw.command(chat_session("ben"), "/stopall")
        await self._pause(0.4)

    async def _rest(self) -> None:
        for person in ("ada", "ben", "cleo", "dan", "gia", "hal", "jon", "kim"):
            await self._write(person, "good night")
        await self._pause(0.6)
        self._hw.set_lane("main", LANES["main"])
        for handle in self._handles:
            await handle.wait()
        await self._pause(0.5)

    async def _pause(self, seconds: float) -> None:
        await self._tempo.rest(seconds)

    async def _type(self, person: str, text: str) -> None:
        """A person writes on the channel, which waits a moment for more."""
        await self._ask(CHATS[person], text, **_chat(person))

    async def _write(self, person: str, text: str, **options: Unpack[SubmitOptions]) -> None:
        """A person writes something that starts at once, if it can."""
        asked = _chat(person)
        asked["debounce"] = 0
        asked.update(options)
        await self._ask(CHATS[person], text, **asked)

    async def _ask(self, agent: str, text: str, **options: Unpack[SubmitOptions]) -> None:
        self._handles.append(await self._hw.submit(agent, text, **options))


def _chat(person: str) -> SubmitOptions:
    return {"session": chat_session(person), "route": Route(CHANNEL, peer=person)}
