"""Headers of responses in the web server's processes (platform_site.serving.response_headers)."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import BadHeaderError, HttpResponse
from django.http.response import ResponseHeaders
from hypothesis import given
from hypothesis import strategies as st

from platform_site.serving.response_headers import QuickHeaders

NAMES = st.sampled_from(["Content-Type", "content-type", "Vary", "ETag", "Cache-Control", "X-Überschrift", "A\nB"])
VALUES = st.sampled_from(["no-store", "a\r\nSet-Cookie: b", "Ж", "é", "", b"bytes", b"a\nb", 7])


def built(kind: type[ResponseHeaders], headers: list[tuple[str, Any]]) -> Any:
    """The headers, or the type of the error."""
    result = kind({})
    try:
        for name, value in headers:
            result[name] = value
    except (BadHeaderError, UnicodeError) as error:
        return type(error)
    return list(result.items()), [name in result for name in ("VARY", "etag")], result.get("vary")


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
def test_headers_are_those_of_django(headers: list[tuple[str, Any]]) -> None:
    # Twice: the second time the values are known.
    assert built(QuickHeaders, headers) == built(ResponseHeaders, headers) == built(QuickHeaders, headers)


def test_responses_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.http.response.ResponseHeaders", QuickHeaders)
    response = HttpResponse(b"", headers={"Content-Type": "application/json"})
    response.headers.setdefault("content-type", "text/plain")
    del response.headers["Content-Type"]
    response.headers["Vary"] = "Accept"
    assert list(response.items()) == [("Vary", "Accept")]
    with pytest.raises(BadHeaderError):
        response.headers["Vary"] = "Accept\r\nSet-Cookie: a=b"
