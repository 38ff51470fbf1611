"""Row policies as bound conditions (spec 01, 1.7; `access` describes the language)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from domain.model.registry import repositories
from domain.query.base.access import Access, PolicyScope, parse_policy, policy_scopes
from domain.query.base.bound import (
    BOOL,
    FALSE,
    GUID,
    STRING,
    TRUE,
    Bound,
    Compare,
    ConcreteType,
    Quantified,
    Source,
    all_of,
    any_of,
    fixed,
    new_root,
)
from domain.query.base.scope import entity_scope
from domain.query.bind.binder import Binder
from domain.query.bind.sources import cast_source, column, follow
from domain.query.rights.subject_visibility import SubjectVisible, VisibleNow
from identity.context import Operation


def bind_policy(source: Source, text: str) -> Bound:
    """One policy as a condition on the row, bound with full rights."""
    return Binder(Access(None)).predicate(parse_policy(text), entity_scope(source))


def visible(access: Access, source: Source) -> Bound | None:
    """The condition that the caller may see the row; None if that is always so.

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
    if access.at is not None and access.restricts(source.repository):
        # The past of a row is hidden, too, if its current state is.
        conditions.append(VisibleNow(BOOL, False, source, access.now()))
    return all_of(*conditions)


def _own(access: Access, source: Source) -> Bound | None:
    repository = source.repository
    if not all(access.readable(each) for each in (repository, *repository.viewed)):
        return FALSE
    return all_of(restriction(access, source, "read"), *_behind(access, source), _subject_visible(access, source))


def _subject_visible(access: Access, source: Source) -> Bound | None:
    """The condition that the caller may see the entity that the row is about; None if rows are not about others."""
    repository = source.repository
    if not access.narrows or not (repository.describing_repository or repository.visible_through):
        return None
    if repository.describing_repository is not None:
        at, binder = source, Binder(Access(None))
        while at.repository is not repository.describing_repository:
            at = follow(binder, at, at.repository.owner_attribute)
        return SubjectVisible(BOOL, False, at, access)
    collection = repository.collections[repository.visible_through]
    part = repositories[collection.repository]
    row = new_root(part)
    back = column(row, part.references[collection.back_reference])
    return Quantified(BOOL, False, True, source, back, row, visible(access, row))


def _behind(access: Access, source: Source) -> Iterator[Bound | None]:
    """The conditions that the caller may see the viewed row of a view's row, and its owners."""
    at, binder = source, Binder(Access(None))
    for viewed in source.repository.viewed:
        if at is source:
            at = Source(viewed, source.number, source, None, source.nullable)
        else:
            at = follow(binder, at, at.repository.owner_attribute)
        yield visible(access, at)


def restriction(access: Access, source: Source, operation: Operation) -> Bound | None:
    """The condition that the policies for the operation allow the row; None without policies."""
    alternatives = access.alternatives(source.repository, operation)
    if not alternatives:
        return None
    scopes = policy_scopes(source.repository, operation)
    return any_of(*(_alternative(source, scopes, filters) or TRUE for filters in alternatives))


def _alternative(source: Source, scopes: Sequence[PolicyScope], filters: Sequence[tuple[str, ...]]) -> Bound | None:
    """The condition of one role's policies on the row, its base types and its owners."""
    return all_of(*(_in_scope(source, scope, texts) for scope, texts in zip(scopes, filters, strict=True) if texts))


def _in_scope(source: Source, scope: PolicyScope, filters: Sequence[str]) -> Bound:
    """The condition of the policies of one scope."""
    at, binder = source, Binder(Access(None))
    for name in scope.path:
        at = follow(binder, at, at.repository.references[name])
    covered = any_of(*(bind_policy(cast_source(at, scope.repository), text) for text in filters))
    if scope.is_subtype:
        covered = _unless_of(at, scope.repository.name, covered)
    if at.nullable and scope.path:
        # A row without an owner is not restricted by the owner's policies.
        key = replace(column(at, at.repository.id), type=GUID)
        covered = any_of(Compare(BOOL, False, "eq", key, fixed(None, GUID)), covered)
    return covered


def _unless_of(source: Source, name: str, condition: Bound) -> Bound:
    """The condition, restricted to rows of the type with this name: true for other rows."""
    other = Compare(BOOL, False, "ne", ConcreteType(STRING, source.nullable, source), fixed(name, STRING))
    return other if condition is FALSE else any_of(other, condition)
