"""Systems.Bpm.CustomEntities: entities that administrators define (spec 10, 10.3).

A commit of a definition changes the entity's table in the same database transaction, by a plan
(domain.entities.custom_entities.plans). A plan that loses data needs its token in PlanToken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext, gettext_lazy

from domain.dataset.commit.validation import row_target
from domain.entities.behaviour import find_all, line_numbered
from domain.entities.calculation_uses import refuse_if_used
from domain.entities.custom_entities import checks, definitions, enumerations, plans
from domain.entities.custom_entities.definitions import EntityDefinition
from domain.entities.custom_entities.plans import Plan
from domain.model import model_version
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.enums import EnumType
from foundation.fields import EnumField, ReferenceField
from foundation.models import AggregateRoot, Entity, unique

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork

CUSTOM_ATTRIBUTE_TYPE = EnumType(
    "Systems.Bpm.CustomEntityAttributesRepository.AttributeType",
    {
        "Text": 0,
        "MultilanguageText": 1,
        "Integer": 2,
        "Decimal": 3,
        "Amount": 4,
        "Quantity": 5,
        "Date": 6,
        "DateTime": 7,
        "Boolean": 8,
        "Guid": 9,
        "Picture": 10,
        "Reference": 11,
        "Enumeration": 12,
    },
)


class CustomEntity(AggregateRoot):
    """An entity that an administrator has defined.

    former_attributes   JSON: what its attributes were before changes (domain.entities.custom_entities.former)
    owner_repository    the custom entity that owns it; null for an aggregate root
    unique_constraints  names of attributes: "Code; Brand, Model" are two constraints
    is_document         whether it has states, numbers and the other attributes and operations of documents
    track_changes       whether it has time and user of creation and last change
    plan_token          of the last plan that an administrator confirmed
    """

    name = models.CharField(max_length=100)
    singular_name = models.CharField(max_length=48, null=True, blank=True)
    code_attribute = models.CharField(max_length=48, null=True, blank=True)
    display_format = models.CharField(max_length=254, null=True, blank=True)
    former_attributes = models.TextField(null=True, editable=False)
    is_document = models.BooleanField(default=False)
    name_attribute = models.CharField(max_length=48, null=True, blank=True)
    notes = models.TextField(null=True, blank=True)
    owner_repository = models.CharField(max_length=100, null=True, blank=True)
    plan_token = models.CharField(max_length=16, null=True, blank=True)
    track_changes = models.BooleanField(default=False)
    unique_constraints = models.CharField(max_length=1000, null=True, blank=True)

    class Meta:
        constraints = [unique("custom_entity", "name")]


class CustomEntityAttribute(Entity):
    """An attribute of a custom entity.

    default_value      as in JSON or, for a date, as in a URL: 2026-01-31
    target_repository  of a Reference: the repository of its target
    enum_members       of an Enumeration: "Petrol = 0; Diesel = 1"; a member without a number gets one when it is saved
    measure_reference  of an Amount or Quantity: the attribute that refers to its currency or unit
    """

    custom_entity = ReferenceField("CustomEntity", owner=True)
    attribute_no = models.IntegerField()
    attribute_type = EnumField(CUSTOM_ATTRIBUTE_TYPE, default="Text")
    decimal_places = models.PositiveSmallIntegerField(null=True, blank=True)
    default_value = models.CharField(max_length=1000, null=True, blank=True)
    enum_members = models.CharField(max_length=16_000, null=True, blank=True)
    is_indexed = models.BooleanField(default=False)
    is_unique = models.BooleanField(default=False)
    max_length = models.PositiveIntegerField(null=True, blank=True)
    measure_reference = models.CharField(max_length=48, null=True, blank=True)
    name = models.CharField(max_length=48)
    required = models.BooleanField(default=False)
    target_repository = models.CharField(max_length=128, null=True, blank=True)


def plan_of(entity: Record) -> Plan:
    """The plan of the pending changes of a definition. Raises Refused for an invalid definition."""
    stored = definitions.stored()
    old = next((definition for definition in stored.values() if definition.id == entity.id), None)
    new = None if entity.is_deleted else definitions.read(entity, entity.children("Attributes"))
    others = {name: each for name, each in stored.items() if each.id != entity.id}
    if new is not None:
        _check(entity, old, new, others)
    elif old is not None:
        _check_unused(entity.dataset, old, others)
    if old is not None:
        _check_calculations(entity.dataset, old, new)
    return plans.plan(old, new)


def change_the_table(entity: Record) -> None:
    """Validation: the definition is valid, its plan possible and confirmed; the commit then changes the table."""
    dataset = entity.dataset
    # One definition is changed at a time: definitions refer to each other by names, owners and targets.
    dataset.lock_value(entity.repository, "definitions")
    plan = plan_of(entity)
    for step in plan.steps:
        if step.refusal:
            raise _invalid(step.refusal)
    if plan.losses and entity.plan_token != plan.token:
        lost = " ".join(step.text for step in plan.losses)
        raise errors.Refused(errors.PLAN_NOT_CONFIRMED, lost, plan.token, target="PlanToken")
    dataset.defer_write(("custom entity", entity.id), plan.run)


def number_the_members(attribute: Record) -> None:
    """Late default: give each member of an Enumeration a permanent number."""
    if attribute.attribute_type == definitions.ENUMERATION:
        members = definitions.members_of(attribute)
        text = enumerations.text_of(members)
        # A text with problems stays as written, since the errors quote it.
        if text != (attribute.enum_members or "") and not any(enumerations.problems(members)):
            attribute.enum_members = text


def change_the_table_of_owner(attribute: Record) -> None:
    """Validation: as for the entity, where a request changes one of its attributes alone."""
    if (entity := attribute.parent) is not None and entity.state == "Unchanged":
        change_the_table(entity)


def _check(
    entity: Record, old: EntityDefinition | None, new: EntityDefinition, others: dict[str, EntityDefinition]
) -> None:
    if old is not None:
        for member, before, after in (
            ("Name", old.name, new.name),
            ("SingularName", old.singular, new.singular),
            ("IsDocument", old.is_document, new.is_document),
            ("OwnerRepository", old.owner, new.owner),
            ("TrackChanges", old.tracked, new.tracked),
        ):
            if before != after:
                raise _invalid(gettext("%(name)s cannot be changed; define another entity") % {"name": member}, member)
    found = list(checks.problems(new, others))
    if not found and new.name not in others and (old is None and new.name in repositories):
        found = [("Name", gettext("there is an entity %(name)s already") % {"name": new.name})]
    if found:
        names = {each.id: each.name or "?" for each in new.attributes}
        rows = {each.id: each for each in entity.children("Attributes")}
        details, texts = [], []
        for place, text in found:
            id, _, member = place.rpartition("/")
            row = row_target(rows[id], member) if id else None
            details.append(errors.Detail(errors.CUSTOM_ENTITY_INVALID, (text,), member, row, entity.key))
            texts.append((f"{names[id]}: {text}" if id else text).rstrip("."))
        raise _invalid("; ".join(dict.fromkeys(texts)) + ".", details[0].target, details)


def _check_unused(dataset: UnitOfWork, old: EntityDefinition, others: dict[str, EntityDefinition]) -> None:
    users = sorted(name for name, other in others.items() if old.name in other.targets)
    if old.is_document:
        types = find_all(dataset, "Systems.Documents.DocumentTypes", entity_name=old.name.replace(".", "_"))
        users += [each.describe() for each in types if not each.is_deleted]
    if users:
        raise _invalid(gettext("%(names)s refer to it") % {"names": ", ".join(users)})


def _check_calculations(dataset: UnitOfWork, old: EntityDefinition, new: EntityDefinition | None) -> None:
    """Raise Refused if calculated attributes would lose attributes that they use, or their types or members."""
    after = {} if new is None else new.by_name
    gone = {
        name
        for name, before in old.by_name.items()
        if name not in after
        or after[name].type != before.type
        or not dict(before.members).keys() <= dict(after[name].members).keys()
    }
    if new is None:
        refuse_if_used(dataset, lambda use: use.repository == old.name)
    elif gone:
        refuse_if_used(dataset, lambda use: use.repository == old.name and use.name in gone)


def _invalid(why: str, target: str | None = None, details: Sequence[errors.Detail] = ()) -> errors.Refused:
    return errors.Refused(errors.CUSTOM_ENTITY_INVALID, why, target=target, details=details)


@repositories.register
class CustomEntities(Repository[CustomEntity]):
    name = "Systems.Bpm.CustomEntities"
    base_table = "Sys_Custom_Entities"
    category = "Settings"
    cache_version = model_version.CACHE_VERSION
    code_member = "name"
    name_member = "name"
    display_format = "{Name}"
    unpublished = frozenset({"former_attributes"})
    # A definition creates a repository that every role with `*` may use.
    decides_access = True
    children = (Child("Attributes", "Systems.Bpm.CustomEntityAttributes"),)
    validations = (change_the_table,)
    admin = AdminOptions(
        open_collections=frozenset({"Attributes"}),
        repository_names=frozenset({"owner_repository"}),
        hints={
            "name": gettext_lazy("Custom., a namespace and the name in the plural, for example Custom.Fleet.Cars."),
            "singular_name": gettext_lazy("The name of one of them, for example Car. Empty: the name without s."),
            "code_attribute": gettext_lazy("The text attribute that identifies one of them, for example Code."),
            "name_attribute": gettext_lazy("The text attribute that names one of them, for example Name."),
            "owner_repository": gettext_lazy("The custom entity whose lines these are. Empty: they stand alone."),
            "unique_constraints": gettext_lazy("Attributes with unique values together: Code; Brand, Model"),
            "is_document": gettext_lazy("With number, date, states and the other attributes of documents."),
            "display_format": gettext_lazy("How one of them is shown, for example {Code} {Name}."),
            "track_changes": gettext_lazy("With time and user of creation and last change."),
        },
        labels={"track_changes": gettext_lazy("Stamp changes")},
        # The page sends the token after the administrator's confirmation.
        hidden=frozenset({"plan_token"}),
    )


@repositories.register
class CustomEntityAttributes(Repository[CustomEntityAttribute]):
    name = "Systems.Bpm.CustomEntityAttributes"
    base_table = "Sys_Custom_Entity_Attributes"
    name_member = "name"
    display_format = "{AttributeNo}. {Name}"
    decides_access = True
    filled_late = frozenset({"attribute_no"})
    late_defaults = (line_numbered("attribute_no", "Attributes"), number_the_members)
    validations = (change_the_table_of_owner,)
    admin = AdminOptions(
        repository_names=frozenset({"target_repository"}),
        hints={
            "enum_members": gettext_lazy(
                "For example Petrol; Diesel. Each gets a number, by which it can be renamed: Petrol = 0; Gasoil = 1."
            ),
        },
        labels={
            "attribute_no": gettext_lazy("No."),
            "attribute_type": gettext_lazy("Type"),
            "default_value": gettext_lazy("Default"),
            "enum_members": gettext_lazy("Members"),
            "is_indexed": gettext_lazy("Indexed"),
            "is_unique": gettext_lazy("Unique"),
            "measure_reference": gettext_lazy("Currency or unit from"),
            "target_repository": gettext_lazy("Refers to"),
        },
    )
