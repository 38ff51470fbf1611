"""Fields of a form, and their sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.kinds import Kind

Fieldsets = list[tuple[Any, dict[str, Any]]]
#: A form, or an owned row, with at most this many attributes has no collapsed section.
_SHORT_FORM, _SHORT_ROW = 14, 8
_FOLDED = {"classes": ("collapse",)}


def editable(repository: Repository[Any]) -> list[str]:
    """Python names of the inputs of a form, in declared order."""
    hidden = repository.admin_options.hidden
    return [
        attribute.python_name
        for attribute in _shown(repository)
        if not attribute.read_only
        and attribute.name != "Id"
        and attribute.python_name not in hidden
        and attribute.field is not None
        and attribute.field.editable
    ]


def shown_read_only(repository: Repository[Any]) -> list[str]:
    """Python names of a form's read-only fields."""
    return [
        attribute.python_name
        for attribute in _shown(repository)
        if (attribute.read_only or attribute.name == "Id") and not attribute.is_reference
    ]


def _shown(repository: Repository[Any]) -> list[Attribute]:
    return [
        attribute
        for attribute in repository.attributes.values()
        if attribute.field is not None and not attribute.key_alias and attribute.kind is not Kind.BINARY
    ]


def subjects(repository: Repository[Any]) -> list[str]:
    """Python names of the main references of an entity (AdminOptions)."""
    result: list[str] = []
    for attribute in repository.references.values():
        target = repositories[attribute.target]
        if target.admin.is_subject and attribute.python_name == target.model._meta.model_name:
            result.append(attribute.python_name)
    return result


def never_folded(repository: Repository[Any]) -> frozenset[str]:
    """Python names of the attributes that a form shows first, even if they are nullable."""
    return repository.admin_options.shown_first.union(subjects(repository))


def form_fieldsets(
    repository: Repository[Any], names: Sequence[str], read_only: Sequence[str], custom: Sequence[str]
) -> Fieldsets:
    """The sections of an entity's form: essential fields, then rarely used and read-only ones.

    names: all fields; read_only: those that the platform fills in; custom: custom properties.
    """
    own, unfolded = repository.by_python_name, never_folded(repository)
    kept = [name for name in names if name in read_only and name not in unfolded]
    external = [name for name in names if name in own and own[name].system and name not in read_only]
    rest = [name for name in names if name not in kept and name not in external]
    first = rest
    if len(rest) > _SHORT_FORM:
        first = [name for name in rest if name in unfolded or name not in own or not own[name].nullable]
    more = [name for name in rest if name not in first]
    first = sorted(first, key=lambda name: _place(repository, name))
    if len(rest) < len(kept):
        # The page of read-only data, such as messages, shows the read-only fields first.
        first, kept = [*kept, *first], []
    sections = (
        (None, [*first, *custom]),
        (_("More"), more),
        (_("From another system"), external),
        (_("Kept by the platform"), kept),
    )
    return [(title, {"fields": some, **(_FOLDED if title else {})}) for title, some in sections if some]


def row_fieldsets(repository: Repository[Any], names: Sequence[str]) -> Fieldsets:
    """The sections of an owned row: essential fields in its line, rarely used ones collapsed below it."""
    own, unfolded = repository.by_python_name, never_folded(repository)
    if any(name not in own for name in names):
        return [(None, {"fields": list(names)})]
    if repository.admin_options.row_columns or len(names) <= _SHORT_ROW:
        return [(None, {"fields": [tuple(names)]})]
    first = [name for name in names if name in unfolded or not own[name].nullable]
    first.sort(key=lambda name: (own[name].kind is Kind.BOOL, name not in unfolded))
    more = [name for name in names if name not in first]
    return [(None, {"fields": [tuple(first)]}), (_("More"), {"fields": more, **_FOLDED})]


def _place(repository: Repository[Any], name: str) -> int:
    """The rank of a field: code and name, then subjects, then fields without a default, then others, switches last."""
    attribute = repository.by_python_name.get(name)
    if attribute is None:
        return 3
    if attribute.kind is Kind.BOOL:
        return 4
    if attribute in (repository.code, repository.label):
        return 0
    if name in subjects(repository):
        return 1
    return 2 if attribute.required and attribute.initial() is None and not attribute.read_only else 3
