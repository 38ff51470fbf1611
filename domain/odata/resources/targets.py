"""Targets of resource paths (OData URL Conventions 4.01, 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from domain.model.attributes import Attribute, Child
from domain.model.repository import Repository
from domain.odata.operations.catalogue import Operation
from domain.query.base.representation import ParentScope
from domain.syntax.ast import Expression

_READING = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Target:
    """Base of targets. METHODS: allowed methods of a target that is not read-only."""

    METHODS: ClassVar[tuple[str, ...]] = _READING


@dataclass(frozen=True, slots=True)
class ServiceDocument(Target):
    """The service root."""


@dataclass(frozen=True, slots=True)
class Metadata(Target):
    """`$metadata`."""


@dataclass(frozen=True, slots=True)
class Batch(Target):
    """`$batch`."""

    METHODS = ("POST",)


@dataclass(frozen=True, slots=True)
class Collection(Target):
    """An entity set, or an owned collection of `parent`."""

    METHODS = (*_READING, "POST")

    repository: Repository[Any]
    parent: ParentScope | None = None
    child: Child | None = None
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Count(Target):
    """`…/$count`."""

    collection: Collection


@dataclass(frozen=True, slots=True)
class Query(Target):
    """`…/$query`: a POST whose body is the query string."""

    METHODS = ("POST",)

    target: Target


@dataclass(frozen=True, slots=True)
class Entity(Target):
    """One entity. `reference` is (its owner, the reference) if the path leads over a single reference."""

    METHODS = (*_READING, "PATCH", "PUT", "MERGE", "DELETE")

    repository: Repository[Any]
    key: str
    reference: tuple[Entity, Attribute] | None = None


@dataclass(frozen=True, slots=True)
class Property(Target):
    """`Set(key)/Prop`, also of a complex value (`Price/Value`); `raw` for `/$value`."""

    METHODS = (*_READING, "PATCH", "PUT", "DELETE")

    entity: Entity
    path: tuple[str, ...]
    raw: bool = False


@dataclass(frozen=True, slots=True)
class EntityLink(Target):
    """`Set(key)/$ref`, `…/Collection(key)/$ref`: rows of collections keep their owner, so it cannot be deleted."""

    entity: Entity


@dataclass(frozen=True, slots=True)
class ReferenceLink(Target):
    """`…/Nav/$ref`."""

    METHODS = (*_READING, "PUT", "DELETE")

    entity: Entity
    attribute: Attribute


@dataclass(frozen=True, slots=True)
class CollectionLinks(Target):
    """`…/Collection/$ref`."""

    METHODS = (*_READING, "POST")

    collection: Collection


@dataclass(frozen=True, slots=True)
class Call(Target):
    """An operation with the arguments in the URL."""

    operation: Operation
    entity: Entity | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


def subject(target: Target) -> Collection | Entity | None:
    """The collection or entity that the target is or belongs to; None for a target without data."""
    match target:
        case Collection() | Entity():
            return target
        case Count() | CollectionLinks():
            return target.collection
        case Property() | ReferenceLink() | EntityLink():
            return target.entity
    return None


def allowed_methods(target: Target) -> tuple[str, ...]:
    """The methods of a target, for 405 and OPTIONS."""
    data, methods = subject(target), target.METHODS
    if data is not None and data.repository.access == "ReadOnly":
        methods = _READING
    elif isinstance(target, Property) and target.raw:
        methods = (*_READING, "DELETE")
    elif isinstance(target, Call):
        methods = _methods_of(target.operation)
    elif isinstance(target, CollectionLinks) and target.collection.parent is None:
        methods = _READING
    return *methods, "OPTIONS"


def _methods_of(operation: Operation) -> tuple[str, ...]:
    """The methods that call an operation. HEAD is safe (RFC 9110, 9.2.1), so not for functions that write."""
    if not operation.is_function:
        return ("POST",)
    return ("GET",) if operation.writes else _READING


def starting_repository(target: Target) -> Repository[Any] | None:
    """The repository of the starting key, if the target is that entity or an owned collection of it."""
    match subject(target):
        case Entity(repository=repository):
            return repository
        case Collection(repository=repository, parent=ParentScope(repository=owner), child=Child(back_reference=name)):
            return owner if repository.owner is not None and repository.owner.name == name else None
    return None


def starting_key(target: Target) -> str | None:
    """Key of the entity at the start of the path; None for set queries (spec 03, 3.2)."""
    data = subject(target)
    if isinstance(data, Entity):
        return data.key
    return data.parent.key if data is not None and data.parent is not None else None
