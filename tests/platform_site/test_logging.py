"""What log lines look like and what they never hold."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from platform_site.logging import (
    JsonFormatter,
    RequestIdFilter,
    TextFormatter,
    loggable,
    request_logged_as,
)


def a_record(**extra: Any) -> logging.LogRecord:
    """A record as a logger makes it."""
    record = logging.getLogger("rules").makeRecord(
        "rules", logging.INFO, __file__, 1, "rule %s fired", ("CREDIT",), None, extra=extra or None
    )
    RequestIdFilter().filter(record)
    return record


def as_json(record: logging.LogRecord) -> dict[str, Any]:
    """The JSON line, read back."""
    line = JsonFormatter().format(record)
    assert "\n" not in line
    fields: dict[str, Any] = json.loads(line)
    return fields


def test_a_json_line_is_one_object_with_the_extra_fields() -> None:
    fields = as_json(a_record(duration_ms=1.5, session="abc"))
    assert fields["message"] == "rule CREDIT fired"
    assert (fields["level"], fields["logger"]) == ("INFO", "rules")
    assert (fields["duration_ms"], fields["session"]) == (1.5, "abc")
    assert fields["time"].endswith("Z")


def test_lines_of_a_request_carry_its_id() -> None:
    whole = "0af7651916cd43dd8448eb211c80319c"
    with request_logged_as(whole):
        assert TextFormatter().format(a_record()).endswith(f"request={whole})")  # what a caller was told is found
    with request_logged_as("4711"):
        record = a_record()
    assert as_json(record)["request_id"] == "4711"
    assert TextFormatter().format(record).endswith("(request=4711)")
    assert "request_id" not in as_json(a_record())


def test_values_under_secret_names_are_masked() -> None:
    record = a_record(client_secret="geheim", Authorization="Bearer geheim", new_password="geheim")
    assert "geheim" not in JsonFormatter().format(record)
    assert "geheim" not in TextFormatter().format(record)


def test_an_exception_stays_in_its_line() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        record = a_record()
        record.exc_info = sys.exc_info()
    assert "ValueError: broken" in as_json(record)["exception"]
    assert "ValueError: broken" in TextFormatter().format(record)


def test_json_takes_any_value() -> None:
    assert as_json(a_record(thing=object, keys={1: 2}))["keys"] == {"1": 2}


def test_text_leaves_out_what_is_empty() -> None:
    assert TextFormatter().format(a_record(user="", session=None)).endswith("rules: rule CREDIT fired")


def test_the_rest_of_an_address_stays(caplog: pytest.LogCaptureFixture) -> None:
    for text in ("GET /id/account/reset/MDE5/set 200", "GET /api/domain/odata/Users?$filter=Code eq 'x' 200"):
        assert loggable(text) == text
    assert loggable("GET /id/account/reset/MDE5/d2x-1 302") == "GET /id/account/reset/MDE5/[not logged] 302"
