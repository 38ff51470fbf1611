"""Columns, filters and search of a repository's list page."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import models

from domain.admin.fieldsets import never_folded, subjects
from domain.model.admin_options import CollectionColumn
from domain.model.attributes import Attribute
from domain.model.repository import Repository
from foundation.kinds import Kind

#: Lookups that match a regular expression.
PATTERNS = frozenset({"regex", "iregex"})
#: Maximum columns of a list besides the display text, and maximum filters.
_COLUMNS, _FILTERS = 5, 4
_COLUMN_KINDS = (Kind.ENUM, Kind.STATE, Kind.DATE, Kind.DATETIME, Kind.BOOL, Kind.STRING)
_FILTER_KINDS = (Kind.ENUM, Kind.STATE, Kind.BOOL)


def list_columns(repository: Repository[Any]) -> list[str | CollectionColumn]:
    """`__str__`, the declared columns, the subjects, then attributes that always have a value; booleans last.

    If code and name are declared columns, they replace `__str__`.
    """
    own = repository.by_python_name
    named = repository.name_member.partition(".")[0]
    declared: list[str | CollectionColumn] = [*repository.admin_options.columns, *subjects(repository)]
    if {named, repository.code_member}.issubset(repository.admin_options.columns):
        first: list[str | CollectionColumn] = []
    else:
        first, declared = ["__str__"], [name for name in declared if name != named]
    others = [attribute for attribute in _always_set(repository, _COLUMN_KINDS) if _is_column(repository, attribute)]
    others.sort(key=lambda attribute: attribute.kind is Kind.BOOL)
    known = (each for each in declared if isinstance(each, CollectionColumn) or each in own)
    return list(dict.fromkeys([*first, *known, *(each.python_name for each in others)]))[: _COLUMNS + 1]


def list_filters(repository: Repository[Any]) -> list[str]:
    """Enums and booleans that always have a value; declared columns first, then attributes that a form shows first."""
    columns, unfolded = repository.admin_options.columns, never_folded(repository)
    result = _always_set(repository, _FILTER_KINDS)
    result.sort(
        key=lambda each: (each.python_name not in columns, each.python_name not in unfolded, each.kind is Kind.BOOL)
    )
    return [attribute.python_name for attribute in result][:_FILTERS]


def search_fields(repository: Repository[Any]) -> list[str]:
    """The search members as Django lookups, by default the code."""
    members = repository.search_members or ((repository.code_member,) if repository.code_member else ())
    paths = [member.replace(".", "__") for member in members]
    return [path for path in paths if _is_lookup(repository.model, path)] or ["id"]


def _always_set(repository: Repository[Any], kinds: tuple[Kind, ...]) -> list[Attribute]:
    unlisted = repository.admin_options.unlisted
    return [
        attribute
        for attribute in repository.default_members
        if attribute.kind in kinds and not attribute.nullable and attribute.python_name not in unlisted
    ]


def _is_column(repository: Repository[Any], attribute: Attribute) -> bool:
    """Excludes code and name, which are in the display text, and booleans that a form does not show first."""
    if attribute in (repository.code, repository.label):
        return False
    if attribute.kind is Kind.BOOL:
        return attribute.python_name in never_folded(repository)
    return attribute.kind is not Kind.STRING or attribute.max_length is not None


def _is_lookup(model: type[models.Model], path: str) -> bool:
    current: Any = model
    try:
        for name in path.split("__"):
            current = current._meta.get_field(name).related_model
    except FieldDoesNotExist:
        return False
    return True
