"""$metadata: the model as CSDL 4.01, one tree written as XML and as JSON (OASIS CSDL XML and CSDL JSON 4.01).

The tree is made of plain CSDL JSON, whose order is the order of both documents; the XML writer walks the same tree, so
the two cannot differ. Documents are kept per media type until the model changes (metadata.model_documents).
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import orjson

from domain.model import custom_properties
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.message.message import JSON, XML
from domain.odata.metadata.model_documents import Document, model_document
from domain.odata.operations.catalogue import Operation, operations
from foundation.enums import EnumType
from foundation.kinds import Kind

SCHEMA = "Erp"
CONTAINER = "Container"
#: What operations answer whose members are not a type's.
OPEN_OBJECT = "OpenObject"

_EDMX = "http://docs.oasis-open.org/odata/ns/edmx"
_EDM = "http://docs.oasis-open.org/odata/ns/edm"
_VOCABULARIES = {
    "Org.OData.Core.V1": ("Core", "https://oasis-tcs.github.io/odata-vocabularies/vocabularies/Org.OData.Core.V1"),
    "Org.OData.Capabilities.V1": (
        "Capabilities",
        "https://oasis-tcs.github.io/odata-vocabularies/vocabularies/Org.OData.Capabilities.V1",
    ),
}

Node = dict[str, Any]

_CAPABILITIES: Node = {
    "@Capabilities.ConformanceLevel": "Advanced",
    "@Capabilities.AsynchronousRequestsSupported": False,
    "@Capabilities.BatchContinueOnErrorSupported": True,
    "@Capabilities.CrossJoinSupported": False,
    "@Capabilities.KeyAsSegmentSupported": True,
    "@Capabilities.QuerySegmentSupported": {"Supported": True},
}
_ENUMS_OF_TERMS = {"@Capabilities.ConformanceLevel": "Capabilities.ConformanceLevelType"}


def csdl_document(media_type: str, version: str = "4.01") -> Document:
    """$metadata in the media type (application/xml or application/json).

    Readers of 4.0 refuse a document of 4.01, and nothing in ours is new in 4.01; JSON exists in 4.01 only.
    """

    def write() -> bytes:
        tree = csdl_tree()
        return orjson.dumps(tree) if media_type == JSON else to_xml({**tree, "$Version": version})

    return model_document(f"csdl {media_type} {version}", write)


def csdl_tree(*, custom: bool = True) -> Node:
    """The whole model as CSDL JSON; `custom`: with the instance's custom properties."""
    schema: Node = {"$Alias": "Self"}
    for enum in sorted(_enums(), key=lambda enum: enum.edm_name):
        schema[enum.edm_name] = _enum(enum)
    schema.update(_complex_types())
    for repository in repositories:
        schema[repository.entity_type] = _entity_type(repository, custom=custom)
    for operation in operations.all():
        schema.setdefault(operation.name, []).extend(_overloads(operation))
    schema[CONTAINER] = _container()
    return {
        "$Version": "4.01",
        "$Reference": {
            f"{url}.json": {"$Include": [{"$Namespace": namespace, "$Alias": alias}]}
            for namespace, (alias, url) in _VOCABULARIES.items()
        },
        "$EntityContainer": f"{SCHEMA}.{CONTAINER}",
        SCHEMA: schema,
    }


# --- types --------------------------------------------------------------------------------------------------------


def _enums() -> set[EnumType]:
    return {a.enum for repository in repositories for a in repository.attributes.values() if a.enum is not None}


def _enum(enum: EnumType) -> Node:
    return {"$Kind": "EnumType", **({"$IsFlags": True} if enum.flags else {}), **enum.members}


def _complex_types() -> Node:
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
        OPEN_OBJECT: {"$Kind": "ComplexType", "$OpenType": True},
        **{
            str(operation.returns).rpartition(".")[2]: _result_type(operation)
            for operation in operations.all()
            if operation.members
        },
    }


def _result_type(operation: Operation) -> Node:
    """The complex type that only this operation answers with."""
    return {
        "$Kind": "ComplexType",
        **{
            member.name: {**type_node(member.type), **({"$Nullable": True} if member.optional else {})}
            for member in operation.members
        },
    }


def _entity_type(repository: Repository[Any], *, custom: bool) -> Node:
    base = repository.base
    node: Node = {"$Kind": "EntityType"}
    if base is not None:
        node["$BaseType"] = f"{SCHEMA}.{base.entity_type}"
    if repository.abstract:
        node["$Abstract"] = True
    if base is None:
        # Each has a key of its own: a type above all would have no set, and tools look up the set of every entity type.
        node |= {"$Key": ["Id"], "Id": {"$Type": "Edm.Guid"}}
    inherited = base.attributes if base is not None else {}
    for attribute in repository.attributes.values():
        if attribute.name == "Id" or (
            attribute.name in inherited and inherited[attribute.name].table == attribute.table
        ):
            continue
        if attribute.name in inherited:
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
        }
    for name in custom_properties.definitions(repository.name) if custom else ():
        node[name] = {"$Type": f"{SCHEMA}.CustomPropertyValue", "$Nullable": True}
    return node


def _navigation(repository: Repository[Any], attribute: Attribute) -> Node:
    node: Node = {"$Kind": "NavigationProperty", "$Type": f"{SCHEMA}.{repositories[attribute.target].entity_type}"}
    if attribute.nullable or not attribute.required:
        node["$Nullable"] = True
    if attribute.owner:
        parent = repositories[attribute.target]
        partner = next(
            (
                c.name
                for c in parent.collections.values()
                if c.repository == repository.name and c.back_reference == attribute.name
            ),
            None,
        )
        if partner is not None:
            node["$Partner"] = partner
        node["$OnDelete"] = "Cascade"
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


def _overloads(operation: Operation) -> list[Node]:
    """One overload, or one for each type that it is bound to; its subtypes have it from there."""
    if not operation.bound_to:
        return [_operation(operation, None)]
    roots = [
        repository
        for repository in repositories
        if operation.applies_to(repository) and (repository.base is None or not operation.applies_to(repository.base))
    ]
    return [_operation(operation, repository.entity_type) for repository in roots]


def _operation(operation: Operation, bound_type: str | None) -> Node:
    node: Node = {"$Kind": "Function" if operation.is_function else "Action"}
    parameters: list[Node] = []
    if bound_type is not None:
        node["$IsBound"] = True
        parameters.append({"$Name": "bindingParameter", "$Type": f"{SCHEMA}.{bound_type}"})
    for parameter in operation.parameters:
        entry: Node = {"$Name": parameter.name, **type_node(parameter.type)}
        if parameter.optional:
            entry["$Nullable"] = True
            entry["@Core.OptionalParameter"] = (
                {} if parameter.default is None else {"DefaultValue": _text(parameter.default)}
            )
        parameters.append(entry)
    if parameters:
        node["$Parameter"] = parameters
    if operation.returns is not None:
        node["$ReturnType"] = {**type_node(operation.returns), "$Nullable": True}
    return node


def type_node(name: str) -> Node:
    """A type of an operation's parameter or result as CSDL JSON has it."""
    if name == "json":
        return {"$Type": "Edm.Untyped"}
    if name.startswith("Collection("):
        return {"$Collection": True, **type_node(name[len("Collection(") : -1])}
    return {} if name == "Edm.String" else {"$Type": name}


# --- container ----------------------------------------------------------------------------------------------------


def _container() -> Node:
    node: Node = {"$Kind": "EntityContainer", **_CAPABILITIES}
    for repository in repositories:
        node[repository.set_name] = _entity_set(repository)
    for operation in operations.all():
        if operation.bound_to:
            continue
        kind = "$Function" if operation.is_function else "$Action"
        node[operation.name] = {kind: f"{SCHEMA}.{operation.name}"}
        if operation.is_listed:
            node[operation.name]["$IncludeInServiceDocument"] = True
    return node


def _entity_set(repository: Repository[Any]) -> Node:
    node: Node = {"$Collection": True, "$Type": f"{SCHEMA}.{repository.entity_type}"}
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
    return node


# --- XML ----------------------------------------------------------------------------------------------------------


def to_xml(tree: Node) -> bytes:
    """CSDL JSON as CSDL XML."""
    ElementTree.register_namespace("edmx", _EDMX)
    ElementTree.register_namespace("", _EDM)
    root = ElementTree.Element(f"{{{_EDMX}}}Edmx", {"Version": tree["$Version"]})
    for uri, reference in tree["$Reference"].items():
        element = ElementTree.SubElement(root, f"{{{_EDMX}}}Reference", {"Uri": uri.removesuffix(".json") + ".xml"})
        for include in reference["$Include"]:
            attributes = {"Namespace": include["$Namespace"], "Alias": include["$Alias"]}
            ElementTree.SubElement(element, f"{{{_EDMX}}}Include", attributes)
    services = ElementTree.SubElement(root, f"{{{_EDMX}}}DataServices")
    schema = _edm(services, "Schema", Namespace=SCHEMA, Alias=tree[SCHEMA]["$Alias"])
    for name, node in tree[SCHEMA].items():
        if name.startswith("$"):
            continue
        for entry in node if isinstance(node, list) else [node]:
            _XML_WRITERS[entry["$Kind"]](schema, name, entry)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _edm(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, f"{{{_EDM}}}{tag}", attributes)


def _xml_enum(schema: ElementTree.Element, name: str, node: Node) -> None:
    element = _edm(schema, "EnumType", Name=name, **({"IsFlags": "true"} if node.get("$IsFlags") else {}))
    for member, value in _members(node):
        _edm(element, "Member", Name=member, Value=str(value))


def _xml_structured(schema: ElementTree.Element, name: str, node: Node) -> None:
    attributes = {"Name": name}
    for key, xml_name in (("$BaseType", "BaseType"), ("$Abstract", "Abstract"), ("$OpenType", "OpenType")):
        if key in node:
            attributes[xml_name] = _text(node[key])
    element = _edm(schema, node["$Kind"], **attributes)
    if "$Key" in node:
        key_element = _edm(element, "Key")
        for key in node["$Key"]:
            _edm(key_element, "PropertyRef", Name=key)
    for member, value in _members(node):
        if value.get("$Kind") == "NavigationProperty":
            _xml_navigation(element, member, value)
        else:
            _xml_property(element, member, value)


def _xml_property(parent: ElementTree.Element, name: str, node: Node) -> None:
    element = _edm(parent, "Property", Name=name, Type=_xml_type(node))
    _xml_facets(element, node)
    _xml_annotations(element, node)


def _xml_navigation(parent: ElementTree.Element, name: str, node: Node) -> None:
    attributes = {"Name": name, "Type": _xml_type(node)}
    # CSDL 4.01, 8.3: a collection never says whether it is nullable.
    if not node.get("$Collection"):
        attributes["Nullable"] = _text(node.get("$Nullable", False))
    if "$Partner" in node:
        attributes["Partner"] = node["$Partner"]
    element = _edm(parent, "NavigationProperty", **attributes)
    if "$OnDelete" in node:
        _edm(element, "OnDelete", Action=node["$OnDelete"])


def _xml_facets(element: ElementTree.Element, node: Node) -> None:
    # In JSON "not nullable" is the default, in XML "nullable" is.
    if not node.get("$Nullable", False):
        element.set("Nullable", "false")
    for key in ("$MaxLength", "$Precision", "$Scale"):
        if key in node:
            element.set(key[1:], str(node[key]))


def _xml_operation(schema: ElementTree.Element, name: str, node: Node) -> None:
    attributes = {"Name": name, **({"IsBound": "true"} if node.get("$IsBound") else {})}
    element = _edm(schema, node["$Kind"], **attributes)
    for parameter in node.get("$Parameter", ()):
        entry = _edm(element, "Parameter", Name=parameter["$Name"], Type=_xml_type(parameter))
        if not parameter.get("$Nullable", False):
            entry.set("Nullable", "false")
        _xml_annotations(entry, parameter)
    if "$ReturnType" in node:
        _edm(element, "ReturnType", Type=_xml_type(node["$ReturnType"]))


def _xml_container(schema: ElementTree.Element, name: str, node: Node) -> None:
    container = _edm(schema, "EntityContainer", Name=name)
    for member, value in _members(node):
        if "$Action" in value:
            _edm(container, "ActionImport", Name=member, Action=value["$Action"])
        elif "$Function" in value:
            listed = {"IncludeInServiceDocument": "true"} if value.get("$IncludeInServiceDocument") else {}
            _edm(container, "FunctionImport", Name=member, Function=value["$Function"], **listed)
        else:
            element = _edm(container, "EntitySet", Name=member, EntityType=value["$Type"])
            for path, target in value.get("$NavigationPropertyBinding", {}).items():
                _edm(element, "NavigationPropertyBinding", Path=path, Target=target)
            _xml_annotations(element, value)
    _xml_annotations(container, node)


def _xml_annotations(element: ElementTree.Element, node: Node) -> None:
    for key, value in node.items():
        if not key.startswith("@"):
            continue
        annotation = _edm(element, "Annotation", Term=key[1:])
        if not isinstance(value, dict):
            annotation.set(*_constant(key, value))
        elif value:
            record = _edm(annotation, "Record")
            for name, inner in value.items():
                _edm(record, "PropertyValue", Property=name).set(*_constant("", inner))


def _constant(term: str, value: Any) -> tuple[str, str]:
    """The XML attribute that holds a constant; CSDL JSON writes members of enumerations as plain strings."""
    if isinstance(value, bool):
        return "Bool", _text(value)
    enum = _ENUMS_OF_TERMS.get(term)
    return ("String", value) if enum is None else ("EnumMember", f"{enum}/{value}")


def _members(node: Node) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in node.items() if not name.startswith(("$", "@"))]


def _xml_type(node: Node) -> str:
    name = node.get("$Type", "Edm.String")
    return f"Collection({name})" if node.get("$Collection") else name


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_XML_WRITERS = {
    "EnumType": _xml_enum,
    "ComplexType": _xml_structured,
    "EntityType": _xml_structured,
    "Function": _xml_operation,
    "Action": _xml_operation,
    "EntityContainer": _xml_container,
}

__all__ = ["JSON", "XML", "Document", "csdl_document", "csdl_tree", "to_xml", "type_node"]
