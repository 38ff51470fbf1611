"""Resolves a resource path against the model (OData URL Conventions 4.01, 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from domain.model import calculated_attributes, custom_properties
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.operations.catalogue import Operation, operations
from domain.odata.resources import targets
from domain.query.base.representation import ParentScope
from domain.syntax import ast
from foundation import errors
from foundation.guids import is_guid, parse_guid
from foundation.messages import TranslatableMessage as Message

#: Resolves a reference from an entity: (repository, key, path) → (dotted name, key), None if it is null.
Follow = Callable[[Repository[Any], str, tuple[str, ...]], tuple[str, str] | None]


@dataclass(slots=True)
class Resolver:
    """Resolves a path's segments.

    follow     reads the target of a reference
    matches    whether the entity of a key fulfils the predicates of a collection
    aliases    parameter aliases of the query string
    renamed    collects (old, new) set names that were used
    """

    follow: Follow
    matches: Callable[[targets.Collection, str], bool]
    aliases: Mapping[str, ast.Expression]
    renamed: list[tuple[str, str]] = field(default_factory=list)

    def resolve(self, path: ast.ResourcePath) -> targets.Target:
        """The target of the path. Raises NotFound, BadRequest, NotSupported."""
        if not path.segments:
            return targets.ServiceDocument()
        target = self._first(path.segments[0])
        for segment in path.segments[1:]:
            target = self._next(target, segment)
        return target

    def _first(self, segment: ast.Segment) -> targets.Target:
        match segment:
            case ast.KeywordSegment(name="$metadata"):
                return targets.Metadata()
            case ast.KeywordSegment(name="$batch"):
                return targets.Batch()
            case ast.KeywordSegment():
                raise errors.NotSupported(segment.name)
            case ast.NameSegment():
                return self._set_or_operation(segment)
        raise errors.NotSupported(type(segment).__name__.removesuffix("Segment").lower() + " resources")

    def _set_or_operation(self, segment: ast.NameSegment) -> targets.Target:
        known = repositories.for_set(segment.name)
        if known is not None:
            repository, is_old = known
            if is_old:
                self.renamed.append((segment.name, repository.set_name))
            return self._keyed(targets.Collection(repository), segment.suffixes, segment.position)
        operation = operations.unbound(segment.name)
        if operation is None:
            hint = near(segment.name, repositories.set_names())
            raise errors.BadRequest(errors.UNKNOWN_SET, segment.name, hint, target=segment.name)
        return self._call(operation, None, segment)

    def _next(self, target: targets.Target, segment: ast.Segment) -> targets.Target:
        match segment, target:
            case ast.KeywordSegment(name="$count"), targets.Collection():
                return targets.Count(target)
            case ast.KeywordSegment(name="$query"), targets.Collection() | targets.Entity() | targets.Count():
                return targets.Query(target)
            case ast.KeywordSegment(name="$value"), targets.Property() if not _is_complex(target):
                return replace(target, raw=True)
            case ast.KeywordSegment(name="$ref"), targets.Entity() if target.reference is not None:
                return targets.ReferenceLink(*target.reference)
            case ast.KeywordSegment(name="$ref"), targets.Entity():
                return targets.EntityLink(target)
            case ast.KeywordSegment(name="$ref"), targets.Collection():
                return targets.CollectionLinks(target)
            case ast.KeywordSegment(name="$each" | "$value" | "$ref"), _:
                raise errors.NotSupported(segment.name)
            case ast.FilterSegment(), targets.Collection():
                filtered = replace(target, predicates=(*target.predicates, segment.predicate))
                return filtered if segment.key is None else self._keyed(filtered, (segment.key,), segment.position)
            case ast.LiteralSegment(), targets.Collection():
                return self._entity(target, segment.text)
            case ast.NameSegment(), targets.Collection() | targets.Entity():
                return self._below(target, segment)
            case ast.NameSegment(suffixes=()), targets.Property(raw=False):
                return replace(target, path=(*target.path, segment.name))
        name = getattr(segment, "name", None) or getattr(segment, "text", None) or type(segment).__name__
        raise errors.NotFound(errors.RESOURCE_NOT_FOUND, name)

    def _below(self, target: targets.Collection | targets.Entity, segment: ast.NameSegment) -> targets.Target:
        derived = repositories.for_type(segment.name)
        if isinstance(target, targets.Entity):
            result = self._member(target, segment)
            if result is not None:
                return result
            if derived is not None:
                return _cast(target, derived)
        elif derived is not None and issubclass(derived.model, target.repository.model):
            return self._keyed(replace(target, repository=derived), segment.suffixes, segment.position)
        elif is_guid(segment.name):
            return self._entity(target, segment.name)
        operation = operations.bound(target.repository, segment.name)
        if operation is None:
            raise _unknown(target, segment)
        if isinstance(target, targets.Collection):
            raise errors.BadRequest(
                errors.BAD_URL, segment.position, Message("{0} is bound to one entity; give its key", operation.name)
            )
        return self._call(operation, target, segment)

    def _member(self, entity: targets.Entity, segment: ast.NameSegment) -> targets.Target | None:
        """The attribute or collection of the entity; None for a possible operation."""
        repository = entity.repository
        attribute = repository.attribute(segment.name)
        if attribute is not None and attribute.is_reference:
            leads_to = self.follow(repository, entity.key, (attribute.name,)) or (attribute.target, "")
            return targets.Entity(repositories[leads_to[0]], leads_to[1], (entity, attribute))
        if attribute is not None:
            return targets.Property(entity, (attribute.name,))
        child = repository.collection(segment.name)
        if child is not None:
            owned = targets.Collection(
                repositories[child.repository], ParentScope(repository, entity.key, child.name), child
            )
            return self._keyed(owned, segment.suffixes, segment.position)
        if (calculated := calculated_attributes.definition(repository, segment.name)) is not None:
            return targets.Property(entity, (calculated.api_name,))
        if not custom_properties.is_name(segment.name):
            return None
        custom = custom_properties.named(repository.name, segment.name)
        return targets.Property(entity, (segment.name if custom is None else custom.api_name,))

    # --- keys and arguments ---------------------------------------------------------------------------------------

    def _keyed(
        self, collection: targets.Collection, suffixes: Sequence[ast.Key | ast.Arguments], position: int
    ) -> targets.Collection | targets.Entity:
        """The collection, or its entity if a key follows the name."""
        target: targets.Collection | targets.Entity = collection
        for suffix in suffixes:
            if not isinstance(target, targets.Collection):
                raise errors.BadRequest(errors.BAD_URL, position, Message("a key may stand behind a set only"))
            if isinstance(suffix, ast.Key):
                target = self._entity(target, plain_value(suffix.value, self.aliases))
            elif [item.name.lower() for item in suffix.items] == ["id"]:
                target = self._entity(target, plain_value(suffix.items[0].value, self.aliases))
            elif suffix.items:
                names = ",".join(item.name for item in suffix.items)
                raise errors.BadRequest(errors.INVALID_KEY, names, target.repository.entity_type, target="Id")
        return target

    def _entity(self, collection: targets.Collection, key: Any) -> targets.Entity:
        """The entity of the collection. Raises BadRequest(INVALID_KEY), NotFound."""
        repository = collection.repository
        try:
            id = parse_guid(key)
        except (ValueError, TypeError) as exc:
            raise errors.BadRequest(errors.INVALID_KEY, key, repository.entity_type, target="Id") from exc
        if collection.parent is not None:
            # After the check that the child belongs to this parent, its own key identifies it.
            owner = self.follow(repository, id, (collection.child.back_reference if collection.child else "",))
            if owner is None or owner[1] != collection.parent.key:
                raise errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, id)
        if collection.predicates and not self.matches(collection, id):
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, id)
        return targets.Entity(repository, id)

    def _call(self, operation: Operation, entity: targets.Entity | None, segment: ast.NameSegment) -> targets.Call:
        given: dict[str, Any] = {}
        for suffix in segment.suffixes:
            if not isinstance(suffix, ast.Arguments):
                raise errors.BadRequest(
                    errors.BAD_URL,
                    segment.position,
                    Message("the arguments of {0} need names: {1}(name=value)", operation.name, operation.name),
                )
            for item in suffix.items:
                if item.name in given:
                    raise errors.repeated_parameter(item.name)
                given[item.name] = plain_value(item.value, self.aliases)
        return targets.Call(operation, entity, given)


def _is_complex(target: targets.Property) -> bool:
    """Whether the value is an amount or a quantity, which has no raw value."""
    attribute = target.entity.repository.attribute(target.path[0])
    return attribute is not None and attribute.is_measured and len(target.path) == 1


def _cast(entity: targets.Entity, derived: Repository[Any]) -> targets.Entity:
    if not issubclass(derived.model, entity.repository.model):
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, derived.entity_type, entity.key)
    return replace(entity, repository=derived)


def _unknown(target: targets.Collection | targets.Entity, segment: ast.NameSegment) -> errors.BadRequest:
    repository = target.repository
    known = [operation.name for operation in operations.of(repository)]
    owner = repository.set_name
    if isinstance(target, targets.Entity):
        known = [*repository.attributes, *repository.collections, *known]
        owner = repository.entity_type
    return errors.BadRequest(
        errors.UNKNOWN_OPERATION, segment.name, owner, near(segment.name, known), target=segment.name
    )


def plain_value(value: ast.Expression, aliases: Mapping[str, ast.Expression]) -> Any:
    """The JSON value of a literal or alias. Raises BadRequest for other expressions."""
    try:
        return _plain(value, aliases)
    except RecursionError as exc:  # the values of aliases nest in one another
        raise errors.BadRequest(errors.BAD_URL, value.position, Message("nested too deeply")) from exc


def _plain(value: ast.Expression, aliases: Mapping[str, ast.Expression]) -> Any:
    match value:
        case ast.Literal():
            return value.value if value.type_name == "" else ",".join(str(part) for part in value.value)  # type: ignore[union-attr]
        case ast.ParameterAlias():
            # OData URL Conventions 4.01, 5.2.2: a missing alias is null; so is one that refers to itself.
            if value.name not in aliases:
                return None
            others = {name: other for name, other in aliases.items() if name != value.name}
            return _plain(aliases[value.name], others)
        case ast.Negate():
            number = _plain(value.operand, aliases)
            if isinstance(number, int | Decimal) and not isinstance(number, bool):
                return -number
        case ast.CollectionExpression():
            return [_plain(item, aliases) for item in value.items]
        case ast.ObjectExpression():
            return {member.name: _plain(member.value, aliases) for member in value.members}
    raise errors.BadRequest(errors.BAD_URL, value.position, Message("a literal or a parameter alias is expected"))
