"""What log lines look like and what they never hold."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest
from django.test import Client

from platform_site.logging import (
    JsonFormatter,
    RequestIdFilter,
    TextFormatter,
    current_request_id,
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
    with request_logged_as("4711"):
        assert current_request_id() == "4711"
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


SECRETS = (
    "/id/account/reset/MDE5/d2x-s3kr1t0k3n",
    "/id/account/email/MDE5/s3kr1t0k3n",
    "/id/account/login?next=/id/connect/authorize%3Fx&code=s3kr1t0k3n",
    "/x?access_token=s3kr1t0k3n&a=1",
    "/x?a=1&client_secret=s3kr1t0k3n",
    "/x?Api-Key=s3kr1t0k3n",
    "https://shop.example/callback?state=s3kr1t0k3n",
    "/sys/tools/sha256?secret=s3kr1t0k3n",
)


@pytest.mark.parametrize("address", SECRETS)
@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_secrets_in_addresses_are_masked_whoever_logs_them(formatter: logging.Formatter, address: str) -> None:
    try:
        raise ValueError(f"no answer from {address}")
    except ValueError:
        exc_info = sys.exc_info()
    record = logging.getLogger("django.security.csrf").makeRecord(
        "django.security.csrf", logging.WARNING, __file__, 1, "Forbidden (%s): %s", ("Origin", address), exc_info,
        extra={"address": address, "seen": [address]},
    )  # fmt: skip
    assert "s3kr1t" not in formatter.format(record)


def test_the_rest_of_an_address_stays(caplog: pytest.LogCaptureFixture) -> None:
    for text in ("GET /id/account/reset/MDE5/set 200", "GET /api/domain/odata/Users?$filter=Code eq 'x' 200"):
        assert loggable(text) == text
    assert loggable("GET /id/account/reset/MDE5/d2x-1 302") == "GET /id/account/reset/MDE5/[not logged] 302"


@pytest.mark.parametrize("character", ["\n", "\r", "\x1b", "\x00", "\x7f", "\x9b", "\u2028", "\u202e", "\x08"])
@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_control_characters_are_escaped(formatter: logging.Formatter, character: str) -> None:
    record = logging.getLogger("platform").makeRecord(
        "platform", logging.INFO, __file__, 1, "GET %s 404", (f"/a{character}12:00:00 ERROR forged",), None,
        extra={"client": f"x{character}y"},
    )  # fmt: skip
    line = formatter.format(record)
    assert character not in (line if isinstance(formatter, TextFormatter) else "".join(json.loads(line).values()))
    assert len(line.splitlines()) == 1


@pytest.mark.django_db
def test_a_request_with_a_link_and_control_characters_leaves_neither(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    Client().get("/id/account/reset/MDE5/d2x-s3kr1t0k3n")
    Client().get("/id/%0A12:00:00%20ERROR%1B[2J")
    lines = [TextFormatter().format(record) for record in caplog.records]
    assert any("/id/account/reset/MDE5/[not logged]" in line for line in lines)
    assert not any("s3kr1t" in line or "\n" in line or "\x1b" in line for line in lines)
