"""From a resource path to what it addresses in this model (OData URL Conventions 4.01, 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from domain.model.attributes import Attribute, Child
from domain.model.custom_properties import PREFIX as CUSTOM_PREFIX
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.operations.catalogue import Operation, operations
from domain.query.base.representation import ParentScope
from domain.syntax.ast import (
    Arguments,
    CollectionExpression,
    Expression,
    FilterSegment,
    Key,
    KeywordSegment,
    Literal,
    LiteralSegment,
    NameSegment,
    Negate,
    ObjectExpression,
    ParameterAlias,
    ResourcePath,
)
from foundation import errors
from foundation.guids import is_guid, parse_guid
from foundation.phrases import Phrase

#: Follows a single reference from an entity: (repository, key, path) → (dotted name, key), None where it is null.
Follow = Callable[[Repository[Any], str, tuple[str, ...]], tuple[str, str] | None]


@dataclass(frozen=True, slots=True)
class Target:
    """Base of what a path may address."""


@dataclass(frozen=True, slots=True)
class ServiceDocument(Target):
    """The service root."""


@dataclass(frozen=True, slots=True)
class Metadata(Target):
    """`$metadata`."""


@dataclass(frozen=True, slots=True)
class Batch(Target):
    """`$batch`."""


@dataclass(frozen=True, slots=True)
class Collection(Target):
    """An entity set, or an owned collection where `parent` is given. `cast_from` is the declared set of a type cast."""

    repository: Repository[Any]
    parent: ParentScope | None = None
    child: Child | None = None
    cast_from: Repository[Any] | None = None
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Count(Target):
    """`…/$count`."""

    collection: Collection


@dataclass(frozen=True, slots=True)
class Query(Target):
    """`…/$query`: a POST whose body is the query string."""

    target: Target


@dataclass(frozen=True, slots=True)
class Entity(Target):
    """One entity. `reference` is (its owner, the reference) where the path came over a single reference."""

    repository: Repository[Any]
    key: str
    reference: tuple[Entity, Attribute] | None = None


@dataclass(frozen=True, slots=True)
class Property(Target):
    """`Set(key)/Prop`, also below a complex value (`Price/Value`); `raw` for `/$value`."""

    entity: Entity
    path: tuple[str, ...]
    raw: bool = False


@dataclass(frozen=True, slots=True)
class ReferenceLink(Target):
    """`…/Nav/$ref`."""

    entity: Entity
    attribute: Attribute


@dataclass(frozen=True, slots=True)
class CollectionLinks(Target):
    """`…/Collection/$ref`."""

    collection: Collection


@dataclass(frozen=True, slots=True)
class Call(Target):
    """An operation with the arguments that the URL gives."""

    operation: Operation
    entity: Entity | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Resolver:
    """Walks a path's segments.

    follow     asks the data where a reference leads
    aliases    parameter aliases of the query string
    renamed    collects (old, new) set names that were used
    """

    follow: Follow
    aliases: Mapping[str, Expression]
    renamed: list[tuple[str, str]] = field(default_factory=list)

    def resolve(self, path: ResourcePath) -> Target:
        """What the path addresses. Raises NotFound, BadRequest, NotSupported."""
        if not path.segments:
            return ServiceDocument()
        target = self._first(path.segments[0])
        for segment in path.segments[1:]:
            target = self._next(target, segment)
        return target

    # --- the first segment ----------------------------------------------------------------------------------------

    def _first(self, segment: Any) -> Target:
        if isinstance(segment, KeywordSegment):
            match segment.name:
                case "$metadata":
                    return Metadata()
                case "$batch":
                    return Batch()
            raise errors.NotSupported(segment.name)
        if not isinstance(segment, NameSegment):
            raise errors.NotSupported(type(segment).__name__.removesuffix("Segment").lower() + " resources")
        found = repositories.for_set(segment.name)
        if found is not None:
            repository, is_old = found
            if is_old:
                self.renamed.append((segment.name, repository.set_name))
            return self._suffixes(Collection(repository), segment)
        operation = operations.unbound(segment.name)
        if operation is not None:
            return Call(operation, None, self._arguments(operation, segment))
        hint = near(segment.name, repositories.set_names())
        raise errors.BadRequest(errors.UNKNOWN_SET, segment.name, hint, target=segment.name)

    def _suffixes(self, collection: Collection, segment: NameSegment) -> Target:
        target: Target = collection
        for suffix in segment.suffixes:
            if not isinstance(target, Collection):
                raise errors.BadRequest(errors.BAD_URL, segment.position, Phrase("a key may stand behind a set only"))
            if isinstance(suffix, Key):
                target = self._entity(target, self._key_text(suffix.value, target.repository))
            elif suffix.items:
                target = self._entity(target, self._named_key(suffix, target.repository))
        return target

    def _named_key(self, arguments: Arguments, repository: Repository[Any]) -> str:
        if len(arguments.items) != 1 or arguments.items[0].name.lower() != "id":
            raise errors.BadRequest(
                errors.INVALID_KEY, ",".join(item.name for item in arguments.items), repository.entity_type, target="Id"
            )
        return self._key_text(arguments.items[0].value, repository)

    def _key_text(self, value: Expression, repository: Repository[Any]) -> str:
        literal = self._plain(value)
        try:
            return parse_guid(literal)
        except (ValueError, TypeError) as exc:
            raise errors.BadRequest(errors.INVALID_KEY, literal, repository.entity_type, target="Id") from exc

    def _entity(self, collection: Collection, key: str) -> Entity:
        if collection.parent is not None:
            # The child must belong to this parent; its own key is enough to read it then.
            back = collection.child.back_reference if collection.child else ""
            owner = self.follow(collection.repository, key, (back,))
            if owner is None or owner[1] != collection.parent.key:
                raise errors.NotFound(errors.ENTITY_NOT_FOUND, collection.repository.entity_type, key)
        return Entity(collection.repository, key)

    # --- the segments behind it -----------------------------------------------------------------------------------

    def _next(self, target: Target, segment: Any) -> Target:
        match segment:
            case KeywordSegment():
                return self._keyword(target, segment)
            case NameSegment():
                return self._name(target, segment)
            case FilterSegment() if isinstance(target, Collection):
                return replace(target, predicates=(*target.predicates, segment.predicate))
            case LiteralSegment() if isinstance(target, Collection):
                if not is_guid(segment.text):
                    raise errors.BadRequest(errors.INVALID_KEY, segment.text, target.repository.entity_type)
                return self._entity(target, parse_guid(segment.text))
        raise self._nothing(target, segment)

    def _keyword(self, target: Target, segment: KeywordSegment) -> Target:
        match segment.name, target:
            case "$count", Collection():
                return Count(target)
            case "$query", Collection() | Entity() | Count():
                return Query(target)
            case "$value", Property():
                return replace(target, raw=True)
            case "$ref", Entity() if target.reference is not None:
                return ReferenceLink(*target.reference)
            case "$ref", Collection():
                return CollectionLinks(target)
            case (("$each" | "$value" | "$ref"), _):
                raise errors.NotSupported(segment.name)
        raise self._nothing(target, segment)

    def _name(self, target: Target, segment: NameSegment) -> Target:
        match target:
            case Collection():
                return self._below_collection(target, segment)
            case Entity():
                return self._below_entity(target, segment)
            case Property() if not target.raw and not segment.suffixes:
                return replace(target, path=(*target.path, segment.name))
        raise self._nothing(target, segment)

    def _below_collection(self, target: Collection, segment: NameSegment) -> Target:
        derived = repositories.for_type(segment.name) if "." in segment.name else None
        if derived is not None and issubclass(derived.model, target.repository.model):
            cast = replace(target, repository=derived, cast_from=target.repository)
            return self._suffixes(cast, segment)
        if is_guid(segment.name):
            return self._entity(target, parse_guid(segment.name))
        operation = operations.bound(target.repository, segment.name)
        if operation is not None:
            raise errors.BadRequest(
                errors.BAD_URL, segment.position, Phrase("{0} is bound to one entity; give its key", operation.name)
            )
        hint = near(segment.name, [o.name for o in operations.of(target.repository)])
        raise errors.BadRequest(
            errors.UNKNOWN_OPERATION, segment.name, target.repository.set_name, hint, target=segment.name
        )

    def _below_entity(self, entity: Entity, segment: NameSegment) -> Target:
        repository = entity.repository
        if "." in segment.name and (derived := repositories.for_type(segment.name)) is not None:
            return self._cast(entity, derived)
        attribute = repository.attribute(segment.name)
        if attribute is not None and attribute.is_reference:
            return self._reference(entity, attribute)
        if attribute is not None:
            return Property(entity, (attribute.name,))
        child = repository.collection(segment.name)
        if child is not None:
            owned = Collection(repositories[child.repository], ParentScope(repository, entity.key, child.name), child)
            return self._suffixes(owned, segment)
        if segment.name.startswith(CUSTOM_PREFIX):
            return Property(entity, (segment.name,))
        operation = operations.bound(repository, segment.name)
        if operation is not None:
            return Call(operation, entity, self._arguments(operation, segment))
        members = [*repository.attributes, *repository.collections, *(o.name for o in operations.of(repository))]
        raise errors.BadRequest(
            errors.UNKNOWN_OPERATION,
            segment.name,
            repository.entity_type,
            near(segment.name, members),
            target=segment.name,
        )

    def _reference(self, entity: Entity, attribute: Attribute) -> Entity:
        leads_to = self.follow(entity.repository, entity.key, (attribute.name,))
        if leads_to is None:
            return Entity(repositories[attribute.target], "", (entity, attribute))
        return Entity(repositories[leads_to[0]], leads_to[1], (entity, attribute))

    def _cast(self, entity: Entity, derived: Repository[Any]) -> Entity:
        if not issubclass(derived.model, entity.repository.model):
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, derived.entity_type, entity.key)
        return replace(entity, repository=derived)

    # --- arguments ------------------------------------------------------------------------------------------------

    def _arguments(self, operation: Operation, segment: NameSegment) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for suffix in segment.suffixes:
            if isinstance(suffix, Arguments):
                given.update((item.name, self._plain(item.value)) for item in suffix.items)
            else:
                raise errors.BadRequest(
                    errors.BAD_URL,
                    segment.position,
                    Phrase("the arguments of {0} need names: {1}(name=value)", operation.name, operation.name),
                )
        return given

    def _plain(self, value: Expression) -> Any:
        return plain_value(value, self.aliases)

    @staticmethod
    def _nothing(target: Target, segment: Any) -> errors.PlatformError:
        name = getattr(segment, "name", None) or getattr(segment, "text", None) or type(segment).__name__
        return errors.NotFound(errors.RESOURCE_NOT_FOUND, name)


def plain_value(value: Expression, aliases: Mapping[str, Expression]) -> Any:
    """The JSON value of a literal or of what an alias stands for. Raises BadRequest for other expressions."""
    match value:
        case Literal():
            return value.value if value.type_name == "" else ",".join(str(part) for part in value.value)  # type: ignore[union-attr]
        case ParameterAlias():
            # OData URL Conventions 4.01, 5.2.2: an alias that is not given stands for null; so does one of itself.
            if value.name not in aliases:
                return None
            others = {name: other for name, other in aliases.items() if name != value.name}
            return plain_value(aliases[value.name], others)
        case Negate():
            return -plain_value(value.operand, aliases)
        case CollectionExpression():
            return [plain_value(item, aliases) for item in value.items]
        case ObjectExpression():
            return {member.name: plain_value(member.value, aliases) for member in value.members}
    raise errors.BadRequest(errors.BAD_URL, value.position, Phrase("a literal or a parameter alias is expected"))
