"""From the parts of a request to one struct."""

from typing import Annotated

import pytest
from msgspec import Meta

from headway.gateway.access.caller import Caller
from headway.gateway.binding import Binder, read_params
from headway.gateway.desk import Desk
from headway.gateway.endpoint import Endpoint
from headway.gateway.errors import Conflict
from headway.gateway.operations import operation
from headway.model.errors import InvalidInput
from headway.model.words import Scope
from headway.wire.base import Answer, Request


class Asked(Request, frozen=True):
    key: str
    count: Annotated[int, Meta(ge=0)] = 1
    loud: bool = False
    names: tuple[str, ...] = ()
    note_key: str | None = None


class Told(Answer, frozen=True):
    fine: bool


@operation(Scope.READ)
async def work(desk: Desk, caller: Caller, asked: Asked) -> Told:
    """Do it."""
    return Told(fine=True)


LOOK = Binder(Endpoint("GET", "/x/{key}/y", work, "X"))
PUT = Binder(
    Endpoint("PUT", "/x/{key}", work, "X", query=("loud",), headers={"Note-Key": "noteKey"})
)
POST = Binder(Endpoint("POST", "/x", work, "X", headers={"Note-Key": "noteKey"}))


def test_a_segment_is_decoded_once_and_may_hold_anything() -> None:
    assert LOOK.bind(b"/x/a%2Fb%25%3A%C3%BC/y", b"", {}, b"") == Asked(key="a/b%:ü")
    assert LOOK.bind(b"//x/a/y/", b"", {}, b"") == Asked(key="a")
    with pytest.raises(InvalidInput, match=r"key: .* UTF-8"):
        LOOK.bind(b"/x/%ff/y", b"", {}, b"")


def test_the_query_is_read_exactly() -> None:
    query = b"count=7&loud=true&names=a&names=b"
    assert LOOK.bind(b"/x/k/y", query, {}, b"") == Asked(
        key="k", count=7, loud=True, names=("a", "b")
    )
    for wrong, field in (
        (b"count=1.0", "count"),
        (b"count=-1", "count"),
        (b"count=%2B1", "count"),
        (b"count=99999999999999999999", "count"),
        (b"loud=1", "loud"),
        (b"loud=True", "loud"),
        (b"loud=true&loud=true", "loud"),
        (b"key=x", "key"),
        (b"lod=true", "lod"),
    ):
        with pytest.raises(InvalidInput) as caught:
            LOOK.bind(b"/x/k/y", wrong, {}, b"")
        assert caught.value.field == field


def test_what_is_in_the_path_is_not_in_the_body_too() -> None:
    assert PUT.bind(b"/x/k", b"loud=true", {}, b'{"count":3}') == Asked(key="k", count=3, loud=True)
    assert PUT.bind(b"/x/k", b"", {}, b"") == Asked(key="k")
    for body in (b'{"key":"other"}', b'{"loud":true}'):
        with pytest.raises(InvalidInput, match="one of the options: count, names, noteKey"):
            PUT.bind(b"/x/k", b"", {}, body)


def test_a_header_fills_its_field_and_may_not_say_something_else() -> None:
    header = {b"note-key": b"n1"}
    assert POST.bind(b"/x", b"", header, b'{"key":"k"}') == Asked(key="k", note_key="n1")
    same = b'{"key":"k","noteKey":"n1"}'
    assert POST.bind(b"/x", b"", header, same) == Asked(key="k", note_key="n1")
    with pytest.raises(Conflict, match="Note-Key"):
        POST.bind(b"/x", b"", header, b'{"key":"k","noteKey":"n2"}')
    with pytest.raises(InvalidInput, match=r"Note-Key: .* visible"):
        POST.bind(b"/x", b"", {b"note-key": b"a b"}, b'{"key":"k"}')


def test_a_query_where_there_is_none_is_an_error() -> None:
    with pytest.raises(InvalidInput):
        POST.bind(b"/x", b"a=1", {}, b'{"key":"k"}')


def test_to_json_a_float_may_be_a_whole_number() -> None:
    assert POST.bind(b"/x", b"", {}, b'{"key":"k","count":128.0}').count == 128  # type: ignore[attr-defined]
    for wrong in (b'{"key":"k","count":1.5}', b'{"key":1.0}', b'{"key":"k","count":"1"}'):
        with pytest.raises(InvalidInput):
            POST.bind(b"/x", b"", {}, wrong)


def test_the_parameters_of_a_call_are_read_the_same_way() -> None:
    assert read_params({"key": "k", "noteKey": "n"}, Asked) == Asked(key="k", note_key="n")
    assert read_params({"key": "k", "count": 2.0}, Asked) == Asked(key="k", count=2)
    with pytest.raises(InvalidInput, match=r"did you mean 'noteKey'\?"):
        read_params({"key": "k", "note_key": "n"}, Asked)


def test_a_table_that_names_a_field_that_is_not_there_is_refused_at_once() -> None:
    for endpoint in (
        Endpoint("GET", "/x/{id}", work, "X"),
        Endpoint("POST", "/x", work, "X", query=("nothing",)),
        Endpoint("POST", "/x", work, "X", headers={"A": "nothing"}),
    ):
        with pytest.raises(TypeError, match="Asked has no"):
            Binder(endpoint)
