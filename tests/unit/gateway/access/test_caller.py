"""What a caller may (O-4)."""

import pytest

from headway.gateway.access.caller import EVERYTHING, Caller
from headway.gateway.errors import Forbidden
from headway.model.words import Scope


@pytest.mark.parametrize(
    ("held", "allowed"),
    [
        ((), ()),
        ((Scope.READ,), (Scope.READ,)),
        ((Scope.SUBMIT,), (Scope.READ, Scope.SUBMIT)),
        ((Scope.READ, Scope.CONTROL), (Scope.READ, Scope.SUBMIT, Scope.CONTROL)),
        ((Scope.ADMIN,), tuple(Scope)),
    ],
)
def test_o4_each_scope_allows_what_those_before_it_do(
    held: tuple[Scope, ...], allowed: tuple[Scope, ...]
) -> None:
    caller = Caller(scopes=held)
    assert tuple(scope for scope in Scope if caller.may(scope)) == allowed
    for scope in set(Scope) - set(allowed):
        with pytest.raises(Forbidden, match=scope):
            caller.need(scope)


def test_o4_a_caller_with_an_agent_sees_only_that_one() -> None:
    caller = Caller(scopes=(Scope.ADMIN,), agent="a")
    assert caller.sees("a")
    assert not caller.sees("b")
    caller.need_agent("a")
    with pytest.raises(Forbidden, match="agent 'a' only"):
        caller.need_agent("b")
    with pytest.raises(Forbidden):
        caller.need_all_agents()
    assert caller.only(None) == "a"
    assert caller.only("a") == "a"
    with pytest.raises(Forbidden):
        caller.only("b")


def test_others_see_all() -> None:
    assert EVERYTHING.sees("anything")
    EVERYTHING.need_all_agents()
    assert EVERYTHING.only(None) is None
    assert EVERYTHING.only("b") == "b"
