"""A script's filter as a $filter (spec 04, 4.2): `{Attribute: value | {op: value} | [comparison…]}`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from domain.model import custom_properties
from domain.model.attributes import Attribute
from domain.model.naming import near
from domain.model.repository import Repository
from domain.model.values import parse_input
from foundation import errors, like_patterns
from foundation.kinds import Kind
from foundation.phrases import Phrase
from scripts.json_values import has_more_parts

DEFAULT_FETCH = 1_000
MAX_ROWS = 10_000
#: Of a filter: about as many as the grammar reads. Making the text of more would stall the process for seconds.
MAX_VALUES = 25_000
OPTIONS = ("fetch", "orderBy", "filter")
#: Any character, line ends among them, in patterns of matchesPattern.
_ANY = r"[\s\S]"
_TEXTS = (Kind.STRING, Kind.MULTILANGUAGE)
#: Makes the literal of a script's value.
Literal = Callable[[Any], str]


def filter_text(
    repository: Repository[Any], given: Any, extra: str, entity_id: Callable[[Any], str | None], language: str
) -> str:
    """The $filter; "" for none.

    extra      the option `filter`, an OData $filter of its own
    entity_id  the guid of a value that stands for an entity, None of any other
    Raises BadRequest for what means nothing, Refused(SCRIPT_LIMIT) for more than MAX_VALUES values.
    """
    if has_more_parts(given, MAX_VALUES):
        raise errors.Refused(errors.SCRIPT_LIMIT, Phrase("values in a filter ({0})", MAX_VALUES))
    parts: list[str] = []
    if given is not None:
        if not isinstance(given, dict):
            raise _wrong("filter", Phrase("an object of attributes is expected"))
        for name, value in given.items():
            parts.append(_attribute(repository, name, value, entity_id, language))
    if extra:
        parts.append(f"({extra})")
    return " and ".join(part for part in parts if part)


def order_text(given: Any) -> str:
    """The $orderby of the option `orderBy`: text as in OData, or a list of such texts."""
    if given is None:
        return ""
    texts = given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) for text in texts):
        raise _wrong("orderBy", Phrase("text such as 'DocumentDate desc, DocumentNo' is expected"))
    return ", ".join(texts)


def fetch_limit(given: Any) -> int:
    """How many rows to ask for: one more than allowed tells that there are too many."""
    if given is None:
        return DEFAULT_FETCH
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise _wrong("fetch", Phrase("a number of rows is expected"))
    return min(given, MAX_ROWS + 1)


def read_options(given: Any) -> dict[str, Any]:
    """Options by their exact name. Raises BadRequest for unknown ones."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise _wrong("options", Phrase("an object is expected"))
    known = {name.lower(): name for name in OPTIONS}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name.lower() not in known:
            raise _wrong(f"options.{name}", Phrase("options are {0}", ", ".join(OPTIONS)))
        found[known[name.lower()]] = value
    if not isinstance(found.get("filter", ""), str | None):
        raise _wrong("options.filter", Phrase("the text of an OData $filter is expected"))
    return found


def _attribute(
    repository: Repository[Any], name: str, value: Any, entity_id: Callable[[Any], str | None], language: str
) -> str:
    if name.lower().startswith(custom_properties.PREFIX.lower()):
        known = custom_properties.definition(repository.name, custom_properties.PREFIX + name[15:])
        return _comparisons(known.api_name, None, value, _text_literal)
    attribute = repository.attribute(name)
    if attribute is None:
        hint = near(name, repository.attributes)
        raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name, repository.entity_type, hint, target=name)
    if attribute.is_reference:

        def reference(item: Any) -> str:
            id = entity_id(item)
            return str(parse_input(attribute, item if id is None else id))

        return _comparisons(attribute.name, f"{attribute.name}/Id", value, reference)

    def literal(item: Any) -> str:
        if attribute.kind is Kind.MULTILANGUAGE and isinstance(item, str):
            return _text_literal(item)
        return literal_text(attribute, parse_input(attribute, item, language=language))

    return _comparisons(attribute.name, attribute.name, value, literal)


def _comparisons(name: str, operand: str | None, value: Any, literal: Literal) -> str:
    """name: what is null or not; operand: what is compared (the key, of a reference)."""
    given = value if isinstance(value, list) else [value]
    found: list[str] = []
    include_nulls = False
    for item in given:
        if not isinstance(item, dict) or "$e" in item or "Value" in item:
            item = {"equals": item}
        for operator, operand_value in item.items():
            if operator.lower() == "includenulls":
                include_nulls = bool(operand_value)
                continue
            compare = _OPERATORS.get(operator.lower())
            if compare is None:
                raise _wrong(f"{name}.{operator}", Phrase("operators are {0}", ", ".join(OPERATORS)))
            found.append(compare(name, operand or name, operand_value, literal))
    text = " and ".join(f"({each})" for each in found)
    if include_nulls and text:
        return f"({text} or {name} eq null)"
    return text


def _equals(name: str, operand: str, value: Any, literal: Literal) -> str:
    return f"{name} eq null" if value is None else f"{operand} eq {literal(value)}"


def _in(name: str, operand: str, value: Any, literal: Literal) -> str:
    if not isinstance(value, list):
        raise _wrong(f"{name}.in", Phrase("a list is expected"))
    literals = [literal(item) for item in value if item is not None]
    parts = [f"{operand} in ({','.join(literals)})"] if literals else []
    if len(literals) < len(value):
        parts.append(f"{name} eq null")
    return " or ".join(parts) or "false"


def _ordered(operator: str) -> Callable[[str, str, Any, Literal], str]:
    def compare(name: str, operand: str, value: Any, literal: Literal) -> str:
        if value is None:
            raise _wrong(name, Phrase("null is neither greater nor less"))
        return f"{operand} {operator} {literal(value)}"

    return compare


def _function(function: str) -> Callable[[str, str, Any, Literal], str]:
    def compare(name: str, operand: str, value: Any, literal: Literal) -> str:
        return f"{function}({operand},{_text_literal(value)})"

    return compare


def _like(name: str, operand: str, value: Any, literal: Literal) -> str:
    """A pattern as in conditions of rules (foundation.like_patterns); case does not matter."""
    if not isinstance(value, str):
        raise _wrong(f"{name}.like", Phrase("text is expected"))
    parts = like_patterns.parse(value.lower())
    lowered = f"tolower({operand})"
    texts = ["".join(filter(None, part)) for part in parts]
    exact = all(None not in part for part in parts)
    if len(parts) == 1 and exact:
        return f"{lowered} eq {_text_literal(texts[0])}"
    found: list[str] = []
    if exact:
        # Said so that an index can help where one can.
        first, *inner, last = texts
        found += [f"startswith({lowered},{_text_literal(first)})"] if first else []
        found += [f"contains({lowered},{_text_literal(text)})" for text in inner if text]
        found += [f"endswith({lowered},{_text_literal(last)})"] if last else []
    if not exact or len([text for text in texts if text]) > 1:
        # The parts must come one after the other: said once more, exactly.
        pattern = f"{_ANY}*".join(
            "".join(_ANY if character is None else re.escape(character) for character in part) for part in parts
        )
        found.append(f"matchesPattern({lowered},{_text_literal(f'^{pattern}$')})")
    return " and ".join(found) or f"{name} ne null"


_OPERATORS: Mapping[str, Callable[[str, str, Any, Literal], str]] = {
    "equals": _equals,
    "in": _in,
    "greaterthanorequal": _ordered("ge"),
    "lessthanorequal": _ordered("le"),
    "like": _like,
    "contains": _function("contains"),
    "startswith": _function("startswith"),
    "endswith": _function("endswith"),
}
OPERATORS = (*_OPERATORS, "includeNulls")


def literal_text(attribute: Attribute, value: Any) -> str:
    """A canonical value as a literal of the $filter grammar."""
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case datetime.datetime():
            return value.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")
        case datetime.date():
            return value.isoformat()
        case int():
            return str(value)
        case str():
            return value if attribute.kind is Kind.GUID else _text_literal(value)
    raise _wrong(attribute.name, Phrase("it cannot be compared"))


def _text_literal(value: Any) -> str:
    if isinstance(value, dict) and "Value" in value:
        value = value["Value"]
    if isinstance(value, bool | dict | list) or value is None:
        raise errors.BadRequest(errors.INVALID_LITERAL, value, "text", "a filter")
    return "'" + str(value).replace("'", "''") + "'"


def _wrong(what: str, why: str) -> errors.BadRequest:
    return errors.BadRequest(errors.BAD_QUERY_OPTION, what, why, target=what)
