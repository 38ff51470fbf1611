"""One hierarchy, one catalogue, one renderer (spec 07)."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import translation

from foundation import errors
from foundation.messages import placeholders

ROOT = Path(__file__).resolve().parent.parent.parent


def sources() -> Iterator[Path]:
    """The modules of the product."""
    for part in ("domain", "foundation", "identity", "jobs", "platform_site", "rules", "scripts", "webhooks"):
        yield from (ROOT / part).rglob("*.py")


def test_the_fixed_codes_keep_their_numbers() -> None:
    assert (errors.NO_LICENCE.number, errors.NO_LICENCE.status) == (8, 503)
    assert errors.DUPLICATE_VALUE.number == 2129
    assert errors.VALIDATION_FAILED.number == 2029


def test_numbers_and_types_are_unique() -> None:
    entries = errors.error_codes_by_number()
    assert len({entry.number for entry in entries}) == len({entry.type for entry in entries}) == len(entries)
    with pytest.raises(ValueError, match="registered twice"):
        errors.add_error_code(8, "Another", "x", 500)


def test_every_code_is_raised_somewhere() -> None:
    """People look codes up in the list and program for them: one that nothing raises would be a promise not kept."""
    names = [name for name, value in vars(errors).items() if isinstance(value, errors.ErrorCode)]
    uses = Counter(re.findall(r"\b[A-Z][A-Z_]+\b", "\n".join(path.read_text("utf-8") for path in sources())))
    assert [name for name in names if uses[name] < 2] == []


def test_a_known_failure_shows_its_message_and_parameters() -> None:
    rendered = errors.render(
        errors.BadRequest(errors.UNKNOWN_PROPERTY, "Nam", "Product", " Did you mean Name?", target="Nam"),
        correlation_id="c1",
        debug=False,
    )
    assert rendered.status == 400
    assert rendered.body["error"] == {
        "message": "Product has no property 'Nam'. Did you mean Name?",
        "code": 203,
        "type": "UnknownProperty",
        "info": "correlation id c1",
        "messageFormat": "{1} has no property '{0}'.{2}",
        "parameters": ["Nam", "Product", " Did you mean Name?"],
        "target": "Nam",
    }


def test_a_bug_shows_nothing_of_itself_in_production() -> None:
    try:
        raise KeyError("secret detail")
    except KeyError as exc:
        hidden = errors.render(exc, correlation_id="c2", debug=False)
        shown = errors.render(exc, correlation_id="c2", debug=True)
    assert (hidden.status, hidden.body["error"]["type"]) == (500, "InternalError")
    assert "secret detail" not in str(hidden.body)
    assert "c2" in hidden.body["error"]["message"]
    assert "secret detail" in shown.body["error"]["info"]


def test_braces_in_parameters_are_text() -> None:
    error = errors.Refused(errors.RULE_FAILED, "costs {1} {0}")
    assert error.message == "costs {1} {0}"


def test_retry_after_is_never_zero() -> None:
    error = errors.Unavailable(errors.NO_LICENCE, 0, retry_after_seconds=0)
    assert error.headers() == {"Retry-After": "1", "Cache-Control": "no-store"}


def test_the_allowed_methods_are_named() -> None:
    error = errors.MethodNotAllowed("PUT", ["GET", "HEAD"])
    assert error.headers() == {"Allow": "GET, HEAD"}


def test_an_expired_token_says_so_in_the_challenge() -> None:
    assert errors.Unauthorized(errors.TOKEN_MISSING).headers() == {"WWW-Authenticate": "Bearer"}
    challenge = errors.Unauthorized(errors.TOKEN_EXPIRED).headers()["WWW-Authenticate"]
    assert challenge.startswith('Bearer error="invalid_token"')


@pytest.mark.parametrize("language", ["en", "bg", "de"])
def test_every_message_takes_its_parameters_in_every_language(language: str) -> None:
    with translation.override(language):
        for entry in errors.error_codes_by_number():
            text = errors.format_message(entry.message_format, ("⟨0⟩", "⟨1⟩", "⟨2⟩", "⟨3⟩"))
            for index in range(4):
                assert (f"⟨{index}⟩" in text) == (f"{{{index}}}" in entry.message_format), entry


@pytest.mark.parametrize("language", ["en", "de", "bg"])
def test_a_format_has_as_many_parameters_as_placeholders(language: str) -> None:
    """Clients fill it by themselves: String.Format of .NET refuses a placeholder without one, and stray braces."""
    found = {}
    with translation.override(language):
        for code in errors.error_codes:
            count = len(set(re.findall(r"\{\d\}", code.message_format)))
            for given in range(count + 1):
                error = errors.PlatformError(code, *[f"<{number}>" for number in range(given)])
                body = errors.render(error, correlation_id="c", debug=False).body["error"]
                parameters = body.get("parameters", [])
                filled = body.get("messageFormat", body["message"]).format(*parameters)
                if (len(parameters), filled) != (count, body["message"]):
                    found[f"{code.type} {given}"] = body
    assert found == {}


def test_nobody_gives_a_parameter_that_its_format_does_not_have() -> None:
    """Every place that names a code with its parameters, as the source has it."""
    found = []
    for path in sources():
        for call in ast.walk(ast.parse(path.read_text())):
            match call:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="errors"), attr=kind),
                    args=[ast.Attribute(value=ast.Name(id="errors"), attr=name), *parameters],
                ) if kind != "Detail" and not any(isinstance(each, ast.Starred) for each in parameters):
                    code: errors.ErrorCode = getattr(errors, name)
                    if len(parameters) > placeholders(code.message_format):
                        found.append(f"{path}:{call.lineno} {name}")
    assert found == []
