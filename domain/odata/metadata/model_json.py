"""The model as plain JSON, for tools (spec 02, 2.1).

`standardmodel` is the built-in model: the same on every instance of a version, and public. `currentmodel` is the model
of this instance for one caller: the readable sets, with the instance's custom properties.
"""

from __future__ import annotations

from typing import Any

from domain.model import custom_properties
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.metadata.csdl import SCHEMA
from domain.odata.metadata.discovery import Node, sets_shown
from domain.odata.operations.catalogue import Operation, operations
from domain.odata.operations.standard import VERSION
from foundation.kinds import Kind
from identity.context import CallContext


def model(context: CallContext | None) -> Node:
    """Every set with all members; context None: the standard model."""
    return {
        "version": VERSION,
        "entitySets": [set_node(repository, custom=context is not None) for repository in sets_shown(context)],
        "operations": [operation.name for operation in operations.all() if not operation.bound_to],
        "operationDetails": [operation_node(operation) for operation in operations.all()],
    }


def set_node(repository: Repository[Any], *, custom: bool) -> Node:
    """A set with all members; custom: with the custom properties of the instance."""
    return {
        "name": repository.set_name,
        "repository": repository.name,
        "entityType": f"{SCHEMA}.{repository.entity_type}",
        "baseType": f"{SCHEMA}.{repository.base.entity_type}" if repository.base is not None else None,
        "access": repository.access,
        "isAbstract": repository.abstract,
        "isDocument": repository.is_document,
        "isAggregateRoot": repository.is_root,
        "oldNames": [old.replace(".", "_") for old in repository.old_names],
        "codeMember": repository.code.name if repository.code is not None else None,
        "nameMember": repository.label.name if repository.label is not None else None,
        "displayFormat": repository.display_format,
        "attributes": [_attribute(a) for a in repository.attributes.values() if not a.is_reference],
        "references": [_reference(a) for a in repository.references.values()],
        "collections": [
            {
                "name": child.name,
                "entitySet": repositories[child.repository].set_name,
                "backReference": child.back_reference,
            }
            for child in repository.collections.values()
        ],
        "customProperties": _custom(repository) if custom else [],
        "operations": [operation.name for operation in operations.of(repository)],
    }


def _attribute(attribute: Attribute) -> Node:
    node: Node = {**_member(attribute), "type": _type(attribute)}
    if attribute.max_length is not None:
        node["maxLength"] = attribute.max_length
    if attribute.precision is not None:
        node |= {"precision": attribute.precision, "scale": attribute.scale}
    if attribute.enum is not None:
        node["members"] = dict(attribute.enum.members)
    if attribute.measure:
        node["measure"] = "/".join(attribute.measure)
    return node


def _reference(attribute: Attribute) -> Node:
    target = repositories[attribute.target]
    return {**_member(attribute), "entitySet": target.set_name, "isOwner": attribute.owner}


def _member(attribute: Attribute) -> Node:
    return {
        "name": attribute.name,
        "nullable": attribute.nullable,
        "required": attribute.required,
        "readOnly": attribute.read_only,
        "isDefault": attribute.name != "Id" and not attribute.calculated and not attribute.key_alias,
    }


def _type(attribute: Attribute) -> str:
    if attribute.kind in (Kind.ENUM, Kind.STATE):
        assert attribute.enum is not None
        return f"{SCHEMA}.{attribute.enum.edm_name}"
    return str(attribute.kind.value)


def operation_node(operation: Operation) -> Node:
    """`boundTo`: a repository's dotted name, "documents", "*" for every entity, or "" for unbound ones."""
    return {
        "name": operation.name,
        "boundTo": operation.bound_to,
        "isFunction": operation.is_function,
        "parameters": [
            {"name": parameter.name, "type": parameter.type, "optional": parameter.optional}
            for parameter in operation.parameters
        ],
        "returns": operation.returns,
        "description": operation.description,
    }


def _custom(repository: Repository[Any]) -> list[Node]:
    return [
        {
            "name": known.api_name,
            "code": known.code,
            "propertyType": known.property_type,
            "limitToAllowedValues": known.limited,
            "referencedEntitySet": repositories[known.allowed_from].set_name if known.allowed_from else None,
            "required": known.required,
            "requiredFromState": known.required_from or None,
            "defaultValue": known.default or None,
            "unit": known.unit or None,
            "currency": known.currency or None,
            "searchable": known.searchable,
            "allowedValues": list(known.allowed),
        }
        for known in custom_properties.definitions(repository.name).values()
    ]
