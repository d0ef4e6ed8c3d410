"""Which path leads where."""

import pytest

from headway.gateway.router import Router

ROUTER = Router(
    (path, path)
    for path in ("/jobs", "/jobs/status", "/jobs/{job}", "/jobs/{job}/runs", "/x/{a}/y/{b}")
)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (b"/jobs", "/jobs"),
        (b"/jobs/", "/jobs"),
        (b"//jobs", "/jobs"),
        (b"/jobs/status", "/jobs/status"),
        (b"/jobs/status/runs", "/jobs/{job}/runs"),
        (b"/jobs/a%2Fb", "/jobs/{job}"),
        (b"/jobs/%00", "/jobs/{job}"),
        (b"/jobs/..", "/jobs/{job}"),
        (b"/x/1/y/2", "/x/{a}/y/{b}"),
        (b"/x/1/z/2", None),
        (b"/jobs/1/2/3", None),
        (b"/JOBS", None),
        (b"/", None),
        (b"", None),
    ],
)
def test_words_go_before_fields(path: bytes, found: str | None) -> None:
    assert ROUTER.find(path) == found
