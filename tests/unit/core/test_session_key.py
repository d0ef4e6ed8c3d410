"""Where a message came from decides its session, and two places never share one."""

from hypothesis import given
from hypothesis import strategies as st

from headway.core.session_key import is_named_after, is_of_a_place, session_key
from headway.model.run import AgentName, Route
from headway.model.settings import MAX_NAME

MAIN = AgentName("main")
names = st.text(max_size=20)
routes = st.builds(
    Route, channel=st.text(min_size=1, max_size=20), account=names, peer=names, thread=names
)


def test_a_direct_chat_has_the_key_of_the_glossary() -> None:
    assert session_key(MAIN, Route("telegram", peer="42")) == "agent:main:telegram:dm:42"


def test_account_and_thread_are_part_of_it() -> None:
    route = Route("slack", account="acme", peer="C1", thread="17.5")
    assert session_key(MAIN, route) == "agent:main:slack:account:acme:dm:C1:thread:17.5"


def test_without_a_peer_it_is_the_one_conversation_of_the_channel() -> None:
    assert session_key(MAIN, Route("terminal")) == "agent:main:terminal:main"


@given(routes, routes)
def test_two_places_never_share_a_session(one: Route, other: Route) -> None:
    assert (session_key(MAIN, one) == session_key(MAIN, other)) == (one == other)


def test_a_long_name_still_makes_a_key_that_is_allowed() -> None:
    one = session_key(MAIN, Route("mail", peer="a" * 600))
    other = session_key(MAIN, Route("mail", peer="a" * 599 + "b"))
    assert max(len(one), len(other)) <= MAX_NAME
    assert one != other


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20), routes)
def test_o4_a_key_says_whose_place_it_is(agent: str, other: str, route: Route) -> None:
    key = session_key(AgentName(agent), route)
    assert is_of_a_place(key)
    assert is_named_after(agent, key)
    assert is_named_after(other, key) == (other == agent)
    assert not is_of_a_place("my own key")
