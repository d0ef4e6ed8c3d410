"""Who works in the demo: five agents that take about as long as real ones do."""

import asyncio
import random  # noqa: TID251 - drawn from a seed: same seed, same day at work

from headway import Headway, Route, Turn

SUPPORT, BROWSER, NIGHTLY, WATCHER, CRAWLER = "support", "browser", "nightly", "watcher", "crawler"
CHANNEL = "demo"
OPERATORS = "operators"
"""Whom the watcher tells what it has found."""
CRAWLS_AT_ONCE = 4

_ANSWERS = (
    "It leaves tomorrow morning.",
    "I have sent you a new link.",
    "That is fixed: please try again.",
    "Your refund is on its way.",
    "I have asked a colleague; you will hear from us today.",
)
_FINDINGS = (
    "disk of db-2 is at 81 %",
    "three orders wait for stock since yesterday",
    "the certificate of shop.example ends in 9 days",
)


class Pace:
    """How long work takes: about so long, never twice the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def seconds(self, about: float) -> float:
        return about * self._random.uniform(0.6, 1.5)

    def chance(self, one_in: int) -> bool:
        return self._random.randrange(one_in) == 0

    def one_of(self, texts: tuple[str, ...]) -> str:
        return self._random.choice(texts)

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)


def hire(headway: Headway, pace: Pace) -> None:
    """All five, with what wakes them by itself. A name that is the user's own agent's stays his."""
    if SUPPORT not in headway.agents:
        _hire_support(headway, pace)
    if BROWSER not in headway.agents:
        _hire_browser(headway, pace)
    if CRAWLER not in headway.agents:
        _hire_crawler(headway, pace)
    if NIGHTLY not in headway.agents:
        _hire_nightly(headway, pace)
    if WATCHER not in headway.agents:
        _hire_watcher(headway, pace)


def _hire_support(headway: Headway, pace: Pace) -> None:
    @headway.agent(SUPPORT, steerable=True)
    async def support(turn: Turn) -> str:
        """Thinks aloud, so that there is output to watch, and takes what is said meanwhile into account."""
        steered = 0
        for word in ("looking", "it", "up"):
            turn.emit(f"{word} ")
            await asyncio.sleep(pace.seconds(0.7))
            while turn.inbox.poll() is not None:
                steered += 1
        turn.usage(input=40 * (1 + turn.text.count("\n")), output=pace.number(20, 200))
        questions = turn.text.count("\n") + 1 + steered
        answer = pace.one_of(_ANSWERS)
        return answer if questions == 1 else f"To your {questions} messages: {answer}"


def _hire_browser(headway: Headway, pace: Pace) -> None:
    @headway.agent(BROWSER)
    async def browser(turn: Turn) -> str:
        await asyncio.sleep(pace.seconds(1.2))
        task = turn.run.task
        if task is None:
            return f"Opened {turn.text}"
        return f"{task.action} {task.selector or task.ref or task.tab_id}".strip()


def _hire_crawler(headway: Headway, pace: Pace) -> None:
    @headway.agent(CRAWLER, max_inflight=CRAWLS_AT_ONCE)
    async def crawler(turn: Turn) -> str:
        await asyncio.sleep(pace.seconds(0.5))
        return f"Read {turn.text or 'a page'}"


def _hire_nightly(headway: Headway, pace: Pace) -> None:
    @headway.agent(NIGHTLY)
    async def nightly(_: Turn) -> str:
        await asyncio.sleep(pace.seconds(2.5))
        return f"Tidied {pace.number(3, 40)} notes"

    # It fires each few seconds, because nobody watches a demo for a night.
    headway.every("8s", agent=NIGHTLY, name="tidy", misfire="skip", text="Tidy up.")(_nothing)


def _hire_watcher(headway: Headway, pace: Pace) -> None:
    @headway.agent(WATCHER)
    async def watcher(_: Turn) -> str:
        await asyncio.sleep(pace.seconds(1.0))
        return pace.one_of(_FINDINGS) if pace.chance(2) else "HEARTBEAT_OK"

    headway.heartbeat(
        WATCHER,
        every="45s",
        prompt="Anything that needs attention? Else HEARTBEAT_OK.",
        target=Route(CHANNEL, peer=OPERATORS),
    )


def _nothing() -> None:
    """The job says its text itself."""
