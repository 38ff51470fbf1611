"""Definition of a custom entity as an immutable value."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from domain.entities.custom_entities.enumerations import Member, numbered
from domain.model.former_attributes import FormerAttribute
from domain.model.registry import repositories
from foundation.enums import EnumType

PREFIX = "Custom."
ENTITIES = "Systems.Bpm.CustomEntities"
ATTRIBUTES = "Systems.Bpm.CustomEntityAttributes"
#: Types whose values have a number of decimal places; their columns have the same type.
DECIMALS = frozenset({"Decimal", "Amount", "Quantity"})
DECIMAL_PLACES = 6
ENUMERATION = "Enumeration"
#: PostgreSQL cuts longer names.
_TABLE_LENGTH = 48


@dataclass(frozen=True)
class AttributeDefinition:
    """One attribute: a row of Systems.Bpm.CustomEntityAttributes.

    members, enum_name   of an Enumeration; the name of its type is Custom.Fleet.Cars.Fuel
    former               what it was before changes of the definition, the oldest first
    """

    id: str
    name: str
    type: str
    required: bool
    default: str
    max_length: int | None
    decimal_places: int
    target: str
    measure: str
    indexed: bool
    unique: bool
    members: tuple[Member, ...] = ()
    enum_name: str = ""
    former: tuple[FormerAttribute, ...] = ()

    @cached_property
    def python_name(self) -> str:
        """MaxSpeed → max_speed; the column has this name, for a reference followed by _id."""
        return snake_case(self.name)

    @property
    def column(self) -> str:
        return f"{self.python_name}_id" if self.type == "Reference" else self.python_name

    @cached_property
    def enum_type(self) -> EnumType:
        """The type of an Enumeration; `enum_types` has it once its entity is served."""
        return EnumType(self.enum_name, dict(self.members), is_of_product=False)


@dataclass(frozen=True)
class EntityDefinition:
    """One entity. `owner` is the dotted name of the repository that owns it; "" for a root.

    version       ObjectVersion of the stored definition with which it was built. A later one without other changes is
                  the same definition
    is_document   it is derived from General.Documents.Documents, whose table has the attributes common to all documents
    """

    id: str
    name: str
    singular: str
    owner: str
    code: str
    label: str
    display_format: str
    tracked: bool
    is_document: bool
    uniques: tuple[tuple[str, ...], ...]
    attributes: tuple[AttributeDefinition, ...]
    version: int = field(default=0, compare=False)

    @cached_property
    def table(self) -> str:
        """Name of the table: custom_fleet_cars."""
        full = self.name.lower().replace(".", "_")
        return full if len(full) <= _TABLE_LENGTH else f"{full[: _TABLE_LENGTH - 9]}_{_digest(full)}"

    @property
    def key_column(self) -> str:
        """Column of the primary key."""
        return "document_ptr_id" if self.is_document else "id"

    @property
    def collection(self) -> str:
        """Name of the owner's collection."""
        return self.name.rpartition(".")[2]

    @property
    def type_name(self) -> str:
        """Name of the entity type in $metadata: Custom_Fleet_Car."""
        return f"{self.name.rpartition('.')[0]}.{self.singular}".replace(".", "_")

    @property
    def enum_types(self) -> tuple[EnumType, ...]:
        """The types of its Enumerations."""
        return tuple(attribute.enum_type for attribute in self.attributes if attribute.type == ENUMERATION)

    @property
    def targets(self) -> set[str]:
        """Repositories whose models its model refers to."""
        return {attribute.target for attribute in self.attributes if attribute.target} | ({self.owner} - {""})

    @cached_property
    def by_name(self) -> dict[str, AttributeDefinition]:
        """Attributes by API name."""
        return {attribute.name: attribute for attribute in self.attributes}

    @cached_property
    def unique_groups(self) -> tuple[tuple[str, ...], ...]:
        """Names of the attributes of each unique index."""
        single = tuple((attribute.name,) for attribute in self.attributes if attribute.unique)
        return tuple(dict.fromkeys((*single, *self.uniques)))

    @property
    def indexed(self) -> tuple[str, ...]:
        """Names of the attributes with an index that ends in the key."""
        return tuple(each.name for each in self.attributes if each.indexed or each.type == "Reference")

    def index_name(self, names: Iterable[str], suffix: str) -> str:
        """Name of an index over attributes, the same as long as these keep their names."""
        return f"{self.table[:40]}_{_digest('/'.join((self.table, *names)))}_{suffix}"


def read(entity: Any, attributes: Iterable[Any]) -> EntityDefinition:
    """The definition of a row of CustomEntities and its attributes: model instances, or records of a dataset."""
    former = read_former(getattr(entity, "former_attributes", None))
    return EntityDefinition(
        id=str(entity.id),
        name=entity.name or "",
        singular=entity.singular_name or singular_of((entity.name or "").rpartition(".")[2]),
        owner=entity.owner_repository or "",
        code=entity.code_attribute or "",
        label=entity.name_attribute or "",
        display_format=entity.display_format or "",
        tracked=bool(entity.track_changes),
        is_document=bool(entity.is_document),
        uniques=tuple(
            tuple(name.strip() for name in group.split(","))
            for group in (entity.unique_constraints or "").split(";")
            if group.strip()
        ),
        version=getattr(entity, "object_version", None) or 0,
        attributes=tuple(
            _read_attribute(row, entity.name or "", former.get(str(row.id), ()))
            for row in sorted(attributes, key=lambda row: (row.attribute_no or 0, str(row.id)))
        ),
    )


def read_former(text: str | None) -> dict[str, tuple[FormerAttribute, ...]]:
    """Guid of each changed attribute → what it was (domain.entities.custom_entities.former)."""
    stored: dict[str, list[list[Any]]] = {} if text is None else orjson.loads(text)
    return {id: tuple(FormerAttribute(*each) for each in formers) for id, formers in stored.items()}


def _read_attribute(row: Any, entity: str, former: tuple[FormerAttribute, ...]) -> AttributeDefinition:
    kind = str(row.attribute_type)
    places = DECIMAL_PLACES if row.decimal_places is None else row.decimal_places
    return AttributeDefinition(
        id=str(row.id),
        name=row.name or "",
        type=kind,
        required=bool(row.required),
        default=row.default_value or "",
        max_length=row.max_length if kind in ("Text", "MultilanguageText") else None,
        decimal_places=places if kind in DECIMALS else 0,
        target=(row.target_repository or "") if kind == "Reference" else "",
        measure=(row.measure_reference or "") if kind in ("Amount", "Quantity") else "",
        indexed=bool(row.is_indexed),
        unique=bool(row.is_unique),
        members=members_of(row) if kind == ENUMERATION else (),
        enum_name=f"{entity}.{row.name or ''}" if kind == ENUMERATION else "",
        former=former,
    )


def members_of(row: Any) -> tuple[Member, ...]:
    """The members of an Enumeration; `enumerations.numbered` gives numbers to those without one."""
    # A record of a dataset; rows of the database have numbers.
    before = getattr(row, "original_values", {}).get("EnumMembers")
    return numbered(row.enum_members or "", before or "")


def stored() -> dict[str, EntityDefinition]:
    """Every definition in the database by name."""
    rows: dict[str, list[Any]] = {}
    for row in repositories[ATTRIBUTES].model._default_manager.all():
        rows.setdefault(row.custom_entity_id, []).append(row)
    entities = repositories[ENTITIES].model._default_manager.order_by("name")
    return {entity.name: read(entity, rows.get(entity.pk, ())) for entity in entities}


def snake_case(name: str) -> str:
    """MaxSpeed → max_speed."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def singular_of(plural: str) -> str:
    """Cars → Car, Companies → Company; others unchanged."""
    if plural.endswith("ies") and len(plural) > 4:
        return f"{plural[:-3]}y"
    return plural[:-1] if plural.endswith("s") and not plural.endswith("ss") and len(plural) > 2 else plural


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
