"""The config of a worker: the same file and variables as a server's, without what is only about its port."""

import os
import sys
from collections.abc import Mapping

from headway.cli.serve.overlay import overlay
from headway.config import Config, load
from headway.facade import Headway
from headway.wiring import MEMORY


def read(path: str | None, flags: Mapping[str, object]) -> Config:
    """The config; names that set nothing are warned about."""
    config = load(path, os.environ, flags)
    for warning in config.warnings:
        print(f"headway: {warning}", file=sys.stderr)
    return config


def configure(headway: Headway, config: Config, store: str | None) -> None:
    """What the config says goes on top of what code says; its store only where code names none."""
    headway.reload(overlay(headway.settings, config))
    if store is not None:
        headway.use_store(store)
    elif config.store and headway.store == MEMORY:
        headway.use_store(config.store)
