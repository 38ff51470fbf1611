"""JSON bodies: exact numbers, order kept, duplicates and depth refused (spec 02, 2.3; issue of faults in spec 03)."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import Any

from foundation import errors
from foundation.phrases import Phrase, of_json

#: Objects and arrays inside one another; deeper bodies are refused before they cost a stack.
MAX_DEPTH = 100


def parse_json(body: bytes) -> Any:
    """The JSON value; numbers with a point are Decimal. Raises BadRequest(INVALID_JSON) with line and column."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise errors.BadRequest(errors.INVALID_JSON, Phrase("the body is not UTF-8 (byte {0})", exc.start)) from exc
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as exc:
        raise errors.BadRequest(
            errors.INVALID_JSON, Phrase("{0} (line {1}, column {2})", of_json(exc), exc.lineno, exc.colno)
        ) from exc
    except RecursionError as exc:
        raise errors.BadRequest(errors.INVALID_JSON, Phrase("nested deeper than {0} levels", MAX_DEPTH)) from exc
    except ValueError as exc:
        # Integers of thousands of digits; Python refuses to convert them.
        longest = sys.get_int_max_str_digits()
        raise errors.BadRequest(
            errors.INVALID_JSON, Phrase("a number has at most {0} digits", longest), info=str(exc)
        ) from exc
    check_depth(value, 0)
    if "\\u" in text:
        check_text(value)
    return value


def check_text(value: Any) -> None:
    """Refuse half of a surrogate pair, which JSON can escape and no encoding can hold (RFC 8259, 8.2)."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as exc:
        raise errors.BadRequest(
            errors.INVALID_JSON, Phrase("\\u{0} is no character by itself", f"{ord(exc.object[exc.start]):04x}")
        ) from exc


def parse_object(body: bytes, *, optional: bool = False) -> dict[str, Any]:
    """The JSON object. An empty body is {} where `optional`."""
    if optional and not body.strip():
        return {}
    if not body.strip():
        raise errors.BadRequest(errors.INVALID_JSON, Phrase("the body is empty"))
    value = parse_json(body)
    if not isinstance(value, dict):
        raise errors.BadRequest(errors.INVALID_BODY, Phrase("the body must be a JSON object"))
    return value


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's members; a name that occurs twice is refused."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise errors.BadRequest(
                    errors.INVALID_JSON, Phrase('the name "{0}" occurs twice in one object', name), target=name
                )
            seen.add(name)
    return found


def refuse_constant(name: str) -> Any:
    """NaN and the infinities, which Python's parser would take."""
    raise errors.BadRequest(errors.INVALID_JSON, Phrase("{0} is not a JSON value", name))


def check_depth(value: Any, depth: int) -> None:
    """Raise BadRequest for what is nested deeper than MAX_DEPTH."""
    if depth > MAX_DEPTH:
        raise errors.BadRequest(errors.INVALID_JSON, Phrase("nested deeper than {0} levels", MAX_DEPTH))
    if isinstance(value, dict):
        for inner in value.values():
            if isinstance(inner, dict | list):
                check_depth(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, dict | list):
                check_depth(inner, depth + 1)


# Made once: json.loads would make one for each body.
_decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=refuse_constant, object_pairs_hook=unique_names)
