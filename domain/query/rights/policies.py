"""Row policies as bound conditions (spec 01, 1.7; the language is described in `access`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from domain.query.base.access import Access, PolicyScope, parse_policy
from domain.query.base.bound import (
    BOOL,
    FALSE,
    GUID,
    STRING,
    TRUE,
    Bound,
    Compare,
    ConcreteType,
    Source,
    all_of,
    any_of,
    fixed,
)
from domain.query.base.scope import entity_scope
from domain.query.bind.binder import Binder
from domain.query.bind.sources import cast_source, column, follow
from identity.context import Operation


class _PolicyBinder(Binder):
    """Binds with full rights. Its variables count downwards: they must not be taken for those of the query around."""

    def __init__(self) -> None:
        super().__init__(Access(None))

    def next_number(self) -> int:
        self._last_number -= 1
        return self._last_number


def bind_policy(source: Source, text: str) -> Bound:
    """One policy as a condition on the row. It is bound with full rights."""
    return _PolicyBinder().predicate(parse_policy(text), entity_scope(source))


def visible(access: Access, source: Source) -> Bound | None:
    """The condition that the caller may see the row; None: always.

    In a polymorphic set, rows of a derived type keep the restrictions of their own repository.
    """
    own = _own(access, source)
    if own is FALSE:
        return own
    conditions: list[Bound | None] = [own]
    for subtype in access.subtypes(source.repository):
        restriction = _own(access, cast_source(source, subtype))
        if restriction is not None:
            conditions.append(_unless_of(source, subtype.name, restriction))
    return all_of(*conditions)


def _own(access: Access, source: Source) -> Bound | None:
    if not access.readable(source.repository):
        return FALSE
    return restriction(access, source, "read")


def restriction(access: Access, source: Source, operation: Operation) -> Bound | None:
    """The condition that the policies for the operation cover the row; None where there are none."""
    alternatives = access.alternatives(source.repository, operation)
    if not alternatives:
        return None
    kin = access.kin(source.repository, operation)
    return any_of(*(_alternative(source, kin, filters) or TRUE for filters in alternatives))


def _alternative(source: Source, kin: Sequence[PolicyScope], filters: Sequence[tuple[str, ...]]) -> Bound | None:
    """What the policies of one role ask of the row, of what it is and of what it belongs to."""
    asked = [_of_kin(source, each, texts) for each, texts in zip(kin, filters, strict=True) if texts]
    return all_of(*asked)


def _of_kin(source: Source, kin: PolicyScope, filters: Sequence[str]) -> Bound:
    at, binder = source, _PolicyBinder()
    for name in kin.path:
        at = follow(binder, at, at.repository.references[name])
    covered = any_of(*(bind_policy(cast_source(at, kin.repository), text) for text in filters))
    if kin.is_subtype:
        covered = _unless_of(at, kin.repository.name, covered)
    if at.nullable and kin.path:
        # What belongs to nothing is not narrowed by what it could belong to.
        key = replace(column(at, at.repository.id), type=GUID)
        covered = any_of(Compare(BOOL, False, "eq", key, fixed(None, GUID)), covered)
    return covered


def _unless_of(source: Source, name: str, condition: Bound) -> Bound:
    """The condition, for rows of that type only."""
    other = Compare(BOOL, False, "ne", ConcreteType(STRING, source.nullable, source), fixed(name, STRING))
    return other if condition is FALSE else any_of(other, condition)


__all__ = ["TRUE", "bind_policy", "restriction", "visible"]
