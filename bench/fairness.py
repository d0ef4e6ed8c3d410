"""What a fair pick costs, with few and with very many agents waiting."""

import gc
import time
from statistics import median

from bench.harness import Report, progress
from headway.core.actions import Done, Start
from headway.core.kernel import Kernel
from headway.model.outcome import Reply
from headway.model.run import AgentName, Run, RunId, SessionKey
from headway.model.settings import MAIN, LaneSettings, Settings
from headway.model.words import Source

TITLE = "Cost of a fair pick among waiting agents"
AGENTS = (10, 1_000, 100_000)
WAITING = 100_000
PICKS = 10_000
ROUNDS = 5
WIDTH = 30
_DONE = Done(Reply())


def run(quick: bool) -> Report:
    picks = PICKS // 10 if quick else PICKS
    costs: dict[int, float] = {}
    for agents in AGENTS:
        progress(f"{agents:,} waiting agents")
        kernel = _crowd(agents)
        costs[agents] = median(_cost_of_pick(kernel, picks) for _ in range(ROUNDS))
    first = costs[AGENTS[0]]
    return Report(
        name="fairness",
        columns=("waiting agents", "µs a pick", "of the first"),
        rows=[(agents, cost, cost / first) for agents, cost in costs.items()],
        figures={"growth": costs[AGENTS[-1]] / first}
        | {f"pick_us_{agents}": cost for agents, cost in costs.items()},
        limits={"growth": ("<=", 4.0)},
        peers=[(f"Headway, {agents:,} agents", cost) for agents, cost in costs.items()],
        unit="µs a pick",
        notes=(
            f"One pick: a run ends, and of {WAITING:,} waiting ones the next is chosen fairly and started.",
        ),
    )


def _crowd(agents: int) -> Kernel:
    """A full lane, and as many waiting runs as ever, spread over the agents; each has its own session."""
    kernel = Kernel(Settings(lanes={MAIN: LaneSettings(WIDTH)}))
    for number in range(WAITING + WIDTH):
        kernel.submit(_run(number, number % agents), number)
    return kernel


def _cost_of_pick(kernel: Kernel, picks: int) -> float:
    kernel.take_actions()
    now = kernel.stage.now
    tickets = list(kernel.stage.attempts)
    gc.collect()
    started = time.perf_counter()
    for turn in range(picks):
        kernel.finished(tickets[turn], _DONE, now)
        tickets += [action.ticket for action in kernel.take_actions() if isinstance(action, Start)]
    return (time.perf_counter() - started) / picks * 1e6


def _run(number: int, agent: int) -> Run:
    return Run(
        RunId(f"run-{number}"),
        AgentName(f"agent-{agent}"),
        SessionKey(f"session-{number}"),
        Source.MESSAGE,
        MAIN,
        0,
        number,
    )
