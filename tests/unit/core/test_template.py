"""Templates: what stands at a place can be anything, and changes nothing around it."""

from typing import cast
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.template import (
    Unfillable,
    check_json,
    check_template,
    fill,
    fill_json,
    fill_path,
    fill_url,
    places,
    quoted,
    sample_url,
)
from headway.model.errors import InvalidInput, UnknownName
from headway.model.outcome import Json


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{text}", "hi {agent}"),
        ("<{text}> {attempt}", "<hi {agent}> 2"),
        ("{{text}}", "{text}"),
        ("{{{agent}}}", "{bob}"),
        ("{job_id}", ""),
        ("{params}", '{"a":[1]}'),
    ],
)
def test_places_are_filled_in_once(template: str, filled: str) -> None:
    values: dict[str, Json] = {
        "text": "hi {agent}",
        "agent": "bob",
        "attempt": 2,
        "job_id": None,
        "params": {"a": [1]},
    }
    assert fill(check_template(template, "t"), values) == filled


@pytest.mark.parametrize("template", ["{", "}", "a { b", "{text", "text}", "{{}", "{te{xt}"])
def test_a_brace_that_is_not_closed_is_refused(template: str) -> None:
    with pytest.raises(InvalidInput, match=r"body: .*brace"):
        check_template(template, "body")


@pytest.mark.parametrize(("template", "close"), [("{txt}", "text"), ("{tabId}", "tab_id")])
def test_an_unknown_place_is_refused_with_a_close_one(template: str, close: str) -> None:
    with pytest.raises(UnknownName) as refused:
        check_template(template, "url")
    assert refused.value.field == "url"
    assert refused.value.close == [close]


@pytest.mark.parametrize("template", ["{}", "{ text }", "{0}", "{text!r}", "{text.upper}"])
def test_a_place_has_no_more_than_a_name(template: str) -> None:
    with pytest.raises(UnknownName):
        check_template(template, "t")


def test_the_places_of_a_template_are_known() -> None:
    assert places("{{no}} {text} {tab_id}{text}") == {"text", "tab_id"}


def test_in_json_a_string_that_is_one_place_becomes_its_value() -> None:
    template: Json = {
        "input": "{params}",
        "who": "{agent}!",
        "list": ["{attempt}", 1, None, True, {"{text}": "{{}}"}],
    }
    values: dict[str, Json] = {"params": {"a": 1}, "agent": "bob", "attempt": 2, "text": "x"}
    assert fill_json(check_json(template, "body"), values) == {
        "input": {"a": 1},
        "who": "bob!",
        "list": [2, 1, None, True, {"{text}": "{}"}],
    }


def test_json_with_a_wrong_place_is_refused_where_it_is() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_json({"messages": [{"content": "{txt}"}]}, "body")
    assert refused.value.field == "body.messages[0].content"


ADDRESS = "http://browser-{agent}:9867/tabs/{tab_id}/do?x={text}"


@pytest.mark.parametrize(
    ("tab", "target"),
    [
        ("t1", "/tabs/t1/do"),
        ("../../admin", "/tabs/..%2F..%2Fadmin/do"),
        ("@evil.com", "/tabs/%40evil.com/do"),
        ("?x", "/tabs/%3Fx/do"),
        ("a#b", "/tabs/a%23b/do"),
        ("%2e%2e", "/tabs/%252e%252e/do"),
        ("a b\n", "/tabs/a%20b%0A/do"),
        ("ü", "/tabs/%C3%BC/do"),
        ("...", "/tabs/.../do"),
        ("", "/tabs//do"),
    ],
)
def test_t3_a_value_in_a_path_stays_one_step_of_it(tab: str, target: str) -> None:
    url = fill_url(ADDRESS, {"agent": "a", "tab_id": tab, "text": "y&z=1#"})
    assert url == f"http://browser-a:9867{target}?x=y%26z%3D1%23"


@pytest.mark.parametrize("tab", [".", ".."])
def test_t3_a_step_that_leads_elsewhere_cannot_be_written(tab: str) -> None:
    with pytest.raises(Unfillable, match="tab_id cannot stand in the path"):
        fill_url(ADDRESS, {"agent": "a", "tab_id": tab, "text": ""})
    with pytest.raises(Unfillable):
        fill_url("http://h/.{tab_id}", {"tab_id": "."})
    assert fill_url("http://h/v{tab_id}/..", {"tab_id": "."}) == "http://h/v./.."


@pytest.mark.parametrize(
    "agent", ["evil.com", "a@evil", "a/b", "", "-a", "a-", "ü", "a:1", "[::1]", "a b", "x" * 64]
)
def test_t3_in_a_host_only_a_name_without_dots_can_stand(agent: str) -> None:
    with pytest.raises(Unfillable, match="agent cannot stand in the host"):
        fill_url(ADDRESS, {"agent": agent, "tab_id": "t", "text": ""})


@pytest.mark.parametrize("tab", ["2130706433", "0", "0x7f000001", "0X", "017700000001"])
def test_t3_a_number_as_the_whole_host_would_be_any_address(tab: str) -> None:
    """A token would go to whichever IPv4 address a caller writes as one number."""
    with pytest.raises(Unfillable, match="tab_id cannot stand in the host"):
        fill_url("http://{tab_id}:9867", {"tab_id": tab})
    assert fill_url("http://b-{tab_id}:9867", {"tab_id": tab}) == f"http://b-{tab}:9867"
    assert fill_url("http://{tab_id}.local", {"tab_id": tab}) == f"http://{tab}.local"
    assert fill_url("http://10.0.0.1:{tab_id}", {"tab_id": tab}) == f"http://10.0.0.1:{tab}"


@pytest.mark.parametrize(
    ("template", "sample"),
    [
        ("http://{tab_id}:{ref}/a/{text}?b={text}", "http://a:1/a/1?b=1"),
        ("https://[::1]:{ref}", "https://[::1]:1"),
        ("http://h", "http://h"),
    ],
)
def test_an_address_can_be_looked_at_before_it_is_filled_in(template: str, sample: str) -> None:
    assert sample_url(template) == sample


def test_an_address_without_a_scheme_cannot_be_filled_in() -> None:
    with pytest.raises(InvalidInput):
        fill_url("{agent}://x/", {"agent": "http"})


@given(st.dictionaries(st.sampled_from(["agent", "tab_id", "text"]), st.text()))
def test_t3_whatever_is_filled_in_host_and_path_stay(values: dict[str, str]) -> None:
    everything = {"agent": "a", "tab_id": "t", "text": "", **values}
    try:
        url = fill_url(ADDRESS, cast("dict[str, Json]", everything))
    except Unfillable:
        return
    parts = urlsplit(url)
    assert parts.netloc == f"browser-{everything['agent']}:9867"
    assert parts.path == f"/tabs/{quoted(everything['tab_id'])}/do"
    assert unquote(parts.path.split("/")[2]) == everything["tab_id"]
    assert parts.query == f"x={quoted(everything['text'])}"
    assert not parts.fragment


@given(st.text())
def test_a_text_without_braces_is_a_template_of_itself(text: str) -> None:
    plain = text.replace("{", "").replace("}", "")
    assert fill(check_template(plain, "t"), {}) == plain
    doubled = text.replace("{", "{{").replace("}", "}}")
    assert fill(check_template(doubled, "t"), {}) == text


@pytest.mark.parametrize("value", ["", ".", "..", "a/b", "/", "../../etc", "a\0"])
def test_w1_what_is_filled_into_a_path_leads_nowhere_else(value: str) -> None:
    assert fill_path("/srv/{session}", {"session": "chat:1 ü"}) == "/srv/chat:1 ü"
    with pytest.raises(Unfillable, match="session"):
        fill_path("/srv/{session}", {"session": value})
