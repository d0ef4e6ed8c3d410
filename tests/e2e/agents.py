"""Agents that write down what they do; `ledger.ask` makes the text that tells them what to do."""

import asyncio
import os
import time
from pathlib import Path

import msgspec

from headway import Headway, Turn
from headway.config import settings_from
from headway.model.places import Delivery
from tests.e2e.ledger import FOLDER, PROCESS, Pen, since_boot
from tests.e2e.waiting import until

HERE = Path(os.environ[FOLDER])
GO = HERE / "go"
TAPE = HERE / "tape.jsonl"
SLICE_S = 0.03

# Idle sessions are given back at once, so that they change hands all the time.
hw = Headway(settings=msgspec.structs.replace(settings_from(os.environ), idle_sessions=0))
pen = Pen.of_environment()


def reply(number: int, turn: Turn) -> str:
    return f"{number} {turn.attempt} {turn.fence}"


@hw.agent("walker")
async def walker(turn: Turn) -> str:
    """Takes its time by the clock: one that was frozen meanwhile is at its end at once when it is thawed."""
    number, milliseconds = map(int, turn.text.split())
    pen.write("begin", turn, number)
    until_at = since_boot() + milliseconds * 1_000
    try:
        while since_boot() < until_at:
            await asyncio.sleep(min(SLICE_S, (until_at - since_boot()) / 1_000_000))
            pen.write("beat", turn, number)
    except asyncio.CancelledError:
        pen.write("cut", turn, number)
        raise
    pen.write("end", turn, number)
    return reply(number, turn)


@hw.agent("digger")
def digger(turn: Turn) -> str:
    """The same in a thread, where a cancellation is seen only when it is looked for."""
    number, milliseconds = map(int, turn.text.split())
    pen.write("begin", turn, number)
    until_at = since_boot() + milliseconds * 1_000
    while since_boot() < until_at and not turn.cancelled:
        time.sleep(SLICE_S)
        pen.write("beat", turn, number)
    pen.write("cut" if turn.cancelled else "end", turn, number)
    turn.raise_if_cancelled()
    return reply(number, turn)


@hw.agent("keeper", steerable=True)
async def keeper(turn: Turn) -> str:
    """Told to hold on: takes a steered message, then waits for the file `go`; a second attempt does not wait."""
    number = int(turn.text.split()[0])
    pen.write("begin", turn, number)
    if "hold" in turn.text and turn.attempt == 1:
        message = await turn.inbox.get()
        turn.say(f"{number}: took {message.text}")
        pen.write("beat", turn, number)
        await until(GO.exists, "told to go on")
        turn.say(f"{number}: woke up")
    pen.write("end", turn, number)
    return reply(number, turn)


@hw.agent("thread")
def thread(turn: Turn) -> str:
    """The same in a thread that never looks whether it was cancelled."""
    number = int(turn.text.split()[0])
    pen.write("begin", turn, number)
    if "hold" in turn.text and turn.attempt == 1:
        while not GO.exists():
            time.sleep(SLICE_S / 10)
        turn.say(f"{number}: woke up")
    pen.write("end", turn, number)
    return reply(number, turn)


@hw.channel("tape")
def tape(delivery: Delivery) -> None:
    """Deliveries are written down with who delivered them."""
    row = msgspec.json.encode((os.environ[PROCESS], delivery.run_id, delivery.text)) + b"\n"
    with TAPE.open("ab", buffering=0) as file:
        file.write(row)
