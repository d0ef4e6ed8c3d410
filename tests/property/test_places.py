"""Every place that is told is the number of starts that then really come before, if nothing else arrives (T-5)."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from headway.core import forecast
from headway.model.run import RunId
from headway.model.settings import AgentSettings, LaneSettings, Limits
from tests.unit.core.by_hand import ByHand
from tests.unit.core.test_forecast import played_out


@dataclass(frozen=True)
class Step:
    """Something that happens; the number chooses on whom."""

    what: str
    pick: int
    agent: str
    lane: str
    session: str | None
    priority: int
    source: str
    preemptible: bool


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["submit"] * 9 + ["end"] * 2 + ["cancel", "interrupt"]),
        st.integers(0, 999),
        st.sampled_from("aaabc"),
        st.sampled_from(["main", "main", "team"]),
        st.sampled_from([None, None, None, "s", "t"]),
        st.sampled_from([-3, 0, 0, 0, 5, 10, 12]),
        st.sampled_from(["task", "task", "message", "heartbeat"]),
        st.sampled_from([False, False, True]),
    ),
    min_size=8,
    max_size=40,
)


def happen(hand: ByHand, step: Step, name: str) -> None:
    options: dict[str, object] = {
        "lane": step.lane,
        "priority": step.priority,
        "source": step.source,
        "preemptible": step.preemptible,
        "deadline": "9d",
    }
    if step.session is not None:
        options["session"] = step.session
    match step.what:
        case "submit":
            hand.submit(name, step.agent, **options)
        case "interrupt":
            hand.submit(name, step.agent, **{**options, "source": "message", "mode": "interrupt"})
        case "end" if hand.running:
            hand.end(hand.running[step.pick % len(hand.running)])
        case "cancel" if hand.kernel.stage.runs:
            names = list(hand.kernel.stage.runs)
            hand.cancel(names[step.pick % len(names)])
        case _:
            pass


@given(STEPS, st.integers(1, 3))
def test_t5_every_place_is_the_number_of_starts_that_come_before(
    steps: list[Step], width: int
) -> None:
    hand = ByHand(
        lanes={"main": LaneSettings(width, reserve=width - 1), "team": 2},
        agents={"b": AgentSettings(weight=2)},
        limits=Limits(max_inflight=3, max_inflight_per_agent=2),
    )
    for number, step in enumerate(steps):
        happen(hand, step, f"r{number}")
    stage = hand.kernel.stage
    waiting = {str(run_id): live.lane for run_id, live in stage.runs.items() if not live.ticket}
    told = {name: forecast.place(hand.kernel, RunId(name)) for name in waiting}
    lanes = {str(run_id): live.lane for run_id, live in stage.runs.items()}
    starts = played_out(hand)
    for name, lane in waiting.items():
        ahead = starts[: starts.index(name)]
        assert told[name] == sum(lanes[other] is lane for other in ahead), name
