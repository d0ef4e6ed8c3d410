"""The agents of the simulated nodes: what each attempt does is drawn from the seed."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING

from headway.model.errors import HeadwayError, RunEnded
from headway.model.time import MILLISECOND, SECOND, Span
from headway.testing.cluster.journal import Attempt
from headway.turn import Turn

if TYPE_CHECKING:
    from headway.testing.cluster.nodes import Node

CHILD = "child"
"""The agent that others delegate to; it delegates no further."""


_A_MOMENT_S = 1e-6


class AgentFailed(Exception):
    """What a simulated agent raises."""


class Habits:
    """How agents behave, and how often."""

    def __init__(self, seed: int = 0, *, longest: Span = 3 * SECOND) -> None:
        self._seed = seed
        self.longest = longest
        self.spans: dict[str, Span] = {}
        """How long runs with these texts take, exactly."""
        self.looks_every = SECOND
        """The longest that an agent works without looking into its inbox."""
        self.fails = 0.1
        self.ignores_cancel = 0.15
        self.longest_ignored = 3 * SECOND
        self.delegates = 0.15
        self.waits_for_child = 0.7
        self.says = 0.3

    @classmethod
    def plain(cls, **spans: Span) -> "Habits":
        """Agents that only work, for as long as the text of their run says here."""
        habits = cls(longest=SECOND)
        habits.fails = habits.ignores_cancel = habits.delegates = habits.says = 0.0
        habits.spans = spans
        return habits

    def draw(self, turn: Turn) -> Random:
        """The same attempt does the same, on whatever node."""
        return Random(f"{self._seed} {turn.id} {turn.attempt}")


def agent_for(node: "Node", habits: Habits) -> Callable[[Turn], Awaitable[str]]:
    """An agent function of this node."""

    async def agent(turn: Turn) -> str:
        attempt = node.begin(turn)
        try:
            await _work(node, habits, turn, attempt)
        except asyncio.CancelledError:
            node.cut(attempt)
            random = habits.draw(turn)
            if random.random() < habits.ignores_cancel:
                await _ignore(random.randrange(habits.longest_ignored))
                if random.random() < 0.5:
                    attempt.done = True
                    return attempt.reply
            raise
        else:
            attempt.done = True
            return attempt.reply
        finally:
            node.end(attempt)

    return agent


async def _work(node: "Node", habits: Habits, turn: Turn, attempt: Attempt) -> None:
    random = habits.draw(turn)
    left = random.randrange(10 * MILLISECOND, habits.longest)
    left = habits.spans.get(turn.text, left)
    if turn.route is not None and random.random() < habits.says:
        turn.say(f"{attempt.reply} says")
    if turn.agent != CHILD and random.random() < habits.delegates:
        await _delegate(node, habits, turn, attempt, random)
    while left > 0:
        span = min(left, random.randrange(10 * MILLISECOND, habits.looks_every))
        await asyncio.sleep(span / SECOND)
        left -= span
        while node.is_steerable(turn.agent) and (message := turn.inbox.poll()) is not None:
            attempt.took.append(message.id)
    if random.random() < habits.fails:
        raise AgentFailed(attempt.reply)


async def _delegate(
    node: "Node", habits: Habits, turn: Turn, attempt: Attempt, random: Random
) -> None:
    options: dict[str, object] = {"deadline": "60s", "max_attempts": random.choice((1, 2))}
    if random.random() < 0.5:
        options["session"] = f"children-{random.randrange(2)}"
    waits = random.random() < habits.waits_for_child
    try:
        child = await turn.submit(CHILD, f"for {turn.id}", **options)
        if waits:
            attempt.waits += 1
            try:
                await child.reply()
            finally:
                attempt.waits -= 1
    except RunEnded:
        return
    except HeadwayError as refused:
        node.refused(refused)


async def _ignore(span: Span) -> None:
    """Work on, however often one is asked to end, for so long."""
    loop = asyncio.get_running_loop()
    until = loop.time() + span / SECOND
    while (left_s := until - loop.time()) > _A_MOMENT_S:
        try:
            await asyncio.sleep(left_s)
        except asyncio.CancelledError:
            continue
