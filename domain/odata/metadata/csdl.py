"""Builds $metadata: the model as one CSDL tree, written as JSON and as XML (OASIS CSDL JSON and CSDL XML 4.01).

The tree is CSDL JSON; the XML writer walks the same tree, so the two documents cannot differ. They are cached per media
type until the model changes (metadata.model_documents).
"""

from __future__ import annotations

from typing import Any

import orjson

from domain.model import custom_properties
from domain.model.attributes import Attribute, Child
from domain.model.calculated_attributes import definitions
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.template_syntax import pick_text
from domain.odata.message.message import JSON, XML
from domain.odata.metadata.csdl_xml import Node, to_xml, xml_text
from domain.odata.metadata.model_documents import Document, model_document
from domain.odata.operations.catalogue import Operation, operations
from domain.query.base.bound import Sort, ValueType
from domain.query.base.representation import Version
from domain.query.bind.calculated_types import operator_without_sql, value_types
from foundation.enums import EnumType, enum_types
from foundation.kinds import Kind

SCHEMA = "Erp"
CONTAINER = "Container"
#: The open complex type, for results with undeclared members.
OPEN_OBJECT = "OpenObject"
#: Annotation term of an entity set: the repository's name in stored entity names (spec 14.1).
ENTITY_NAME = "EntityName"
#: Terms of custom properties: the type of the values, the set that a Reference refers to, the unit or currency.
PROPERTY_TERMS = ("PropertyType", "ReferencedEntitySet", "Unit", "Currency")

_VOCABULARIES = {
    "Org.OData.Core.V1": ("Core", "https://oasis-tcs.github.io/odata-vocabularies/vocabularies/Org.OData.Core.V1"),
    "Org.OData.Capabilities.V1": (
        "Capabilities",
        "https://oasis-tcs.github.io/odata-vocabularies/vocabularies/Org.OData.Capabilities.V1",
    ),
}

_CAPABILITIES: Node = {
    "@Core.ODataVersions": "4.0,4.01",
    "@Capabilities.ConformanceLevel": "Advanced",
    "@Capabilities.AsynchronousRequestsSupported": False,
    "@Capabilities.BatchContinueOnErrorSupported": True,
    "@Capabilities.CrossJoinSupported": False,
    "@Capabilities.KeyAsSegmentSupported": True,
    "@Capabilities.QuerySegmentSupported": {"Supported": True},
}


def csdl_document(media_type: str, version: Version, *, flat: bool = False) -> Document:
    """$metadata as application/xml or, from 4.01 on, application/json."""

    def write() -> bytes:
        tree = csdl_tree(version, flat=flat)
        return orjson.dumps(tree) if media_type == JSON else to_xml(tree)

    return model_document(f"csdl {media_type} {version}{' flat' if flat else ''}", write)


def csdl_tree(version: Version = "4.01", *, custom: bool = True, flat: bool = False) -> Node:
    """The whole model as CSDL JSON.

    custom   with the instance's custom properties
    flat     each entity type has all its members and no base type, for clients without support of inheritance (UI5)

    A tree of 4.0, for XML only, has an open complex type where 4.01 has Edm.Untyped.
    """
    # Names of types and operations may stand in URLs without the namespace.
    schema: Node = {"$Alias": "Self", "@Core.DefaultNamespace": True}
    for enum in sorted(_enums(), key=lambda enum: enum.edm_name):
        schema[enum.edm_name] = _enum(enum)
    schema.update(_complex_types(version))
    for repository in repositories:
        schema[repository.entity_type] = _entity_type(repository, custom=custom, flat=flat)
    for operation in operations.all():
        schema.setdefault(operation.name, []).extend(_overloads(operation, version, flat=flat))
    schema[ENTITY_NAME] = {"$Kind": "Term", "$AppliesTo": ["EntitySet"]}
    schema.update({term: {"$Kind": "Term", "$AppliesTo": ["Property"]} for term in PROPERTY_TERMS})
    schema[CONTAINER] = _container(custom=custom)
    return {
        "$Version": version,
        "$Reference": {
            f"{url}.json": {"$Include": [{"$Namespace": namespace, "$Alias": alias}]}
            for namespace, (alias, url) in _VOCABULARIES.items()
        },
        "$EntityContainer": f"{SCHEMA}.{CONTAINER}",
        SCHEMA: schema,
    }


# --- types --------------------------------------------------------------------------------------------------------


def _enums() -> set[EnumType]:
    """The enums of attributes and of parameters."""
    parameters = {parameter.type for operation in operations.all() for parameter in operation.parameters}
    of_parameters = {enum for enum in enum_types if f"{SCHEMA}.{enum.edm_name}" in parameters}
    of_attributes = {a.enum for each in repositories for a in each.attributes.values() if a.enum is not None}
    return of_attributes | of_parameters


def _enum(enum: EnumType) -> Node:
    return {"$Kind": "EnumType", **({"$IsFlags": True} if enum.flags else {}), **enum.members}


def _complex_types(version: Version) -> Node:
    decimal = {"$Type": "Edm.Decimal", "$Scale": "variable"}
    code = {"$Nullable": True}
    return {
        "Amount": {"$Kind": "ComplexType", "Value": dict(decimal), "Currency": dict(code)},
        "Quantity": {"$Kind": "ComplexType", "Value": dict(decimal), "Unit": dict(code)},
        "MultilanguageString": {"$Kind": "ComplexType", "$OpenType": True},
        "CustomPropertyValue": {
            "$Kind": "ComplexType",
            "Value": {"$Nullable": True},
            "Description": {"$Type": f"{SCHEMA}.MultilanguageString", "$Nullable": True},
            "ValueId": {"$Type": "Edm.Guid", "$Nullable": True},
        },
        "ValueTextPair": {"$Kind": "ComplexType", "Value": {"$Nullable": True}, "Text": {"$Nullable": True}},
        OPEN_OBJECT: {"$Kind": "ComplexType", "$OpenType": True},
        **{
            str(operation.returns).rpartition(".")[2]: _result_type(operation, version)
            for operation in operations.all()
            if operation.members
        },
    }


def _result_type(operation: Operation, version: Version) -> Node:
    """The complex type of the operation's result."""
    return {
        "$Kind": "ComplexType",
        **{
            member.name: _nullable(type_node(member.type, version))
            if member.optional
            else type_node(member.type, version)
            for member in operation.members
        },
    }


def _entity_type(repository: Repository[Any], *, custom: bool, flat: bool) -> Node:
    base = None if flat else repository.base
    node: Node = {"$Kind": "EntityType"}
    if base is not None:
        node["$BaseType"] = f"{SCHEMA}.{base.entity_type}"
    if repository.abstract:
        node["$Abstract"] = True
    if base is None:
        # Each type has its own key: a common base type would have no set, and tools expect a set for every type.
        node |= {"$Key": ["Id"], "Id": {"$Type": "Edm.Guid"}}
    inherited = base.attributes if base is not None else {}
    for attribute in repository.attributes.values():
        if attribute.name == "Id" or attribute.name in inherited:
            continue
        node[attribute.name] = _navigation(repository, attribute) if attribute.is_reference else _property(attribute)
    inherited_collections = base.collections if base is not None else {}
    for child in repository.collections.values():
        if child.name in inherited_collections:
            continue
        node[child.name] = {
            "$Kind": "NavigationProperty",
            "$Collection": True,
            "$Type": f"{SCHEMA}.{repositories[child.repository].entity_type}",
            "$Partner": child.back_reference,
            # OASIS CSDL 4.01, 8.6.
            **({"$OnDelete": "Cascade"} if _owns(child) else {}),
        }
    for known in custom_properties.definitions(repository.name).values() if custom else ():
        if flat or known.repository == repository.name:
            node[known.api_name] = _custom(known)
    inherited_calculations = value_types(base) if base is not None else {}
    for name, value_type in value_types(repository).items() if custom else ():
        if name not in inherited_calculations:
            node[name] = _calculated(repository, name, value_type)
    return node


def _calculated(repository: Repository[Any], name: str, value_type: ValueType) -> Node:
    """A calculated attribute, which an administrator has defined."""
    edm = edm_type(value_type)
    node: Node = {} if edm == "Edm.String" else {"$Type": edm}
    node["$Nullable"] = True
    if edm == "Edm.DateTimeOffset":
        node["$Precision"] = 6
    if edm == "Edm.Decimal":
        node["$Scale"] = "variable"
    definition = definitions(repository)[name]
    node["@Core.Computed"] = True
    node["@Core.Description"] = pick_text(definition.caption, "EN") or definition.name
    return node


def edm_type(value_type: ValueType) -> str:
    """The type of a calculated attribute in $metadata."""
    if value_type.sort in (Sort.ENUM, Sort.STATE) and value_type.enum is not None:
        return f"{SCHEMA}.{value_type.enum.edm_name}"
    return str(value_type)


def _custom(known: custom_properties.Definition) -> Node:
    """A custom property: the value is always a complex type; annotations give the type inside it."""
    target = repositories[known.allowed_from].set_name if known.allowed_from else ""
    terms = zip(PROPERTY_TERMS, (known.property_type, target, known.unit, known.currency), strict=True)
    return {
        "$Type": f"{SCHEMA}.CustomPropertyValue",
        "$Nullable": True,
        **{f"@{SCHEMA}.{term}": value for term, value in terms if value},
    }


def _owns(child: Child) -> bool:
    """Whether the rows of the collection are deleted with their owner."""
    return repositories[child.repository].references[child.back_reference].owner


def _navigation(repository: Repository[Any], attribute: Attribute) -> Node:
    node: Node = {"$Kind": "NavigationProperty", "$Type": f"{SCHEMA}.{repositories[attribute.target].entity_type}"}
    if attribute.nullable or not attribute.required:
        node["$Nullable"] = True
    if attribute.owner:
        parent = repositories[attribute.target]
        for child in parent.collections.values():
            if child.repository == repository.name and child.back_reference == attribute.name:
                node["$Partner"] = child.name
    return node


def _property(attribute: Attribute) -> Node:
    node: Node = {}
    kind = attribute.kind
    if kind in (Kind.ENUM, Kind.STATE):
        assert attribute.enum is not None
        node["$Type"] = f"{SCHEMA}.{attribute.enum.edm_name}"
    elif kind is not Kind.STRING:
        node["$Type"] = kind.value
    if attribute.nullable or attribute.calculated:
        node["$Nullable"] = True
    if attribute.max_length is not None and kind is Kind.STRING:
        node["$MaxLength"] = attribute.max_length
    if kind is Kind.DATETIME:
        node["$Precision"] = 6
    if kind is Kind.DECIMAL:
        node["$Precision"] = attribute.precision
        node["$Scale"] = attribute.scale
    if attribute.read_only:
        node["@Core.Computed"] = True
    return node


# --- operations ---------------------------------------------------------------------------------------------------


def _overloads(operation: Operation, version: Version, *, flat: bool) -> list[Node]:
    """One overload, or one for each type that the operation is bound to; subtypes inherit it."""
    if not operation.bound_to:
        return [_operation(operation, None, version)]
    roots = [
        repository
        for repository in repositories
        if operation.applies_to(repository)
        and (flat or repository.base is None or not operation.applies_to(repository.base))
    ]
    return [_operation(operation, repository.entity_type, version) for repository in roots]


def _operation(operation: Operation, bound_type: str | None, version: Version) -> Node:
    node: Node = {"$Kind": "Function" if operation.is_function else "Action"}
    parameters: list[Node] = []
    if bound_type is not None:
        node["$IsBound"] = True
        parameters.append({"$Name": "bindingParameter", "$Type": f"{SCHEMA}.{bound_type}"})
    for parameter in operation.parameters:
        entry: Node = {"$Name": parameter.name, **type_node(parameter.type, version)}
        if parameter.optional:
            entry = _nullable(entry)
            default = parameter.default
            entry["@Core.OptionalParameter"] = {} if default is None else {"DefaultValue": xml_text(default)}
        parameters.append(entry)
    if parameters:
        node["$Parameter"] = parameters
    if operation.returns is not None:
        node["$ReturnType"] = _nullable(type_node(operation.returns, version))
    return node


def _nullable(node: Node) -> Node:
    """The type with null. Of a collection, $Nullable would allow null among the items (CSDL JSON 4.01, 7.2.1)."""
    return node if node.get("$Collection") else {**node, "$Nullable": True}


def type_node(name: str, version: Version = "4.01") -> Node:
    """The type of a parameter or result in CSDL JSON."""
    if name.startswith("Collection("):
        return {"$Collection": True, **type_node(name[len("Collection(") : -1], version)}
    if name in ("json", "Edm.Untyped"):
        return {"$Type": untyped(version)}
    return {} if name == "Edm.String" else {"$Type": name}


def untyped(version: Version) -> str:
    """The type of any JSON value: Edm.Untyped or, in 4.0, an open complex type."""
    return f"{SCHEMA}.{OPEN_OBJECT}" if version == "4.0" else "Edm.Untyped"


# --- container ----------------------------------------------------------------------------------------------------


def _container(*, custom: bool) -> Node:
    node: Node = {"$Kind": "EntityContainer", **_CAPABILITIES}
    for repository in repositories:
        node[repository.set_name] = _entity_set(repository, custom=custom)
    for operation in operations.all():
        if operation.bound_to:
            continue
        kind = "$Function" if operation.is_function else "$Action"
        node[operation.name] = {kind: f"{SCHEMA}.{operation.name}"}
        if operation.is_listed:
            node[operation.name]["$IncludeInServiceDocument"] = True
    return node


def _entity_set(repository: Repository[Any], *, custom: bool) -> Node:
    node: Node = {"$Collection": True, "$Type": f"{SCHEMA}.{repository.entity_type}"}
    node[f"@{SCHEMA}.{ENTITY_NAME}"] = repository.entity_name
    bindings = {attribute.name: repositories[attribute.target].set_name for attribute in repository.references.values()}
    bindings.update({child.name: repositories[child.repository].set_name for child in repository.collections.values()})
    if bindings:
        node["$NavigationPropertyBinding"] = dict(sorted(bindings.items()))
    if repository.access == "ReadOnly":
        node["@Capabilities.InsertRestrictions"] = {"Insertable": False}
        node["@Capabilities.UpdateRestrictions"] = {"Updatable": False}
        node["@Capabilities.DeleteRestrictions"] = {"Deletable": False}
    elif repository.abstract:
        node["@Capabilities.InsertRestrictions"] = {"Insertable": False}
    if not repository.search_members:
        node["@Capabilities.SearchRestrictions"] = {"Searchable": False}
    not_queryable = [name for name, attribute in repository.attributes.items() if attribute.secret]
    if custom:
        not_queryable += [name for name in value_types(repository) if operator_without_sql(repository, name)]
    if not_queryable:
        node["@Capabilities.FilterRestrictions"] = {"NonFilterableProperties": not_queryable}
        node["@Capabilities.SortRestrictions"] = {"NonSortableProperties": not_queryable}
    return node


__all__ = ["JSON", "XML", "Document", "csdl_document", "csdl_tree", "type_node", "untyped"]
