"""Callbacks of a library's `Headway`, with the real channel, and their reload (T-4, F-1)."""

import json

import msgspec
import pytest

from headway import Headway, InvalidInput, Settings
from headway.model.settings import CallbackSettings
from headway.model.task import Task
from tests.unit.channels.receivers import OK, play, receiver
from tests.unit.runtime.worlds import Recorder

CLICK = Task("click")


def test_t4_a_task_calls_back_to_a_real_receiver() -> None:
    async def main() -> None:
        callbacks = CallbackSettings("s3cret", private=True)
        hw = Headway(settings=Settings(callbacks=callbacks))
        hw.agent("a")(Recorder(takes=0))
        async with hw, receiver(OK) as receiving:
            await hw.submit("a", task=CLICK, callback=receiving.url)
            await receiving.came.wait()
        (post,) = receiving.posts
        assert json.loads(post.body)["state"] == "done"

    play(main())


def test_t4_a_reload_changes_the_secret_and_what_is_allowed() -> None:
    async def main() -> None:
        hw = Headway(settings=Settings())
        hw.agent("a")(Recorder(takes=0))
        async with hw, receiver(OK) as receiving:

            def reload(callbacks: CallbackSettings) -> None:
                told = hw.reload(msgspec.structs.replace(hw.settings, callbacks=callbacks))
                assert not told.needs_restart
                assert all(name.startswith("callbacks.") for name in told.changed)
                assert told.changed

            with pytest.raises(InvalidInput, match=r"callbacks\.secret"):
                await hw.submit("a", task=CLICK, callback=receiving.url)
            reload(CallbackSettings("s3cret"))
            with pytest.raises(InvalidInput, match=r"callbacks\.private"):
                await hw.submit("a", task=CLICK, callback=receiving.url)
            reload(CallbackSettings("s3cret", private=True))
            await hw.submit("a", task=CLICK, callback=receiving.url)
            await receiving.came.wait()
            reload(CallbackSettings())
            with pytest.raises(InvalidInput, match=r"callbacks\.secret"):
                await hw.submit("a", task=CLICK, callback=receiving.url)

    play(main())
