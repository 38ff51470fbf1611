"""Checks of the definition of a custom entity that need no stored data."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping

from django.utils.translation import gettext as _

from domain.entities.custom_entities import enumerations
from domain.entities.custom_entities.building import OWNER, base_of, default_of
from domain.entities.custom_entities.definitions import (
    DECIMAL_PLACES,
    ENUMERATION,
    PREFIX,
    AttributeDefinition,
    EntityDefinition,
    snake_case,
)
from domain.model import calculated_attributes, template_syntax
from domain.model.custom_properties import by_code
from domain.model.members import DISPLAY_TEXT
from domain.model.naming import near, pascal_case
from domain.model.registry import repositories
from domain.query.bind.calculated_types import operator_without_sql
from foundation.errors import BadRequest, reason

_NAME = re.compile(r"Custom\.[A-Z][A-Za-z0-9]*(\.[A-Z][A-Za-z0-9]*)+")
_MEMBER = re.compile(r"[A-Z][A-Za-z0-9]*")
_LONGEST = 48
_MAX_LENGTH = 4000
#: PostgreSQL has at most 32 columns in an index and cuts names after 63 characters. Its row has one page of 8 KB, where
#: each long text takes 18 bytes: 440 of them fit (measured with version 16).
_MOST_ATTRIBUTES, _MOST_INDEXED, _COLUMN_LENGTH = 400, 32, 63
#: Columns that each table of PostgreSQL has.
_SYSTEM_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
#: Repository of the measure that a type needs.
_MEASURES = {"Amount": "General.Currencies.Currencies", "Quantity": "General.Products.MeasurementUnits"}
DOCUMENTS = "General.Documents.Documents"
#: Types that no index can hold, or whose values are not compared.
_NOT_INDEXED = frozenset({"MultilanguageText", "Picture"})


def problems(definition: EntityDefinition, others: Mapping[str, EntityDefinition]) -> Iterator[tuple[str, str]]:
    """(API name of the member at fault, sentence) of each problem. others: the other definitions by name.

    A member of an attribute is `guid/Name`, with the guid of the attribute.
    """
    yield from _names(definition, others)
    yield from _type_name(definition, others)
    yield from _document(definition)
    yield from _owner(definition, others)
    yield from _collections(definition, others)
    for attribute in definition.attributes:
        for target, problem in _attribute(definition, attribute, others):
            yield f"{attribute.id}/{target}", problem
    if len(definition.attributes) > _MOST_ATTRIBUTES:
        yield "Attributes", _("it has more than %(most)s attributes") % {"most": _MOST_ATTRIBUTES}
    yield from _doubles(definition)
    yield from _members(definition)
    yield from _display_format(definition)


def _doubles(definition: EntityDefinition) -> Iterator[tuple[str, str]]:
    """Attributes with equal Python names or columns: DriverId and the reference Driver share a column."""
    for names in (
        [attribute.python_name for attribute in definition.attributes],
        [attribute.column[:_COLUMN_LENGTH] for attribute in definition.attributes],
    ):
        known: set[str] = set()
        for name, attribute in zip(names, definition.attributes, strict=True):
            if name in known:
                yield "Name", _("there are two attributes %(name)s") % {"name": attribute.name}
                return
            known.add(name)


def _names(definition: EntityDefinition, others: Mapping[str, EntityDefinition]) -> Iterator[tuple[str, str]]:
    if not _NAME.fullmatch(definition.name) or len(definition.name) > 100:
        form = f"{PREFIX}Fleet.Cars"
        yield "Name", _("the name must have the form %(form)s, of letters and digits") % {"form": form}
        return
    if definition.name.lower() in {name.lower() for name in others}:
        yield "Name", _("there is an entity %(name)s already") % {"name": definition.name}
    singular = definition.singular
    if not _MEMBER.fullmatch(singular) or len(singular) > _LONGEST or keyword.iskeyword(singular):
        yield "SingularName", _("the singular must be letters and digits, the first a capital, such as Car")
    elif singular.lower() in {other.singular.lower() for other in others.values()}:
        yield "SingularName", _("another custom entity has the singular %(name)s") % {"name": singular}
    elif definition.table in {other.table for other in others.values()}:
        yield "Name", _("another custom entity has the table %(name)s") % {"name": definition.table}


def _document(definition: EntityDefinition) -> Iterator[tuple[str, str]]:
    if not definition.is_document:
        return
    if definition.owner:
        yield "OwnerRepository", _("a document has no owner")
    if definition.tracked:
        yield "TrackChanges", _("a document has its own times and users")
    if definition.code:
        yield "CodeAttribute", _("the code of a document is its DocumentNo")


def _collections(definition: EntityDefinition, others: Mapping[str, EntityDefinition]) -> Iterator[tuple[str, str]]:
    """Collections whose name another member of their owner has."""
    owner = others.get(definition.owner)
    if owner is not None:
        siblings = {other.collection for other in others.values() if other.owner == owner.name}
        if definition.collection in siblings | owner.by_name.keys() | _inherited(owner):
            message = _("%(owner)s has another member %(name)s")
            yield "Name", message % {"owner": owner.name, "name": definition.collection}
    for other in others.values():
        if other.owner == definition.name and other.collection in definition.by_name:
            yield "Name", _("%(name)s: this is the name of a collection") % {"name": other.collection}


def _inherited(definition: EntityDefinition) -> set[str]:
    """API names of the members that a document has besides its own attributes."""
    documents = repositories[DOCUMENTS]
    return {*documents.attributes, *documents.collections} if definition.is_document else set()


def _owner(definition: EntityDefinition, others: Mapping[str, EntityDefinition]) -> Iterator[tuple[str, str]]:
    seen, owner = {definition.name}, definition.owner
    if owner and owner != definition.name and (owner not in others or owner not in repositories):
        yield "OwnerRepository", _("the owner must be a custom entity; there is no %(name)s") % {"name": owner}
        return
    while owner:
        if owner in seen:
            yield "OwnerRepository", _("the owners form a circle: %(names)s") % {"names": " → ".join([*seen, owner])}
            return
        seen.add(owner)
        owner = others[owner].owner if owner in others else ""


def _attribute(
    definition: EntityDefinition, attribute: AttributeDefinition, others: Mapping[str, EntityDefinition]
) -> Iterator[tuple[str, str]]:
    name = attribute.name
    if not _MEMBER.fullmatch(name) or len(name) > _LONGEST:
        yield "Name", _("the name must be letters and digits, the first a capital, such as MaxSpeed")
        return
    if _is_reserved(definition, attribute):
        yield "Name", _("this name is reserved")
    if attribute.type == "Reference":
        if attribute.target != definition.name and attribute.target not in repositories:
            known = [repository.name for repository in repositories]
            missing = _("there is no repository %(name)s") % {"name": attribute.target}
            yield (
                "TargetRepository",
                f"{missing}.{near(attribute.target, known)}"
                if attribute.target
                else _("a reference needs a TargetRepository"),
            )
        elif attribute.target in repositories and not repositories[attribute.target].model._meta.managed:
            message = _("%(name)s has no table, so nothing can refer to it")
            yield "TargetRepository", message % {"name": attribute.target}
        if attribute.default:
            yield "DefaultValue", _("a reference has no default")
    if attribute.type == ENUMERATION:
        yield from _enumeration(definition, attribute, others)
    if attribute.type in _MEASURES:
        measure = definition.by_name.get(attribute.measure)
        if measure is None or measure.target != _MEASURES[attribute.type]:
            yield (
                "MeasureReference",
                _("name an attribute that refers to %(name)s") % {"name": _MEASURES[attribute.type]},
            )
    if attribute.max_length is not None and not 1 <= attribute.max_length <= _MAX_LENGTH:
        yield "MaxLength", _("the length must be from 1 to %(longest)s") % {"longest": _MAX_LENGTH}
    if not 0 <= attribute.decimal_places <= DECIMAL_PLACES:
        yield "DecimalPlaces", _("there are 0 to %(most)s decimal places") % {"most": DECIMAL_PLACES}
    if attribute.type in _NOT_INDEXED and (attribute.unique or attribute.indexed):
        yield "IsIndexed", _("values of the type %(type)s have no index") % {"type": attribute.type}
    if attribute.default and attribute.type != "Reference":
        try:
            default = default_of(attribute)
        except BadRequest as error:
            yield "DefaultValue", error.message
        else:
            if isinstance(default, str) and attribute.max_length is not None and len(default) > attribute.max_length:
                yield "DefaultValue", _("the default is longer than %(longest)s") % {"longest": attribute.max_length}


def _enumeration(
    definition: EntityDefinition, attribute: AttributeDefinition, others: Mapping[str, EntityDefinition]
) -> Iterator[tuple[str, str]]:
    """Problems of the members, and of the name of their type."""
    for problem in enumerations.problems(attribute.members):
        yield "EnumMembers", problem
    # Enum types and entity types share the names of one schema, compared without case.
    own = attribute.enum_type
    names = [each.type_name for each in (definition, *others.values())]
    names += [each.edm_name for each in definition.enum_types if each is not own]
    if own.edm_name.lower() in {name.lower() for name in names}:
        yield "Name", _("there is another type %(name)s") % {"name": own.edm_name}


def _type_name(definition: EntityDefinition, others: Mapping[str, EntityDefinition]) -> Iterator[tuple[str, str]]:
    enums = {each.edm_name.lower() for other in others.values() for each in other.enum_types}
    if definition.type_name.lower() in enums:
        yield "SingularName", _("there is another type %(name)s") % {"name": definition.type_name}


def _is_reserved(definition: EntityDefinition, attribute: AttributeDefinition) -> bool:
    """Whether another member of the entity's model, API or records has the name."""
    own = {attribute.python_name, f"{attribute.python_name}_id"} if attribute.type == "Reference" else set()
    taken: set[str] = {"dataset", "repository", "values", "key", "version", "parent", "root", "roots", "custom"}
    for base in base_of(definition):
        taken |= set(dir(base)) | {field.name for field in base._meta.get_fields()}
    if definition.owner:
        taken |= {OWNER, f"{OWNER}_id"}
    taken |= {snake_case(DISPLAY_TEXT), f"{snake_case(definition.singular)}_id", "objects", "state"}
    is_key = attribute.name in (f"{definition.singular}Id", DISPLAY_TEXT)
    prefixed = attribute.name.startswith(("CustomProperty", "CalculatedAttribute"))
    shadows = any(pascal_case(name) == attribute.name for name in ("is_new", "is_deleted", "object_state"))
    return (
        is_key
        or attribute.column in _SYSTEM_COLUMNS
        or prefixed
        or shadows
        or attribute.name in _inherited(definition)
        or keyword.iskeyword(attribute.python_name)
        or bool((own or {attribute.python_name}) & taken)
    )


def _members(definition: EntityDefinition) -> Iterator[tuple[str, str]]:
    for target, name in (("CodeAttribute", definition.code), ("NameAttribute", definition.label)):
        if not name:
            continue
        if name not in definition.by_name:
            yield target, _("there is no attribute %(name)s") % {"name": name}
        elif definition.by_name[name].type not in ("Text", "MultilanguageText"):
            yield target, _("the attribute %(name)s is no text") % {"name": name}
    for group in definition.uniques:
        if len(group) > _MOST_INDEXED:
            yield "UniqueConstraints", _("a constraint has at most %(most)s attributes") % {"most": _MOST_INDEXED}
        for name in group:
            if name not in definition.by_name:
                yield "UniqueConstraints", _("there is no attribute %(name)s") % {"name": name}
            elif definition.by_name[name].type in _NOT_INDEXED:
                yield (
                    "UniqueConstraints",
                    _("values of the type %(type)s have no index") % {"type": definition.by_name[name].type},
                )


def _display_format(definition: EntityDefinition) -> Iterator[tuple[str, str]]:
    try:
        parts = template_syntax.parse(definition.display_format)
    except template_syntax.TemplateError as error:
        yield "DisplayFormat", reason(error)
        return
    for part in parts:
        if isinstance(part, str):
            continue
        problem = _property_problem(definition, part.name) if part.sigil else _path_problem(definition, part.path)
        if problem:
            yield "DisplayFormat", problem


def _property_problem(definition: EntityDefinition, name: str) -> str:
    """The problem of `{@code}` or `{$…}`, which is a value of the call and not available in lists; "" for none."""
    known = repositories.for_entity_name(definition.name)
    if known is not None and name.startswith("@") and by_code(known, name[1:]) is not None:
        return ""
    return _("there is no attribute %(name)s") % {"name": name}


def _path_problem(definition: EntityDefinition, path: tuple[str, ...]) -> str:
    """The problem of the path of a placeholder, such as `{Driver.Name}`; "" for none."""
    first, *rest = path
    if first in ("Id", "ExternalId", "ExternalSystem", "ObjectVersion"):
        return ""
    attribute = definition.by_name.get(first)
    inherited = repositories[DOCUMENTS].attributes.get(first) if definition.is_document else None
    if attribute is None and inherited is None:
        problem = None if rest else _calculated_problem(definition.name, first)
        return _("there is no attribute %(name)s") % {"name": first} if problem is None else problem
    current = attribute.target if attribute is not None else inherited.target if inherited is not None else ""
    for place, name in enumerate(rest):
        if current == definition.name:
            return _path_problem(definition, tuple(rest[place:]))
        known = repositories[current].attributes.get(name) if current in repositories else None
        if known is None:
            problem = _calculated_problem(current, name) if place == len(rest) - 1 else None
            if problem is not None:
                return problem
            return _("%(repository)s has no attribute %(name)s") % {"repository": current or first, "name": name}
        current = known.target
    return ""


def _calculated_problem(repository: str, name: str) -> str | None:
    """The problem of a calculated attribute in a display format; None if there is no such attribute."""
    known = repositories.for_entity_name(repository)
    if known is None or calculated_attributes.definition(known, name.removeprefix("#")) is None:
        return None
    try:
        operator = operator_without_sql(known, name.removeprefix("#"))
    except BadRequest as error:
        return error.message
    return _("%(name)s: the database has no %(operator)s") % {"name": name, "operator": operator} if operator else ""
