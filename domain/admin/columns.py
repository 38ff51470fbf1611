"""Columns of entity lists: values of owned collections, and which attributes a list can show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import models
from django.http import HttpRequest

from domain.admin.context import permitted
from domain.admin.measures import ValueColumn, readable
from domain.admin.visible_rows import rows_of
from domain.model.admin_options import CollectionColumn
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.kinds import Kind

#: Lists show no texts with this maximum length or more.
_TOO_LONG = 4000


class FirstOfCollection:
    """A list's column made from a CollectionColumn. Its values are loaded for a page at once (`load`).

    attribute_name   the column's name
    """

    def __init__(self, repository: Repository[Any], column: CollectionColumn) -> None:
        self.column = column
        self.attribute_name = self.__name__ = column.name
        self.short_description = column.title
        self._owner = repository.by_python_name[column.owner] if column.owner else repository.id
        owners = repositories[self._owner.target] if column.owner else repository
        child = owners.collections[column.collection]
        self.repository = repositories[child.repository]
        self._back = self.repository.attributes[child.back_reference].python_name
        self._loaded = f"_first_{column.name}"

    def __call__(self, entity: Any) -> str | None:
        """The loaded value; None for none."""
        return getattr(entity, self._loaded, None)

    def load(self, request: HttpRequest, entities: Sequence[Any]) -> None:
        """Load the values of entities whose hidden references are null: one query, of rows that the user may read."""
        field, back = self._owner.field, f"{self._back}_id"
        assert field is not None
        keys = {key for each in entities if (key := getattr(each, field.attname)) is not None}
        model: type[models.Model] = self.repository.model
        found = model._default_manager.filter(**{f"{back}__in": keys}, **self.column.where)
        first: dict[str, str] = {}
        for key, value in rows_of(request, found).order_by(*self.column.order).values_list(back, self.column.value):
            first.setdefault(str(key), value)
        for each in entities:
            setattr(each, self._loaded, first.get(str(getattr(each, field.attname))))


Column = str | ValueColumn | FirstOfCollection


def shown_column(repository: Repository[Any], column: str | CollectionColumn) -> Column:
    """A declared column as Django's list_display has it."""
    if isinstance(column, CollectionColumn):
        return FirstOfCollection(repository, column)
    return readable(repository, column)


def listable(repository: Repository[Any]) -> list[str]:
    """Python names of the attributes that a list can show, without secrets and long texts."""
    hidden = repository.admin_options.hidden
    return [
        attribute.python_name
        for attribute in repository.attributes.values()
        if attribute.field is not None
        and not (attribute.key_alias or attribute.secret or attribute.python_name in hidden)
        and attribute.kind is not Kind.BINARY
        and (attribute.kind is not Kind.STRING or (attribute.max_length or _TOO_LONG) < _TOO_LONG)
    ]


def may_list(request: HttpRequest, repository: Repository[Any], column: object) -> bool:
    """Whether the user may read what the column shows: the target of a reference, the rows of a collection."""
    if isinstance(column, FirstOfCollection):
        return permitted(request, "read", column.repository)
    attribute = repository.by_python_name.get(column) if isinstance(column, str) else None
    return attribute is None or not attribute.is_reference or permitted(request, "read", repositories[attribute.target])


def load_collections(request: HttpRequest, entities: Sequence[Any], columns: Iterable[object]) -> None:
    """Load the values of the columns that show owned collections, one query each."""
    for column in columns:
        if isinstance(column, FirstOfCollection):
            column.load(request, entities)
