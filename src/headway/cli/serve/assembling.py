"""Puts a server together as it was asked for: agents, config, store, port, and what is said about them."""

import gc
import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from headway.cli.opening import asking
from headway.cli.serve.addresses import is_local
from headway.cli.serve.builtin import add_commands, add_echo
from headway.cli.serve.demo.showing import put_on
from headway.cli.serve.front import HttpFront
from headway.cli.serve.introduction import tokens_command
from headway.cli.serve.listening import Listening
from headway.cli.serve.places import default_store, make_data_folder
from headway.cli.serve.reloading import LiveConfig
from headway.cli.serve.show import Show
from headway.cli.worker.agents import find_headway
from headway.cli.worker.service import Service, print_line
from headway.config import Config, lane_warnings, load
from headway.facade import Headway
from headway.logs import open_log
from headway.model.errors import Refused
from headway.wiring import MEMORY, run


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command line says."""

    agents: str | None
    commands: bool
    demo: bool
    name: str | None
    config: str | None
    flags: Mapping[str, object]


class NoTokens(Refused):
    """Others could reach it, and nobody would be asked who he is (O-4)."""

    code = "no_tokens"

    def __init__(self, host: str, store: str) -> None:
        self.host = host
        command = tokens_command("NAME --scope admin", store)
        super().__init__(
            f"{host} can be reached from other machines, and there are no tokens yet: "
            f"make one with `{command}`, or stay on 127.0.0.1"
        )


def serve_as_asked(asked: Asked) -> None:
    """Serve until a signal ends it. Refuses what cannot work before anything has begun."""

    def read() -> Config:
        return load(asked.config, os.environ, asked.flags)

    config = read()
    for warning in config.warnings:
        print(f"headway: {warning}", file=sys.stderr)
    headway = _headway(asked)
    live = LiveConfig(headway, config, read)
    for warning in lane_warnings(headway.settings, config.sources):
        print(f"headway: {warning}", file=sys.stderr)
    _choose_store(headway, config, demo=asked.demo)
    if asked.name is not None:
        headway.use_name(asked.name)
    # What is there by now stays: each full collection would look at all of it, and everybody wait meanwhile.
    gc.collect()
    gc.freeze()
    # Of requests under way hundreds of objects are alive: to look after each 700 new ones would find little.
    gc.set_threshold(10_000)
    run(_serve(headway, live, asked))


def _headway(asked: Asked) -> Headway:
    if asked.agents is not None:
        headway = find_headway(asked.agents)
    else:
        headway = Headway(MEMORY)
        add_echo(headway)
    if asked.commands:
        add_commands(headway)
    return headway


def _choose_store(headway: Headway, config: Config, *, demo: bool) -> None:
    """What the config names, else what the user's code names, else a file in his data folder (D-2)."""
    if config.store:
        headway.use_store(config.store)
    elif headway.store == MEMORY:
        make_data_folder()
        headway.use_store(default_store(demo=demo))


async def _serve(headway: Headway, live: LiveConfig, asked: Asked) -> None:
    await _check_reachable(headway, live.server.host)
    listening = Listening(live.server)
    listening.take()
    try:
        show = put_on(headway, listening.url, sys.stdout) if asked.demo else Show()
        with closing(open_log(live.server.log, show.log_stream)) as log:
            live.use_log(log)
            front = HttpFront(headway, listening, config=live, log=log, say=print_line, show=show)
            await Service(headway, front=front).serve()
    finally:
        await listening.close()


async def _check_reachable(headway: Headway, host: str) -> None:
    if is_local(host):
        return
    if headway.store == MEMORY:
        raise NoTokens(host, headway.store)
    async with asking(headway.store) as beside:
        if not await beside.tokens.list():
            raise NoTokens(host, headway.store)
