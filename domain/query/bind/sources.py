"""Binds columns of rows in scope, and the targets of their references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from domain.model.attributes import Attribute
from domain.model.custom_properties import Definition
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.bound import CUSTOM, Bound, Column, CustomText, Source, ValueType, type_of
from domain.query.bind.expression_binder import ExpressionBinder
from foundation import errors


def unknown(name: str, known: Any, where: str) -> NoReturn:
    """Raise UNKNOWN_PROPERTY with similar names."""
    raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name, where, near(name, known), target=name)


def column(source: Source, attribute: Attribute) -> Column:
    """A stored attribute of a row in scope."""
    if attribute.key_alias:
        attribute = source.repository.id
    nullable = attribute.nullable or source.nullable
    if attribute.is_reference:
        # Also null if the target is hidden from the caller.
        nullable = nullable or source.guarded
    return Column(type_of(attribute), nullable, source, attribute)


def reference_column(binder: ExpressionBinder, source: Source, attribute: Attribute) -> Bound:
    """A reference as a value: null if its target is hidden from the caller."""
    target = repositories[attribute.target]
    if binder.access.restricts(target):
        key = column(follow(binder, source, attribute), target.id)
        return replace(key, type=type_of(attribute))
    return column(source, attribute)


def custom_value(
    binder: ExpressionBinder, source: Source, known: Definition, type: ValueType = CUSTOM, member: str = "Value"
) -> CustomText:
    """A custom property of a row in scope: null if its value is an entity that is hidden from the caller."""
    target = known.allowed_from if binder.access.restricts_values(known) else ""
    return CustomText(type, True, source, known.code, member, known.kind, target)


def follow(binder: ExpressionBinder, source: Source, attribute: Attribute) -> Source:
    """The target row of a reference."""
    target = repositories[attribute.target]
    guarded = binder.access.restricts(target)
    return Source(target, source.number, source, attribute, source.nullable or attribute.nullable or guarded, guarded)


def cast_source(source: Source, repository: Repository[Any]) -> Source:
    """The same row seen as a derived or base type; null if it is not of that type."""
    if source.repository is repository:
        return source
    if issubclass(source.repository.model, repository.model):
        return Source(repository, source.number, source, None, source.nullable)
    return Source(repository, source.number, source, None, True)


def measure_text(binder: ExpressionBinder, source: Source, attribute: Attribute) -> Bound | None:
    """The code of the currency or unit of a measured attribute; None if none is declared."""
    return code_behind(binder, source, attribute.measure) if attribute.measure else None


def code_behind(binder: ExpressionBinder, source: Source, path: Sequence[str]) -> Bound | None:
    """The code, or else the label, of the entity at the end of a reference path; None if it has neither."""
    for name in path:
        source = follow(binder, source, source.repository.attributes[name])
    code = source.repository.code or source.repository.label
    return column(source, code) if code is not None else None
