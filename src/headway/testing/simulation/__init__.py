"""The parts of the simulator: how a random history is drawn, told to a kernel, and checked.

    play                 one history from its seed to its end
    worlds, history      draw what happens (the only place with randomness)
    driver, telling      tell the kernel, one thing at a time
    witness              follows its actions; placing, starting, ahead, cutting, ending, merging judge
    mirror, bars, seen   the simulator's own picture of the node, by the rules of the specification
    invariants           what must hold between two steps
    audit                compares the kernel's inner counters with the picture
    ledger               plays the store

The picture never asks the kernel; only `audit` and the question "why does it wait?" look inside.
If this room is wrong, a broken kernel passes; `tests/simulation` therefore also runs it against
kernels that are broken on purpose.
"""
