"""The closed vocabularies are SPEC's, word by word."""

from copy import deepcopy
from enum import StrEnum

import msgspec
import pytest

from headway.model import words
from headway.model.words import (
    FINAL_STATES,
    WAITING_STATES,
    Cut,
    Drop,
    Mode,
    Reason,
    Source,
    State,
    SteerFallback,
    Word,
)


@pytest.mark.parametrize(
    ("vocabulary", "listed"),
    [
        (Source, "message task firing heartbeat delegation"),
        (State, "pending queued assigned running done failed cancelled rejected"),
        (
            Reason,
            (
                "queue_full rejected_busy "
                "stopped superseded queue_dropped lane_cleared cleared stale merged draining "
                "error deadline_queued deadline_running timed_out orphaned rate_limited refused"
            ),
        ),
        (Mode, "queue followup collect steer interrupt reject"),
        (Drop, "old new summarize"),
        (SteerFallback, "interrupt followup"),
        (Cut, "stopped superseded deadline timed_out overran preempted drained lost"),
    ],
)
def test_g_r3_the_words_are_those_of_the_rules(vocabulary: type[Word], listed: str) -> None:
    assert [word.value for word in vocabulary] == listed.split()


def test_g_one_spelling_of_cancelled() -> None:
    spoken = [
        word.value
        for vocabulary in vars(words).values()
        if isinstance(vocabulary, type) and issubclass(vocabulary, StrEnum)
        for word in vocabulary
    ]
    assert "cancelled" in spoken
    assert not [word for word in spoken if "canceled" in word or "cancelation" in word]


def test_r_four_states_are_final_and_two_wait() -> None:
    assert {"done", "failed", "cancelled", "rejected"} == FINAL_STATES
    assert {"pending", "queued"} == WAITING_STATES


def test_a_word_is_its_text_in_every_table_and_in_json() -> None:
    assert {"queued": 1}[State.QUEUED] == 1
    assert hash(State.QUEUED) == hash("queued")
    assert f"{State.QUEUED}" == "queued"
    assert msgspec.json.encode(State.QUEUED) == b'"queued"'
    assert deepcopy(State.QUEUED) is State.QUEUED
