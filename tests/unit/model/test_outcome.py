"""An outcome is state, reason, and the reply or the error."""

import msgspec
import pytest

from headway.model.outcome import Attachment, Outcome, Reply
from headway.model.words import Reason, State


def test_r2_done_is_the_only_good_end() -> None:
    good = {state for state in State if Outcome(state).ok}
    assert good == {State.DONE}


def test_the_text_of_an_outcome_is_its_replys() -> None:
    assert Outcome(State.DONE, None, Reply("hello")).text == "hello"
    assert Outcome(State.FAILED, Reason.ERROR, error="boom").text == ""


def test_values_are_frozen_equal_by_content_and_told_in_json() -> None:
    outcome = Outcome(
        State.DONE, None, Reply("hi", (Attachment("a.png", "image/png", "u"),), {"n": [1, None]})
    )
    same = msgspec.structs.replace(outcome)
    assert same == outcome
    told = msgspec.json.decode(msgspec.json.encode(outcome))
    assert told["state"] == "done"
    assert told["reply"]["data"] == {"n": [1, None]}
    assert told["reply"]["attachments"] == [
        {"name": "a.png", "media_type": "image/png", "url": "u"}
    ]
    with pytest.raises(AttributeError):
        outcome.error = "changed"  # type: ignore[misc]
