"""A channel that writes what is said as lines of JSON, for files, log collectors and tests."""

import json
import logging
import sys
import threading
from typing import TextIO

import msgspec

from headway.calls import in_thread
from headway.channels.letter import letter_of
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.time import instant_text


class LogChannel:
    """One line each with the id of the delivery, to a logger, or to a stream: standard error if none is given.

    `at` is when it was said, not when it is written. A line is plain ASCII, so that every stream can take it and
    no character of an agent's ends it early.
    """

    def __init__(self, to: TextIO | logging.Logger | None = None) -> None:
        self._to = to
        self._one_at_a_time = threading.Lock()

    async def send(self, delivery: Delivery) -> None:
        fields = {"at": instant_text(delivery.first_at)} | msgspec.to_builtins(letter_of(delivery))
        # In a thread, because a pipe that nobody reads blocks.
        await in_thread(self._write, json.dumps(fields))

    async def typing(self, route: Route, on: bool) -> None:
        """Nothing was said, so there is nothing to write."""

    def _write(self, line: str) -> None:
        with self._one_at_a_time:
            if isinstance(self._to, logging.Logger):
                self._to.info("%s", line)
            else:
                stream = self._to or sys.stderr
                stream.write(f"{line}\n")
                stream.flush()
