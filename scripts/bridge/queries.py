"""Translates a script's filter to a $filter (spec 04, 4.2): `{Attribute: value | {op: value} | [comparison…]}`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from domain.model import custom_properties
from domain.model.attributes import Attribute
from domain.model.custom_properties import Definition
from domain.model.custom_values import canonical_text
from domain.model.naming import near
from domain.model.repository import Repository
from domain.model.values import parse_input
from foundation import errors, like_patterns
from foundation.guids import is_guid
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text
from scripts.json_values import has_more_parts

DEFAULT_FETCH = 1_000
MAX_ROWS = 10_000
#: Maximum number of values, about the limit of the grammar; building a longer text would block the process for seconds.
MAX_VALUES = 25_000
OPTIONS = ("fetch", "orderBy", "filter")
#: Any character, line breaks included, in patterns of matchesPattern.
_ANY = r"[\s\S]"
#: Kinds of custom properties whose canonical text is a literal of $filter.
_UNQUOTED = frozenset({Kind.DECIMAL, Kind.DATE, Kind.DATETIME, Kind.BOOL})
#: Formats a script's value as a literal.
Literal = Callable[[Any], str]


def filter_text(
    repository: Repository[Any], given: Any, extra: str, entity_id: Callable[[Any], str | None], language: str
) -> str:
    """The $filter; "" for none.

    extra      the option `filter`, an OData $filter
    entity_id  the guid of a value that is an entity, None for any other
    Raises BadRequest for invalid filters, Refused(SCRIPT_LIMIT) for more than MAX_VALUES values.
    """
    if has_more_parts(given, MAX_VALUES):
        raise errors.Refused(errors.SCRIPT_LIMIT, Message("values in a filter ({0})", MAX_VALUES))
    parts: list[str] = []
    if given is not None:
        if not isinstance(given, dict):
            raise _wrong("filter", Message("an object of attributes is expected"))
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
        raise _wrong("orderBy", Message("text such as 'DocumentDate desc, DocumentNo' is expected"))
    return ", ".join(texts)


def fetch_limit(given: Any) -> int:
    """Number of rows to fetch: one more than allowed, to detect that there are too many."""
    if given is None:
        return DEFAULT_FETCH
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise _wrong("fetch", Message("a number of rows is expected"))
    return min(given, MAX_ROWS + 1)


def read_options(given: Any) -> dict[str, Any]:
    """Options by their exact name. Raises BadRequest for unknown ones."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise _wrong("options", Message("an object is expected"))
    known = {name.lower(): name for name in OPTIONS}
    result: dict[str, Any] = {}
    for name, value in given.items():
        if name.lower() not in known:
            raise _wrong(f"options.{name}", Message("options are {0}", ", ".join(OPTIONS)))
        result[known[name.lower()]] = value
    if not isinstance(result.get("filter", ""), str | None):
        raise _wrong("options.filter", Message("the text of an OData $filter is expected"))
    return result


def _attribute(
    repository: Repository[Any], name: str, value: Any, entity_id: Callable[[Any], str | None], language: str
) -> str:
    if custom_properties.is_name(name):
        known = custom_properties.definition(repository.name, name)
        return _comparisons(known.api_name, None, value, lambda item: _custom_literal(known, item, entity_id))
    attribute = repository.attribute(name) or repository.attribute_behind(name)
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
    """name: compared with null; operand: compared with values (the key of a reference)."""
    given = value if isinstance(value, list) else [value]
    result: list[str] = []
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
                raise _wrong(f"{name}.{operator}", Message("operators are {0}", ", ".join(OPERATORS)))
            result.append(compare(name, operand or name, operand_value, literal))
    text = " and ".join(f"({each})" for each in result)
    if include_nulls and text:
        return f"({text} or {name} eq null)"
    return text


def _equals(name: str, operand: str, value: Any, literal: Literal) -> str:
    return f"{name} eq null" if value is None else f"{operand} eq {literal(value)}"


def _in(name: str, operand: str, value: Any, literal: Literal) -> str:
    if not isinstance(value, list):
        raise _wrong(f"{name}.in", Message("a list is expected"))
    literals = [literal(item) for item in value if item is not None]
    parts = [f"{operand} in ({','.join(literals)})"] if literals else []
    if len(literals) < len(value):
        parts.append(f"{name} eq null")
    return " or ".join(parts) or "false"


def _ordered(operator: str) -> Callable[[str, str, Any, Literal], str]:
    def compare(name: str, operand: str, value: Any, literal: Literal) -> str:
        if value is None:
            raise _wrong(name, Message("null is neither greater nor less"))
        return f"{operand} {operator} {literal(value)}"

    return compare


def _function(function: str) -> Callable[[str, str, Any, Literal], str]:
    def compare(name: str, operand: str, value: Any, literal: Literal) -> str:
        return f"{function}({operand},{_text_literal(value)})"

    return compare


def _like(name: str, operand: str, value: Any, literal: Literal) -> str:
    """A pattern as in conditions of rules (foundation.like_patterns); case does not matter."""
    if not isinstance(value, str):
        raise _wrong(f"{name}.like", Message("text is expected"))
    parts = like_patterns.parse(value.lower())
    lowered = f"tolower({operand})"
    texts = ["".join(filter(None, part)) for part in parts]
    exact = all(None not in part for part in parts)
    if len(parts) == 1 and exact:
        return f"{lowered} eq {_text_literal(texts[0])}"
    result: list[str] = []
    if exact:
        # These conditions let the database use an index.
        first, *inner, last = texts
        result += [f"startswith({lowered},{_text_literal(first)})"] if first else []
        result += [f"contains({lowered},{_text_literal(text)})" for text in inner if text]
        result += [f"endswith({lowered},{_text_literal(last)})"] if last else []
    if not exact or len([text for text in texts if text]) > 1:
        # The pattern also checks the order of the parts.
        pattern = f"{_ANY}*".join(
            "".join(_ANY if character is None else re.escape(character) for character in part) for part in parts
        )
        result.append(f"matchesPattern({lowered},{_text_literal(f'^{pattern}$')})")
    return " and ".join(result) or f"{name} ne null"


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
    """A canonical value as a $filter literal."""
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case datetime.datetime():
            return utc_text(value)
        case datetime.date():
            return value.isoformat()
        case int():
            return str(value)
        case str():
            return value if attribute.kind is Kind.GUID else _text_literal(value)
    raise _wrong(attribute.name, Message("it cannot be compared"))


def _custom_literal(known: Definition, value: Any, entity_id: Callable[[Any], str | None]) -> str:
    """A value of a custom property, also as CustomPropertyValue; of a Reference its code, or an entity or its guid."""
    id = entity_id(value)
    if isinstance(value, dict) and id is None and "Value" in value:
        id, value = value.get("ValueId"), value["Value"]
    if known.property_type == "Reference" and (id is not None or is_guid(str(value))):
        return str(id or value)
    text = canonical_text(known, value)
    return text if known.kind in _UNQUOTED else _text_literal(text)


def _text_literal(value: Any) -> str:
    if isinstance(value, dict) and "Value" in value:
        value = value["Value"]
    if isinstance(value, bool | dict | list) or value is None:
        raise errors.BadRequest(errors.INVALID_LITERAL, value, "text", "a filter")
    return "'" + str(value).replace("'", "''") + "'"


def _wrong(what: str, why: str) -> errors.BadRequest:
    return errors.BadRequest(errors.BAD_QUERY_OPTION, what, why, target=what)
