"""One drain by one contender, in this process: `python -m bench.contenders NAME '{"url": …}'`."""

import importlib
import sys

import msgspec

from headway.wiring import run


def main() -> None:
    name, options = sys.argv[1:]
    contender = importlib.import_module(f"bench.contenders.{name}")
    drained = run(contender.drain(**msgspec.json.decode(options)))
    print(msgspec.json.encode(drained).decode())


if __name__ == "__main__":
    main()
