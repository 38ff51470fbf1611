"""Parses JSON bodies: exact numbers, ordered members; duplicate names and deep nesting are refused (spec 02, 2.3)."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from functools import partial
from typing import Any

from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import of_json

#: Maximum nesting; deeper bodies are refused before they exhaust the stack.
MAX_DEPTH = 100
#: Maximum of brackets, braces and commas, which bounds what a body of short values takes in memory: `[],` has three
#: bytes, and eighty as an object. Those within texts count, too.
MAX_MARKS = 500_000

invalid_body = partial(errors.BadRequest, errors.INVALID_BODY)
invalid_json = partial(errors.BadRequest, errors.INVALID_JSON)


def parse_json(body: bytes) -> Any:
    """The JSON value; numbers with decimals are Decimal.

    Raises BadRequest(INVALID_JSON) with line and column, PayloadTooLarge for too many values.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise invalid_json(Message("the body is not UTF-8 (byte {0})", exc.start)) from exc
    check_marks(text)
    try:
        value = DECODER.decode(text)
    except json.JSONDecodeError as exc:
        raise invalid_json(Message("{0} (line {1}, column {2})", of_json(exc), exc.lineno, exc.colno)) from exc
    except RecursionError as exc:
        raise invalid_json(Message("nested deeper than {0} levels", MAX_DEPTH)) from exc
    except ValueError as exc:
        # Python refuses to convert integers of thousands of digits.
        longest = sys.get_int_max_str_digits()
        raise invalid_json(Message("a number has at most {0} digits", longest), info=str(exc)) from exc
    # A body with fewer brackets cannot exceed the maximum.
    if text.count("{") + text.count("[") > MAX_DEPTH:
        check_depth(value, 0)
    if "\\u" in text:
        check_text(value)
    return value


def check_marks(text: str, most: int = MAX_MARKS) -> None:
    """Raise PayloadTooLarge for JSON with more brackets, braces and commas, before objects are made of it."""
    if len(text) > most and text.count(",") + text.count("[") + text.count("{") > most:
        raise errors.PayloadTooLarge(errors.TOO_MANY_VALUES, most)


def check_text(value: Any) -> None:
    """Refuse lone surrogates, which JSON can escape and no encoding can represent (RFC 8259, 8.2)."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as exc:
        raise invalid_json(Message("\\u{0} is no character by itself", f"{ord(exc.object[exc.start]):04x}")) from exc


def parse_object(body: bytes, *, optional: bool = False) -> dict[str, Any]:
    """The JSON object. An empty body is {} where `optional`."""
    if optional and not body.strip():
        return {}
    if not body.strip():
        raise invalid_json(Message("the body is empty"))
    value = parse_json(body)
    if not isinstance(value, dict):
        raise invalid_body(Message("the body must be a JSON object"))
    return value


def occurs_twice(name: str) -> errors.BadRequest:
    """The error for a duplicate name."""
    message = Message('the name "{0}" occurs twice in one object', name)
    return invalid_json(message, target=name)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's members; a duplicate name is refused."""
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise occurs_twice(name)
            seen.add(name)
    return members


def _refuse_constant(name: str) -> Any:
    """Refuse NaN and the infinities, which Python's parser would accept."""
    raise invalid_json(Message("{0} is not a JSON value", name))


def check_depth(value: Any, depth: int) -> None:
    """Raise BadRequest for nesting beyond MAX_DEPTH."""
    if depth > MAX_DEPTH:
        raise invalid_json(Message("nested deeper than {0} levels", MAX_DEPTH))
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        if isinstance(each, dict | list):
            check_depth(each, depth + 1)


#: Exact numbers, no constants, no duplicate names. Shared, since json.loads would build one for each body.
DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=_unique_names)
