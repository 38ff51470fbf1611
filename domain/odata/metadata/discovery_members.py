"""Attributes and references of the discovery documents, with BaseInfo (spec 14, 14.3).

Every value follows from the declarations. Members of BaseInfo about features that this product does not have (Open
Exchange, summaries and widths of columns, obsolete attributes) have the value for "none".
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from domain.entities.defaults import current_date, current_day, in_thirty_days
from domain.model import calculated_attributes, custom_properties
from domain.model.attributes import Attribute
from domain.model.naming import in_words
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.template_syntax import pick_text
from domain.odata.metadata.csdl import SCHEMA, edm_type
from domain.query.base.bound import Sort, ValueType
from domain.query.bind.calculated_types import operator_without_sql, value_types
from foundation.enums import EnumType
from foundation.fields import utc_now
from foundation.guids import new_guid
from foundation.kinds import Kind
from foundation.languages import active_language

Node = dict[str, Any]

SHOWN = "ShownByDefault"
HIDDEN = "HiddenByDefault"

_CALCULATED = ("CalculatedAttributes", gettext_noop("Calculated attributes"))
_CUSTOM = ("CustomProperties", gettext_noop("Custom properties"))
_SYSTEM = ("SystemAttributes", gettext_noop("System attributes"))

#: LogicalOrder of an attribute is its position times this, so that clients can insert their own between two.
_ORDER_STEP = 10

_TEXT = ("Equals", "GreaterThanOrLessThan", "Like", "EqualsIn")
_ORDERED = ("Equals", "GreaterThanOrLessThan", "EqualsIn")
#: Kind → filter operators that `$filter` supports; `Like` stands for contains, startswith, endswith.
_FILTERS = {
    Kind.GUID: _TEXT,
    Kind.STRING: _TEXT,
    Kind.INT: _ORDERED,
    Kind.BOOL: ("Equals", "EqualsIn"),
    Kind.DECIMAL: _ORDERED,
    Kind.AMOUNT: _ORDERED,
    Kind.QUANTITY: _ORDERED,
    Kind.DATE: _ORDERED,
    Kind.DATETIME: _ORDERED,
    Kind.BINARY: ("Equals", "EqualsIn"),
    Kind.ENUM: _TEXT,
    Kind.STATE: _ORDERED,
    Kind.MULTILANGUAGE: _TEXT,
    Kind.REFERENCE: ("Equals", "Like", "EqualsIn"),
}
#: Sort of a calculated attribute → the same; the others as numbers.
_FILTERS_OF_SORTS = {
    Sort.STRING: _TEXT,
    Sort.TEXTS: _TEXT,
    Sort.GUID: _TEXT,
    Sort.ENUM: _TEXT,
    Sort.BOOL: _FILTERS[Kind.BOOL],
    Sort.REFERENCE: _FILTERS[Kind.REFERENCE],
}
#: Default function → member of DefaultValueType; "None" for a default that the client cannot compute.
_DEFAULTS = {
    new_guid: "NewGuid",
    utc_now: "CurrentDateTimeUtc",
    current_date: "CurrentDate",
    current_day: "CurrentDate",
    in_thirty_days: "None",
}

_SUBTYPES = {
    Kind.AMOUNT: "Decimal_Amount",
    Kind.QUANTITY: "Decimal_Quantity",
    Kind.DATETIME: "DateTime_Utc",
    Kind.MULTILANGUAGE: "String_MultilanguageString",
}


def attribute_nodes(repository: Repository[Any], *, custom: bool) -> list[Node]:
    """The attributes of an entity, in declared order, then with `custom` the instance's custom properties."""
    nodes = [
        _attribute(repository, attribute, order)
        for order, attribute in enumerate(repository.attributes.values(), 1)
        if not attribute.is_reference
    ]
    if custom:
        known = custom_properties.definitions(repository.name).values()
        nodes += [_custom(repository, each, len(repository.attributes) + i) for i, each in enumerate(known, 1)]
        calculated = value_types(repository).items()
        nodes += [_calculated(repository, *each, len(nodes) + i) for i, each in enumerate(calculated, 1)]
    return nodes


def reference_nodes(repository: Repository[Any]) -> list[Node]:
    """The single references, in declared order."""
    return [
        _reference(repository, attribute, order)
        for order, attribute in enumerate(repository.attributes.values(), 1)
        if attribute.is_reference
    ]


def _attribute(repository: Repository[Any], attribute: Attribute, order: int) -> Node:
    category = _CALCULATED if attribute.calculated else _SYSTEM if attribute.system else None
    node: Node = {
        "Name": attribute.name,
        "ColumnName": attribute.column or None,
        "Type": _type(attribute),
        "LocalizedName": in_words(attribute.name),
        "LocalizedDescription": _description(repository, attribute),
        "IsCustomProperty": False,
        "IsCalculatedDataAttribute": False,
        "SupportsAllowedValues": False,
        "LimitToAllowedValues": False,
        "CategoryId": category[0] if category is not None else None,
        "CategoryLocalizedName": _(category[1]) if category is not None else None,
        "IsBlob": attribute.kind is Kind.BINARY,
        "SupportsSet": not _read_only(repository, attribute),
        "ReadOnly": _read_only(repository, attribute),
        "IsPersistent": bool(attribute.column),
        "BaseInfo": base_info(repository, attribute, order),
    }
    if attribute.enum is not None:
        node["enumValues"] = _enum_values(attribute.enum)
    return node


def _enum_values(enum: EnumType) -> list[Node]:
    return [
        {"Value": number, "Name": name, "LocalizedName": in_words(name), "LocalizedDescription": None}
        for name, number in enum.members.items()
    ]


def _reference(repository: Repository[Any], attribute: Attribute, order: int) -> Node:
    target = repositories[attribute.target]
    category = _SYSTEM if attribute.system else None
    return {
        "Name": attribute.name,
        "ColumnName": attribute.column or None,
        "Type": f"{SCHEMA}.{target.entity_type}",
        "LocalizedName": in_words(attribute.name),
        "LocalizedDescription": _description(repository, attribute),
        "ReferencedEntitySet": target.set_name,
        "ReferencedType": f"{SCHEMA}.{target.entity_type}",
        "CategoryId": category[0] if category is not None else None,
        "CategoryLocalizedName": _(category[1]) if category is not None else None,
        "ReadOnly": _read_only(repository, attribute),
        "IsOwnership": attribute.owner,
        "IsFilterable": True,
        "IsAggregateParent": attribute.owner,
        "BaseInfo": base_info(repository, attribute, order),
    }


def _custom(repository: Repository[Any], known: custom_properties.Definition, order: int) -> Node:
    """A custom property. Its value is an object; one column stores all custom properties of an entity."""
    has_list = bool(known.allowed or known.allowed_from)
    return {
        "Name": known.api_name,
        "ColumnName": None,
        "Type": f"{SCHEMA}.CustomPropertyValue",
        "LocalizedName": pick_text(known.name, active_language()) or known.code,
        "LocalizedDescription": pick_text(known.hint, active_language()) or None,
        "IsCustomProperty": True,
        "IsCalculatedDataAttribute": False,
        "SupportsAllowedValues": has_list,
        "LimitToAllowedValues": has_list and known.limited,
        "CategoryId": _CUSTOM[0],
        "CategoryLocalizedName": _(_CUSTOM[1]),
        "IsBlob": known.kind is Kind.BINARY,
        "SupportsSet": repository.access != "ReadOnly",
        "ReadOnly": repository.access == "ReadOnly",
        "IsPersistent": True,
        "BaseInfo": _info(
            repository_name=f"{repository.name}.{known.api_name}",
            order=order,
            nullable=not known.required,
            filters=_FILTERS[known.kind] if known.kind is not Kind.BINARY else _TEXT,
            subtype="Binary_Picture" if known.property_type == "Picture" else "NonSpecific",
        )
        | {
            "Indexed": known.indexed,
            "MaxLength": known.max_length or 0,
            "DateTimeStorageType": {Kind.DATE: "Date", Kind.DATETIME: "DateTime"}.get(known.kind, "None"),
            "DateTimeUtc": known.kind is Kind.DATETIME,
            "IsFilterableReference": known.property_type == "Reference",
            "DefaultValueType": "Constant" if known.default else "None",
            "Description": pick_text(known.hint, active_language()) or None,
            "RequiresUserInput": known.required and not known.default,
            "UnitExpression": known.measure or None,
        },
    }


def _calculated(repository: Repository[Any], name: str, value_type: ValueType, order: int) -> Node:
    """A calculated attribute, which an administrator has defined."""
    definition = calculated_attributes.definitions(repository)[name]
    language = active_language()
    in_sql = operator_without_sql(repository, name) is None
    filters = _FILTERS_OF_SORTS.get(value_type.sort, _ORDERED) if in_sql else ()
    node: Node = {
        "Name": name,
        "ColumnName": None,
        "Type": edm_type(value_type),
        "LocalizedName": pick_text(definition.caption, language) or definition.name,
        "LocalizedDescription": pick_text(definition.hint, language),
        "IsCustomProperty": False,
        "IsCalculatedDataAttribute": True,
        "SupportsAllowedValues": False,
        "LimitToAllowedValues": False,
        "CategoryId": _CALCULATED[0],
        "CategoryLocalizedName": _(_CALCULATED[1]),
        "IsBlob": False,
        "SupportsSet": False,
        "ReadOnly": True,
        "IsPersistent": False,
        "BaseInfo": _info(repository_name=f"{repository.name}.{name}", order=order, nullable=True, filters=filters)
        | {"Orderable": in_sql},
    }
    if value_type.enum is not None:
        node["enumValues"] = _enum_values(value_type.enum)
    return node


# --- BaseInfo -----------------------------------------------------------------------------------------------------


def base_info(repository: Repository[Any], attribute: Attribute, order: int) -> Node:
    """BaseInfo of an attribute or reference, from its declaration."""
    kind = attribute.kind
    base = repository.base
    while base is not None and base.base is not None and attribute.name in base.base.attributes:
        base = base.base
    if base is not None and attribute.name not in base.attributes:
        base = None
    return _info(
        repository_name=f"{repository.name}.{attribute.name}",
        order=order,
        nullable=attribute.nullable,
        filters=() if attribute.secret else _FILTERS[kind],
    ) | {
        "Orderable": not attribute.secret,
        "Indexed": _is_indexed(attribute),
        "MaxLength": attribute.max_length or 0,
        "Precision": attribute.precision or 0,
        "Scale": attribute.scale or 0,
        "DateTimeStorageType": {Kind.DATE: "Date", Kind.DATETIME: "DateTime"}.get(kind, "None"),
        "DateTimeUtc": kind is Kind.DATETIME,
        "IsFilterableReference": attribute.is_reference,
        "SecurityCrucial": attribute.owner,
        "DefaultValueType": _default_type(attribute),
        "BaseTableName": base.entity_name if base is not None else None,
        "BaseColumnName": (attribute.column or None) if base is not None else None,
        "Description": _description(repository, attribute),
        "DisplayType": "InlineBlock" if isinstance(attribute.field, models.TextField) else "Inline",
        "RequiresUserInput": _requires_input(repository, attribute),
        "UIVisibility": _visibility(repository, attribute),
        "Options": "SecuritySensitiveString" if attribute.secret else "None",
        "Subtype": _subtype(repository, attribute),
        "UnitExpression": ".".join(attribute.measure) or None,
    }


def _info(*, repository_name: str, order: int, nullable: bool, filters: tuple[str, ...], subtype: str = "") -> Node:
    """BaseInfo with every member, in the reference platform's order, with the values of an ordinary attribute."""
    return {
        "RepositoryName": repository_name,
        "LogicalOrder": order * _ORDER_STEP,
        "Internal": False,
        "Nullable": nullable,
        "IsDelayLoading": False,
        "Orderable": True,
        "Indexed": False,
        "MaxLength": 0,
        "Precision": 0,
        "Scale": 0,
        "DateTimeStorageType": "None",
        "DateTimeUtc": False,
        "SupportedFilters": ", ".join(filters) or "NotFilterable",
        "IsFilterableReference": False,
        "SecurityCrucial": False,
        "AllowTrackChanges": False,
        "DefaultValueType": "None",
        "BaseTableName": None,
        "BaseColumnName": None,
        "Description": None,
        "DisplayType": "Inline",
        "SummaryType": "None",
        "WidthType": "Default",
        "RequiresUserInput": False,
        "Obsolete": False,
        "DefaultFormat": None,
        "UIVisibility": SHOWN,
        "Options": "None",
        "Subtype": subtype or "NonSpecific",
        "UnitExpression": None,
        "OpenExchangeAttributeName": None,
        "ExportInOpenExchange": False,
    }


def _type(attribute: Attribute) -> str:
    if attribute.enum is not None:
        return f"{SCHEMA}.{attribute.enum.edm_name}"
    return str(attribute.kind.value)


def _description(repository: Repository[Any], attribute: Attribute) -> str | None:
    """The hint of the admin's form, in the active language."""
    hint = repository.admin_options.hints.get(attribute.python_name)
    return str(hint or getattr(attribute.field, "help_text", "")) or None


def _read_only(repository: Repository[Any], attribute: Attribute) -> bool:
    return attribute.read_only or repository.access == "ReadOnly"


def _is_indexed(attribute: Attribute) -> bool:
    """Whether an index of the table begins with the column; a view has no indexes of its own."""
    field = attribute.field
    if field is None:
        return attribute.key_alias
    meta = field.model._meta
    if not meta.managed:
        return False
    firsts = {index.fields[0].lstrip("-") for index in meta.indexes if index.fields}
    firsts |= {rule.fields[0] for rule in meta.constraints if isinstance(rule, models.UniqueConstraint) and rule.fields}
    return field.primary_key or field.unique or bool(getattr(field, "db_index", False)) or field.name in firsts


def _default_type(attribute: Attribute) -> str:
    if attribute.default is None:
        return "None"
    return _DEFAULTS.get(attribute.default, "Constant") if callable(attribute.default) else "Constant"


def _requires_input(repository: Repository[Any], attribute: Attribute) -> bool:
    """Whether the caller must set the value: it is required, and has neither a default nor a late default."""
    if not attribute.required or attribute.default is not None or _read_only(repository, attribute):
        return False
    return not repository.fills_late(attribute)


def _visibility(repository: Repository[Any], attribute: Attribute) -> str:
    """Whether the admin's form shows it."""
    return HIDDEN if attribute.system or attribute.python_name in repository.admin_options.hidden else SHOWN


def _subtype(repository: Repository[Any], attribute: Attribute) -> str:
    if attribute.secret:
        return "String_Password"
    if repository.code is attribute:
        return "String_Code"
    if attribute.python_name in repository.admin_options.repository_names:
        return "String_Repository"
    return _SUBTYPES.get(attribute.kind, "NonSpecific")


__all__ = ["HIDDEN", "SHOWN", "attribute_nodes", "base_info", "reference_nodes"]
