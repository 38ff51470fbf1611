"""Calculated attributes as columns of lists and as read-only fields of pages (spec 10.1).

One query of the read engine returns the values of all rows of a page, with the rights of the page's user.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html

from domain.admin.context import admin_context, once
from domain.admin.measures import plain
from domain.model.calculated_attributes import Definition, definitions
from domain.model.repository import Repository
from domain.model.values import in_language
from domain.query import Representation, read_collection
from domain.query.base.bound import Sort, ValueType
from domain.query.bind.calculated_types import value_types
from domain.query.plan.calculated import WARNING
from domain.syntax import parse_boolean_expression, parse_select
from domain.syntax.ast import QueryOptions
from foundation.errors import BadRequest
from foundation.languages import active_language


class CalculatedColumn:
    """A column, or a read-only field, of a calculated attribute. Its values are loaded first (`load_calculated`).

    attribute_name   the attribute's API name
    """

    def __init__(self, repository: Repository[Any], known: Definition, value_type: ValueType) -> None:
        self.repository, self.value_type = repository, value_type
        self.attribute_name = self.__name__ = known.api_name
        self.short_description = in_language(dict(known.caption), active_language()) or known.name
        # Django shows boolean values as icons.
        self.boolean = value_type.sort is Sort.BOOL

    def __eq__(self, other: object) -> bool:
        """Equal by name, since Django searches for fields in lists of read-only fields."""
        return isinstance(other, CalculatedColumn) and other.attribute_name == self.attribute_name

    def __hash__(self) -> int:
        return hash(self.attribute_name)

    def __call__(self, entity: Any) -> Any:
        """The loaded value in its type; None for none."""
        return getattr(entity, self.attribute_name, None)

    def put(self, entity: Any, members: Mapping[str, Any]) -> None:
        """Store the entity's value from its row of the read engine."""
        failed, value = members.get(self.attribute_name + WARNING), members.get(self.attribute_name)
        if failed is not None:
            text = failed["message"]
            shown: Any = format_html('<span title="{}">⚠<span class="unseen"> {}</span></span>', text, text)
        else:
            shown = None if value is None else _typed(self.value_type, value)
        setattr(entity, self.attribute_name, shown)


def _typed(value_type: ValueType, value: Any) -> Any:
    if value_type.sort is Sort.NUMBER:
        return int(value) if value_type.integer else plain(Decimal(value))
    return _FROM_JSON.get(value_type.sort, lambda same: same)(value)


_FROM_JSON: Mapping[Sort, Callable[[Any], Any]] = {
    Sort.DATE: datetime.date.fromisoformat,
    Sort.DATETIME: lambda text: timezone.localtime(datetime.datetime.fromisoformat(text)),
}


def calculated_columns(request: HttpRequest, repository: Repository[Any]) -> list[CalculatedColumn]:
    """Columns of the repository's active calculated attributes that can be evaluated."""

    def make() -> list[CalculatedColumn]:
        known = definitions(repository)
        return [CalculatedColumn(repository, known[name], found) for name, found in value_types(repository).items()]

    return once(request, ("calculated", repository.name, active_language()), make)


def load_calculated(request: HttpRequest, entities: Sequence[Any], columns: Iterable[object]) -> None:
    """Load the values of the columns that show calculated attributes, with one read for all of them.

    An attribute that the read engine refuses, such as one that reads a removed attribute, gets no values; others do.
    """
    chosen = [column for column in columns if isinstance(column, CalculatedColumn)]
    if not chosen or not entities:
        return
    try:
        _load(request, entities, chosen)
    except BadRequest:
        for column in chosen if len(chosen) > 1 else ():
            load_calculated(request, entities, [column])


def _load(request: HttpRequest, entities: Sequence[Any], columns: Sequence[CalculatedColumn]) -> None:
    keys = [str(entity.pk) for entity in entities]
    options = QueryOptions(
        filter=parse_boolean_expression(f"Id in ({','.join(keys)})"),
        select=parse_select(",".join(["Id", *(column.attribute_name for column in columns)])),
    )
    page = read_collection(
        columns[0].repository,
        options,
        admin_context(request),
        Representation("none", ieee754=True, language=active_language()),
        max_page_size=len(keys),
        may_end_early=False,
    )
    found = {row["Id"]: row for row in orjson.loads(page.body)["value"]}
    for entity, key in zip(entities, keys, strict=True):
        for column in columns:
            column.put(entity, found.get(key, {}))
