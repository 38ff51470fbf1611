"""Templates become requests: escaping by place, both styles of JSON, header lines (spec 05, 5.4; spec 06, 6.1)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.dataset.templates.record_template import InvalidTemplate
from domain.model.registry import repositories
from tests.webhooks.cast import CALLER, CURRENCIES
from webhooks.headers import InvalidHeader, header_lines, masked
from webhooks.render import RenderedRequest, compile_request, double_braces, event_names_used, format_of

pytestmark = pytest.mark.django_db

NASTY = 'A "quoted" \\ back\r\nslash\tä Стол €&<x>%?#/ {curly}'


def currency(name: str) -> Record:
    """An entity that nobody saves."""
    return Dataset(CALLER).create(CURRENCIES, {"CurrencySign": "EUR", "Name": name})


def render(name: str = "Euro", **templates: Any) -> RenderedRequest:
    compiled = compile_request(
        repositories[CURRENCIES], **{"url": "http://h/", "headers": None, "body": None, **templates}
    )
    return compiled.render(currency(name))


@pytest.mark.parametrize(
    "body",
    [
        '{{"name": "{Name}", "again": "x{Name}y", "value": {Name}, "id": "{Id}", "none": {ExternalId}}}',
        '{"name": "{Name}", "again": "x{Name}y", "value": {Name}, "id": "{Id}", "none": {ExternalId}}',
    ],
)
def test_any_value_keeps_json_valid_in_both_styles(body: str) -> None:
    found = json.loads(render(NASTY, body=body).body)
    assert found["name"] == found["value"] == NASTY
    assert found["again"] == f"x{NASTY}y"
    assert found["none"] is None


@pytest.mark.parametrize(
    "body, expected",
    [
        ('{"a": {"b": {}, "c": ["{Name}"]}}', {"a": {"b": {}, "c": ["Euro"]}}),
        ('[{"a": 1}, {"b": "{{not a name}}"}]', None),
        ('{{"a": {{"b": "{Name}"}}}}', {"a": {"b": "Euro"}}),
        ('{\n  "a": "{Name}"\n}', {"a": "Euro"}),
        ("{}", {}),
        ('["{Name}"]', ["Euro"]),
        ('[{"a": "{Name}"}, {}]', [{"a": "Euro"}, {}]),
        ('[{{"a": {{"b": "{Name}"}}}}, {{}}]', [{"a": {"b": "Euro"}}, {}]),
    ],
)
def test_nested_json(body: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(InvalidTemplate):
            render(body=body)
    else:
        assert json.loads(render(body=body).body) == expected


def test_text_is_left_as_written() -> None:
    assert double_braces("Dear {Name}, {{ and }}") == "Dear {Name}, {{ and }}"


def test_values_in_the_url_are_percent_encoded() -> None:
    url = render(NASTY, url="http://h/p/{Name}?q={Name}").url
    assert url == "http://h/p/" + (encoded := url.partition("/p/")[2].partition("?")[0]) + "?q=" + encoded
    assert all(character not in encoded for character in ' "\\\r\n/?#&<>{}ä')


def test_values_cannot_begin_a_header() -> None:
    headers = render("a\r\nX-Evil: 1\x00\x7f", headers="X-Name: {Name}").headers
    assert headers == (("X-Name", "a X-Evil: 1 "),)


def test_xml_and_form_bodies_are_escaped_by_their_own_rules() -> None:
    assert render('<&"', body="<n>{Name}</n>").body == "<n>&lt;&amp;&quot;</n>"
    form = render("a&b=c d", body="name={Name}", content_type="application/x-www-form-urlencoded")
    assert form.body == "name=a%26b%3Dc%20d"


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ({"body": '{"a": 1}'}, "application/json"),
        ({"body": '{{"a": 1}}'}, "application/json"),
        ({"body": "<a/>"}, "application/xml"),
        ({"body": "hello"}, "text/plain; charset=utf-8"),
        ({"body": "hello", "content_type": "text/csv"}, "text/csv"),
        ({"body": "hello", "headers": "content-type: text/markdown"}, "text/markdown"),
        ({"body": None}, None),
    ],
)
def test_the_content_type_is_guessed_from_headers_or_body(arguments: dict[str, Any], expected: str | None) -> None:
    found = [value for name, value in render(**arguments).headers if name.lower() == "content-type"]
    assert found == ([expected] if expected else [])


def test_dates_are_iso_8601_for_machines() -> None:
    body = render(body='{"at": "{$now}", "on": "{$date}", "who": "{$user.Name}"}').body
    found = json.loads(body)
    assert found["at"].endswith("Z")
    assert len(found["on"]) == 10
    assert found["who"] == "Anna"


def test_unknown_names_are_all_told() -> None:
    with pytest.raises(InvalidTemplate) as invalid:
        render(body="{Nam} {Nothing.There}")
    assert len(invalid.value.problems) == 2
    assert "Did you mean Name" in invalid.value.problems[0]


def test_the_event_values_that_a_template_needs_are_known() -> None:
    compiled = compile_request(
        repositories[CURRENCIES], url="http://h/{$NewValue}", headers=None, body="{$OldValue} {$date}"
    )
    assert event_names_used(compiled) == {"$NewValue", "$OldValue"}


@pytest.mark.parametrize(
    "line",
    [
        "no colon", ": empty", "Spa ce: x", "Name : x", "Host: x", "content-length: 3", "Connection: close",
        "Transfer-Encoding: chunked", "webhook-id: 1", "X: a\rY: b", "X: a\x00", "Üml: x",
    ],
)  # fmt: skip
def test_header_lines_that_cannot_be_sent_are_refused(line: str) -> None:
    with pytest.raises(InvalidHeader):
        list(header_lines(line))


def test_header_lines_keep_order_and_repetition() -> None:
    assert list(header_lines("B: 1\r\n\r\nA:2\nB:  3 ")) == [("B", "1"), ("A", "2"), ("B", "3")]


@pytest.mark.parametrize(
    "name, value, shown",
    [
        ("Authorization", "Bearer abc", "Bearer ***"), ("authorization", "abc", "***"),
        ("WWW-Authenticate", 'Basic realm="abc"', "Basic ***"), ("X-Auth", "Bearer abc", "***"),
        ("X-Api-Key", "abc", "***"), ("apikey", "abc", "***"), ("Ocp-Apim-Subscription-Key", "abc", "***"),
        ("X-Access-Token", "abc", "***"), ("Cookie", "a=abc", "***"), ("Set-Cookie", "sid=abc; Path=/", "***"),
        ("X-Shared-Secret", "abc", "***"), ("X-Password", "abc", "***"), ("DB-Pwd", "abc", "***"),
        ("X-Session", "abc", "***"), ("X-Credentials", "abc", "***"), ("X-Token", "", ""),
        ("X-Name", "abc", "abc"), ("Content-Type", "text/plain", "text/plain"), ("webhook-id", "abc", "abc"),
        ("webhook-signature", "v1,abc", "v1,abc"),
    ],
)  # fmt: skip
def test_secrets_are_masked_when_shown(name: str, value: str, shown: str) -> None:
    assert masked([(name, value)]) == [(name, shown)]


@pytest.mark.parametrize(
    "content_type, body, expected",
    [
        ("application/ld+json; charset=utf-8", "", "json"),
        ("application/soap+xml", "", "xml"),
        ("text/plain", "{}", "text"),
        (None, " [1]", "json"),
        (None, "{Name}", "text"),
    ],
)
def test_the_format_of_a_body(content_type: str | None, body: str, expected: str) -> None:
    assert format_of(content_type, body) == expected
