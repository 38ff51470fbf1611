"""Operations of every entity about the values that its properties may take (spec 02, 2.4; spec 14.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import orjson
from django.conf import settings

from domain import query
from domain.dataset.checks import access
from domain.dataset.dataset import Dataset
from domain.dataset.lookups.allowed_values import allowed_values
from domain.model import custom_properties
from domain.model.attributes import Attribute
from domain.model.naming import in_words, near
from domain.model.registry import repositories
from domain.odata.operations.catalogue import (
    EVERY_ENTITY,
    Operation,
    OperationCall,
    Parameter,
    Result,
    operations,
)
from domain.syntax import parse_query_options
from foundation import errors, like_patterns

Pair = dict[str, str]


@operations.register
class GetPropertyAllowedValues(Operation):
    """The values that a property may take: members of an enum, entities of a reference, values of a custom property."""

    name = "GetPropertyAllowedValues"
    bound_to = EVERY_ENTITY
    is_function = True
    returns = "Collection(Erp.ValueTextPair)"
    parameters = (
        Parameter("propertyName"),
        Parameter("search", optional=True),
        Parameter("top", "Edm.Int32", optional=True, default=10),
        Parameter("skip", "Edm.Int32", optional=True, default=0),
    )

    def run(self, call: OperationCall) -> Result:
        """[{Value, Text}]: Value is what a client writes to the property; empty for a property of free values."""
        repository, name = call.bound.repository, str(call.arguments["propertyName"])
        search = str(call.arguments["search"] or "")
        skip, top = (_number_of_rows(call, name, default) for name, default in (("skip", 0), ("top", 10)))
        attribute = repository.attribute(name)
        if attribute is not None and attribute.is_reference:
            return Result(_entities(call.dataset, attribute, search, skip, top))
        if attribute is not None:
            pairs = [] if attribute.enum is None else [_pair(each, in_words(each)) for each in attribute.enum.members]
        elif (known := custom_properties.named(repository.name, name)) is not None:
            pairs = list(_of_custom(call, known, search))
        else:
            hint = near(name, [*repository.attributes, *custom_properties.definitions(repository.name)])
            raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name, repository.entity_type, hint, target="propertyName")
        found = [pair for pair in pairs if _matches(search, pair["Text"], pair["Value"])]
        return Result(found[skip : skip + top])


def _pair(value: str, text: str) -> Pair:
    return {"Value": value, "Text": text}


def _of_custom(call: OperationCall, known: custom_properties.Definition, search: str) -> Iterator[Pair]:
    language = call.context.language.upper()
    for value in sorted(allowed_values(call.bound, known, search), key=lambda value: value.value):
        texts = value.description
        yield _pair(value.value, texts.get(language) or next(iter(texts.values()), "") or value.value)


def _entities(dataset: Dataset, attribute: Attribute, search: str, skip: int, top: int) -> list[Pair]:
    """Entities that the caller may refer to, ordered by code; Value is their @odata.id."""
    target, context = repositories[attribute.target], dataset.context
    top = min(top, settings.PAGE_SIZE_MAX)
    if top == 0 or not access.allowed(context, target, "read"):
        return []
    pieces = [piece.lower().replace("'", "''") for piece in search.split("%") if piece]
    conditions = [f"contains(tolower(DisplayText),'{piece}')" for piece in pieces]
    options = {
        "$select": "DisplayText",
        "$filter": " and ".join(conditions),
        "$orderby": target.code.name if target.code is not None else "DisplayText",
        "$skip": str(skip),
        "$top": str(top),
    }
    text = "&".join(f"{name}={quote(value)}" for name, value in options.items() if value)
    with dataset.flushed():
        page = query.read_collection(
            target, parse_query_options(text), context, query.Representation(language=context.language)
        )
    rows: list[dict[str, Any]] = orjson.loads(page.body)["value"]
    return [_pair(row["@odata.id"], row["DisplayText"] or "") for row in rows]


@operations.register
class GetAllowedCustomPropertyValues(Operation):
    """The values that a custom property may take."""

    name = "GetAllowedCustomPropertyValues"
    bound_to = EVERY_ENTITY
    is_function = True
    returns = "Collection(Erp.CustomPropertyValue)"
    parameters = (
        Parameter("customPropertyCode"),
        Parameter("search", optional=True),
        Parameter("exactMatch", "Edm.Boolean", optional=True, default=False),
        Parameter("orderByDescription", "Edm.Boolean", optional=True, default=False),
        Parameter("top", "Edm.Int32", optional=True, default=10),
        Parameter("skip", "Edm.Int32", optional=True, default=0),
    )

    def run(self, call: OperationCall) -> Result:
        """[{Value, Description, ValueId}]."""
        record = call.bound
        code = str(call.arguments["customPropertyCode"])
        known = custom_properties.definition(
            record.repository.name, custom_properties.PREFIX + custom_properties.escape_code(code)
        )
        search = str(call.arguments["search"] or "").lower()
        result = [
            value
            for value in allowed_values(record, known, search)
            if _matches(search, value.value, *value.description.values(), exact=bool(call.arguments["exactMatch"]))
        ]
        by_description = bool(call.arguments["orderByDescription"])
        result.sort(
            key=lambda value: (next(iter(value.description.values()), "") if by_description else "", value.value)
        )
        skip, top = (_number_of_rows(call, name, default) for name, default in (("skip", 0), ("top", 10)))
        page = result[skip : skip + top]
        return Result([{"Value": v.value, "Description": dict(v.description), "ValueId": v.id} for v in page])


def _number_of_rows(call: OperationCall, name: str, default: int) -> int:
    given = call.arguments[name]
    number = default if given is None else int(given)
    if number < 0:
        raise errors.BadRequest(errors.INVALID_LITERAL, number, "Edm.Int32 >= 0", name, target=name)
    return number


def _matches(search: str, *texts: str, exact: bool = False) -> bool:
    """Whether a text matches the search, where `%` is any text; ignores case. Unless exact, a part may match."""
    parts = search.lower().split("%")
    if not exact:
        parts = ["", *parts, ""]
    return not search or any(like_patterns.are_in_order(parts, text.lower()) for text in texts)
