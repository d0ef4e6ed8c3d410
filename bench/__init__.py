"""Benches: each claim of speed as a program, beside the peer it is measured against.

A bench is a plain module of this package, `bench/<name>.py`, with two things in it::

    TITLE = "Runs a second through one lane"


    def run(quick: bool) -> Report: ...

`run` measures and returns a `bench.harness.Report`; the harness prints it, holds it against the
limits it names, draws it, and writes it down. A module whose name begins with an underscore is no
bench, nor is a package: shared parts go there. With `quick` a bench only shows that it works; its
numbers mean nothing.

    python -m bench --list
    python -m bench NAME [--quick] [--plot]
    python -m bench all  [--quick] [--plot]      # also writes bench/RESULTS.md
    python -m bench chaos --minutes 30

Some need more than the project itself: `pip install 'headway[bench]'`. Where a package is missing the bench says
which one, and `all` goes on without it. Benches with PostgreSQL start one of their own, or use the server that
`HEADWAY_BENCH_POSTGRES` names.

The last line on stdout is always one JSON object, `{"bench": NAME, "figures": {...}}`. A missed
limit is said plainly and fails nothing: a timing depends on the machine, and a build that fails on
it teaches people to run it again. Benches may import anything; nothing imports them.
"""
