"""Writes a CSDL JSON tree as CSDL XML (OASIS CSDL XML 4.01)."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

Node = dict[str, Any]

_EDMX = "http://docs.oasis-open.org/odata/ns/edmx"
_EDM = "http://docs.oasis-open.org/odata/ns/edm"
_ENUMS_OF_TERMS = {"@Capabilities.ConformanceLevel": "Capabilities.ConformanceLevelType"}


def to_xml(tree: Node) -> bytes:
    """The CSDL JSON tree as a CSDL XML document."""
    ElementTree.register_namespace("edmx", _EDMX)
    ElementTree.register_namespace("", _EDM)
    root = ElementTree.Element(f"{{{_EDMX}}}Edmx", {"Version": tree["$Version"]})
    for uri, reference in tree["$Reference"].items():
        element = ElementTree.SubElement(root, f"{{{_EDMX}}}Reference", {"Uri": uri.removesuffix(".json") + ".xml"})
        for include in reference["$Include"]:
            attributes = {"Namespace": include["$Namespace"], "Alias": include["$Alias"]}
            ElementTree.SubElement(element, f"{{{_EDMX}}}Include", attributes)
    services = ElementTree.SubElement(root, f"{{{_EDMX}}}DataServices")
    namespace = tree["$EntityContainer"].rpartition(".")[0]
    schema = _edm(services, "Schema", Namespace=namespace, Alias=tree[namespace]["$Alias"])
    for name, node in _members(tree[namespace]):
        for entry in node if isinstance(node, list) else [node]:
            _XML_WRITERS[entry["$Kind"]](schema, name, entry)
    _xml_annotations(schema, tree[namespace])
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
            attributes[xml_name] = xml_text(node[key])
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
    # A collection-valued navigation property has no Nullable attribute (CSDL 4.01, 8.3).
    if not node.get("$Collection"):
        attributes["Nullable"] = xml_text(node.get("$Nullable", False))
    if "$Partner" in node:
        attributes["Partner"] = node["$Partner"]
    element = _edm(parent, "NavigationProperty", **attributes)
    if "$OnDelete" in node:
        _edm(element, "OnDelete", Action=node["$OnDelete"])


def _xml_facets(element: ElementTree.Element, node: Node) -> None:
    # In JSON "not nullable" is the default, in XML "nullable".
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


def _xml_term(schema: ElementTree.Element, name: str, node: Node) -> None:
    _edm(schema, "Term", Name=name, Type=_xml_type(node), Nullable="false", AppliesTo=" ".join(node["$AppliesTo"]))


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
                entry = _edm(record, "PropertyValue", Property=name)
                if not isinstance(inner, list):
                    entry.set(*_constant("", inner))
                    continue
                paths = _edm(entry, "Collection")
                for path in inner:
                    _edm(paths, "PropertyPath").text = path


def _constant(term: str, value: Any) -> tuple[str, str]:
    """The XML attribute of a constant; CSDL JSON writes members of enumerations as plain strings."""
    if isinstance(value, bool):
        return "Bool", xml_text(value)
    enum = _ENUMS_OF_TERMS.get(term)
    return ("String", value) if enum is None else ("EnumMember", f"{enum}/{value}")


def _members(node: Node) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in node.items() if not name.startswith(("$", "@"))]


def _xml_type(node: Node) -> str:
    name = node.get("$Type", "Edm.String")
    return f"Collection({name})" if node.get("$Collection") else name


def xml_text(value: Any) -> str:
    """A constant in the syntax of XML and URLs."""
    return str(value).lower() if isinstance(value, bool) else str(value)


_XML_WRITERS = {
    "EnumType": _xml_enum,
    "ComplexType": _xml_structured,
    "EntityType": _xml_structured,
    "Function": _xml_operation,
    "Action": _xml_operation,
    "Term": _xml_term,
    "EntityContainer": _xml_container,
}

__all__ = ["Node", "to_xml", "xml_text"]
