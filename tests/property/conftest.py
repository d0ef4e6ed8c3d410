"""Properties are tried on the same examples each time: what is red stays red until it is mended."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "headway",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=200,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("headway")
