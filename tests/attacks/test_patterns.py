"""Texts of a caller that make a backtracking matcher take hours.

Who: any caller of the API, and whoever writes scripts. What: patterns and texts with long repetitions, wherever input
is matched: a function's search, $search, matchesPattern, headers, the literals of URLs, the columns of script errors.
What prevents it: each of them takes time proportional to the input, so the process goes on answering others.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from urllib.parse import quote

import pytest

from scripts.sandbox import positions, throw_statements
from tests.support.api import Api

#: Each answer takes milliseconds; a matcher that backtracks takes hours.
SECONDS = 10
#: Near the longest URL that is taken.
LONG = 1500
PRODUCTS = "General_Products_Products"
USERS = "Systems_Security_Users"


@contextmanager
def bounded() -> Iterator[None]:
    """Fail what takes longer than SECONDS."""

    def fail(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"not done in {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def user(administrator: Api) -> str:
    """A user with a custom property whose allowed value is long."""
    administrator.create(
        "Systems_Bpm_CustomProperties",
        {
            "Code": "hostile",
            "Name": {"EN": "Hostile"},
            "EntityName": USERS,
            "PropertyType": "Text",
            "LimitToAllowedValues": True,
            "AllowedValues": [{"PropertyAllowedValueField": "a" * 60}],
        },
    )
    return str(administrator.read(f"{USERS}?$top=1&$select=Id")["value"][0]["@odata.id"])


@pytest.mark.parametrize(
    "search, exact, found",
    [
        ("%" * 60 + "b", True, False),
        ("%a" * 50 + "b", True, False),
        ("a%" * 50 + "b%", False, False),
        ("%" * 60, True, True),
        ("a%a", True, True),
        ("%aa%", False, True),
        ("A%A", False, True),
        ("aa", True, False),
        ("aa", False, True),
    ],
)
def test_a_search_of_allowed_values(administrator: Api, user: str, search: str, exact: bool, found: bool) -> None:
    asked = f"customPropertyCode='hostile',search='{quote(search)}',exactMatch={str(exact).lower()}"
    with bounded():
        values = administrator.read(f"{user}/GetAllowedCustomPropertyValues({asked})")["value"]
    assert bool(values) is found


@pytest.mark.parametrize(
    "query",
    [
        "$search=" + quote('"' + "%_*?" * 200 + '"'),
        "$search=" + "(" * 90 + "a" + ")" * 90,
        "$filter=" + quote("matchesPattern(PartNumber,'" + "(a|a)*" * 40 + "b')"),
        "$filter=" + quote("matchesPattern(PartNumber,'^(((a+)+)+)+$')"),
        "$filter=" + quote("matchesPattern('" + "a" * 300 + "','^(a+)+b$')"),
        "$filter=" + quote("matchesPattern('" + "a" * 300 + "','(.*)*(.*)*(.*)*b')"),
        "$filter=" + quote("contains(PartNumber,'" + "%_" * 300 + "')"),
        "$filter=" + quote("PartNumber eq " + "'" * LONG),
        "$filter=" + quote(" " * LONG + "and"),
        "$filter=" + quote("geo.distance(geography'SRID=0;LineString(" + "1 1," * 200 + "',null) eq 1"),
        "$filter=" + quote("PartNumber in (" + "' '," * 200),
        "$orderby=" + quote("PartNumber" + " " * LONG + "x"),
        "$apply=" + quote("compute(1 " + " " * LONG + "as"),
        "$select=" + "a." * 500,
        "$format=" + quote("a/" + ";" * LONG),
        "$orderby=" + ",".join(["0%20add%201"] * 1500),
        "$orderby=" + ",".join(f"{n}%20add%201" for n in range(1500)),
    ],
    ids=range(17),
)
def test_query_options(administrator: Api, query: str) -> None:
    with bounded():
        assert administrator.get(f"{PRODUCTS}?{query}").status_code < 500


@pytest.mark.parametrize(
    "name",
    [
        "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Content-Type", "Cookie", "If-Match",
        "If-None-Match", "OData-MaxVersion", "Prefer", "traceparent", "X-Request-ID", "TransactionId", "Range",
        "Origin", "X-Forwarded-For", "Forwarded",
    ],
)  # fmt: skip
def test_headers(administrator: Api, name: str) -> None:
    with bounded():
        for value in (";" * 8000, "a," * 8000, '"\\' * 4000, " " * 8000 + "x", 'a="' * 3000, "en-" * 3000, "*/" * 4000):
            answer = administrator.get(f"{PRODUCTS}?$top=0", **{name: value})
            assert answer.status_code < 500, (value[:10], answer.content)


@pytest.mark.parametrize(
    "content_type, body",
    [
        ("multipart/mixed; boundary=" + '"' * 4000, b""),
        ("multipart/mixed; boundary=a", b"--a" + b" \t" * 200_000 + b"x"),
        ("multipart/mixed; boundary=a", b"--a\r\n" + b"\r\n" * 200_000),
        ("multipart/mixed; boundary=a", b"--a\r\nContent-Type: application/http\r\n\r\nGET " + b" " * 200_000),
        ("application/json", b'{"requests":[' + b"[" * 200_000),
        ("application/json", b'{"requests":[{"id":"1","method":"GET","url":"' + b"/" * 200_000 + b'"}]}'),
        ("application/json", b'{"requests":[{"id":"1","method":"GET","url":"x","if":"' + b"(" * 100_000 + b'"}]}'),
    ],
    ids=range(7),
)
def test_batches(administrator: Api, content_type: str, body: bytes) -> None:
    with bounded():
        assert administrator.post("$batch", body, Content_Type=content_type).status_code < 500


@pytest.mark.parametrize(
    "line, message",
    [
        ("x='" + "a" * 500_000 + "';x()", "not a function"),
        ("x" + " " * 500_000, "not a function"),
        ("x", "cannot read property '" * 20_000),
        ("x", "assignment to '" * 30_000),
        ("new " * 100_000, "no such message"),
    ],
    ids=range(5),
)
def test_the_column_of_a_script_error(line: str, message: str) -> None:
    with bounded():
        positions.column_of_exception(line, "TypeError", message)


@pytest.mark.parametrize(
    "source",
    ["function" + " " * 500_000, "f" + " " * 500_000, "f=" + "w" * 500_000, "f(" * 200_000],
    ids=range(4),
)
def test_the_line_of_a_script_error(source: str) -> None:
    with bounded():
        assert positions.of_exception("    at f (<input>)\n", "TypeError", "x", source) == positions.NOWHERE


@pytest.mark.parametrize("repeated", ["/*", "/[", "/\\", "'\\\n", "`${", "(", " ", "/a", "<!-", "throw(", "throw /"])
def test_marks_of_throw_statements(repeated: str) -> None:
    source: Any = "throw 1;" + repeated * (throw_statements.SOURCE_MAX_CHARS // len(repeated) - 10)
    with bounded():
        throw_statements.throw_statements(source)
