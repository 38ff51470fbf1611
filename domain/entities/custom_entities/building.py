"""Makes the Django model and the repository of a definition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from django.db import models

from domain.entities.creation_and_update import TRACKED_ATTRIBUTES, Tracked, track_creation_and_update
from domain.entities.custom_entities.definitions import (
    AttributeDefinition,
    EntityDefinition,
)
from domain.entities.document_editing import check_parent_editable
from domain.entities.general_documents import Document, DocumentRepository
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Attribute, Child
from domain.model.members import stored
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import parse_input
from foundation.fields import (
    AmountField,
    EnumField,
    ExactDecimalField,
    GuidField,
    MultilanguageField,
    QuantityField,
    ReferenceField,
)
from foundation.kinds import Kind
from foundation.models import AggregateRoot, Entity

APP = "custom"
#: Python name of the reference to the owner.
OWNER = "owner"
#: Python name of the link from a document to its row among all documents.
_DOCUMENT = "document_ptr"
#: Digits of numbers, as shipped attributes have.
_DIGITS = 18
_KINDS: Mapping[str, Kind] = {
    "Text": Kind.STRING,
    "MultilanguageText": Kind.MULTILANGUAGE,
    "Integer": Kind.INT,
    "Decimal": Kind.DECIMAL,
    "Amount": Kind.AMOUNT,
    "Quantity": Kind.QUANTITY,
    "Date": Kind.DATE,
    "DateTime": Kind.DATETIME,
    "Boolean": Kind.BOOL,
    "Guid": Kind.GUID,
    "Picture": Kind.BINARY,
    "Reference": Kind.REFERENCE,
    "Enumeration": Kind.ENUM,
}


def base_of(definition: EntityDefinition) -> tuple[type[models.Model], ...]:
    """The abstract models of foundation and domain that the entity's model is derived from."""
    if definition.is_document:
        return (Document,)
    base: type[models.Model] = Entity if definition.owner else AggregateRoot
    return (Tracked, base) if definition.tracked else (base,)


def build(definition: EntityDefinition, all_of_them: Mapping[str, EntityDefinition]) -> Repository[Any]:
    """The repository of a definition. Registers its model with Django; an earlier one must be unregistered first.

    Models refer to each other by name, so that they may be made in any order.
    """

    def model_of(name: str) -> Any:
        return f"{APP}.{all_of_them[name].singular}" if name in all_of_them else repositories[name].model

    children = [other for other in all_of_them.values() if other.owner == definition.name]
    constraints = [
        models.UniqueConstraint(
            fields=[definition.by_name[name].python_name for name in names], name=definition.index_name(names, "key")
        )
        for names in definition.unique_groups
    ]
    options = {"constraints": constraints}
    is_part = _is_part_of_document(definition, all_of_them)
    return _declare(definition, make_model(definition, options, model_of), children, is_part_of_document=is_part)


def _is_part_of_document(definition: EntityDefinition, all_of_them: Mapping[str, EntityDefinition]) -> bool:
    owner = all_of_them.get(definition.owner)
    return owner is not None and (owner.is_document or _is_part_of_document(owner, all_of_them))


def make_model(
    definition: EntityDefinition, options: Mapping[str, Any], model_of: Callable[[str], Any]
) -> type[models.Model]:
    """A model with the fields of the definition. model_of: repository's name → model, or the model's name."""
    fields: dict[str, Any] = {each.python_name: field_of(each, model_of) for each in definition.attributes}
    if definition.owner:
        fields[OWNER] = ReferenceField(model_of(definition.owner), owner=True)
    if definition.is_document:
        # Without an accessor: Document must not get a member that is named after a custom entity.
        link = models.OneToOneField(Document, on_delete=models.CASCADE, parent_link=True, related_name="+")
        fields = {_DOCUMENT: link, **fields}
    meta = type("Meta", (), {"app_label": APP, "db_table": definition.table, **options})
    return type(definition.singular, base_of(definition), {"__module__": __name__, "Meta": meta, **fields})


def _declare(
    definition: EntityDefinition,
    model: type[models.Model],
    children: Collection[EntityDefinition],
    *,
    is_part_of_document: bool,
) -> Repository[Any]:
    by_name = definition.by_name
    members: dict[str, Any] = {
        "__module__": __name__,
        "name": definition.name,
        "model": model,
        "api_names": {each.python_name: each.name for each in definition.attributes},
        "children": tuple(Child(each.collection, each.name) for each in sorted(children, key=lambda each: each.name)),
        "admin": AdminOptions(text_format=definition.display_format, columns=tuple(_columns(definition))),
        "definition_version": definition.version,
        "former_attributes": {each.name: each.former for each in definition.attributes if each.former},
    }
    if definition.code in by_name:
        members["code_member"] = by_name[definition.code].python_name
    if definition.label in by_name:
        members["name_member"] = by_name[definition.label].python_name
    if definition.display_format:
        members["display_format"] = definition.display_format
    if definition.tracked:
        members |= {"read_only": TRACKED_ATTRIBUTES, "late_defaults": (track_creation_and_update,)}
    if is_part_of_document:
        members["validations"] = (check_parent_editable,)
    base = DocumentRepository if definition.is_document else Repository
    declaration: Any = type(f"{definition.singular}Repository", (base,), members)
    result: Repository[Any] = declaration()
    return result


def _columns(definition: EntityDefinition) -> Iterator[str]:
    """Columns of the list: the attributes in their order, except pictures, guids and texts of unlimited length.

    With only a code or only a name, the display text equals it and replaces its column.
    """
    named = {definition.code, definition.label}
    for each in definition.attributes:
        if "" in named and each.name in named:
            continue
        if each.type not in ("Picture", "Guid") and (each.type != "Text" or each.max_length):
            yield each.python_name


def field_of(attribute: AttributeDefinition, model_of: Callable[[str], Any]) -> models.Field[Any, Any]:
    """The model field of an attribute. Raises BadRequest for a default that its type does not accept."""
    options: dict[str, Any] = {"null": not attribute.required, "blank": not attribute.required}
    if attribute.default:
        default = default_of(attribute)
        # A default that forms copy must not be shared.
        options["default"] = (lambda: dict(default)) if isinstance(default, dict) else default
    match attribute.type:
        case "Reference":
            return ReferenceField(model_of(attribute.target), **options)
        case "Amount":
            return AmountField(_DIGITS, attribute.decimal_places, currency=attribute.measure, **options)
        case "Quantity":
            return QuantityField(_DIGITS, attribute.decimal_places, unit=attribute.measure, **options)
    return _plain_field(attribute, options)


def _plain_field(attribute: AttributeDefinition, options: dict[str, Any]) -> models.Field[Any, Any]:
    match attribute.type:
        case "Text":
            length = attribute.max_length
            return models.CharField(max_length=length, **options) if length else models.TextField(**options)
        case "MultilanguageText":
            return MultilanguageField(max_length=attribute.max_length, **options)
        case "Integer":
            return models.IntegerField(**options)
        case "Decimal":
            return ExactDecimalField(_DIGITS, attribute.decimal_places, **options)
        case "Date":
            return models.DateField(**options)
        case "DateTime":
            return models.DateTimeField(**options)
        case "Boolean":
            return models.BooleanField(**options)
        case "Guid":
            return GuidField(**options)
        case "Picture":
            return models.BinaryField(editable=True, **options)
        case "Enumeration":
            return EnumField(attribute.enum_type, **options)
    raise LookupError(f"there is no attribute type {attribute.type}")


def default_of(attribute: AttributeDefinition) -> Any:
    """The default in canonical form. Raises BadRequest if the text is no value of the type."""
    bare = _plain_field(_without_default(attribute), {"null": True})
    bare.set_attributes_from_name(attribute.python_name)
    bare.model = Entity
    described: Attribute = stored(
        bare, _KINDS[attribute.type], attribute.name, target="", measure=(), read_only=False, calculated=False
    )
    return parse_input(described, attribute.default)


def _without_default(attribute: AttributeDefinition) -> AttributeDefinition:
    kind = "Decimal" if attribute.type in ("Amount", "Quantity") else attribute.type
    return AttributeDefinition(**{**vars_of(attribute), "type": kind, "default": ""})


def vars_of(attribute: AttributeDefinition) -> dict[str, Any]:
    """The declared members of a definition, without cached ones."""
    return {name: getattr(attribute, name) for name in AttributeDefinition.__dataclass_fields__}
