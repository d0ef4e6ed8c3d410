"""The one table of states is that of SPEC section R, and nothing steps outside of it (R-1)."""

from itertools import product

import pytest

from headway.core.lifecycle import FIRST_STATES, TRANSITIONS, advance, diagram
from headway.model.errors import IllegalTransition
from headway.model.words import FINAL_STATES, State

SPEC_TABLE = {
    "pending": "queued cancelled failed",
    "queued": "assigned pending cancelled failed",
    "assigned": "running queued cancelled failed",
    "running": "done failed cancelled queued pending",
    "done": "",
    "failed": "",
    "cancelled": "",
    "rejected": "",
}
LEGAL = {(State(a), State(b)) for a, targets in SPEC_TABLE.items() for b in targets.split()}


def test_r1_the_table_is_the_specs() -> None:
    assert {(a, b) for a, targets in TRANSITIONS.items() for b in targets} == LEGAL
    assert set(TRANSITIONS) == set(State)
    assert {"pending", "queued", "rejected"} == FIRST_STATES


@pytest.mark.parametrize(("current", "target"), sorted(LEGAL))
def test_r1_a_legal_step_is_taken(current: State, target: State) -> None:
    assert advance(current, target) is target


@pytest.mark.parametrize(("current", "target"), sorted(set(product(State, State)) - LEGAL))
def test_r1_any_other_step_raises_and_names_both_states(current: State, target: State) -> None:
    with pytest.raises(IllegalTransition) as illegal:
        advance(current, target)
    assert (illegal.value.current, illegal.value.target) == (current, target)


def test_r1_final_states_have_no_way_out() -> None:
    assert {state for state, targets in TRANSITIONS.items() if not targets} == FINAL_STATES


def test_r1_the_diagram_is_drawn_from_the_table() -> None:
    head, *lines = diagram().splitlines()
    assert head == "stateDiagram-v2"
    arrows = [tuple(line.strip().split(" --> ")) for line in lines]
    assert len(set(arrows)) == len(arrows)
    assert {(a, b) for a, b in arrows if "[*]" not in (a, b)} == LEGAL
    assert {b for a, b in arrows if a == "[*]"} == FIRST_STATES
    assert {a for a, b in arrows if b == "[*]"} == FINAL_STATES
