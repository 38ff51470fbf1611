"""Types of the model as OpenAPI schemas (OASIS odata-openapi mapping 1.0, 4.6 "Components").

Generated from the CSDL tree, so that the two documents agree. Every entity type has three schemas: for responses (all
members optional, because of $select), `-create` and `-update` for bodies.
"""

from __future__ import annotations

from typing import Any

from domain.odata.metadata.csdl import CONTAINER, OPEN_OBJECT, SCHEMA

Node = dict[str, Any]

REFERENCE = "odata.reference"
ERROR = "odata.error"

_PRIMITIVES: dict[str, Node] = {
    "Edm.String": {"type": "string"},
    "Edm.Guid": {"type": "string", "format": "uuid"},
    "Edm.Int32": {"type": "integer", "format": "int32"},
    "Edm.Boolean": {"type": "boolean"},
    "Edm.Decimal": {"type": "number", "format": "decimal"},
    "Edm.Date": {"type": "string", "format": "date"},
    "Edm.DateTimeOffset": {"type": "string", "format": "date-time"},
    "Edm.Binary": {"type": "string", "format": "base64url"},
    "Edm.Untyped": {},
    "Edm.Int64": {"type": "integer", "format": "int64"},
}


def schemas(tree: Node) -> Node:
    """components/schemas, by name, in the order of the CSDL tree."""
    result: Node = {}
    for name, node in tree[SCHEMA].items():
        kind = node.get("$Kind") if isinstance(node, dict) else None
        if kind == "EnumType":
            result[f"{SCHEMA}.{name}"] = {"type": "string", "title": name, "enum": _own(node)}
        elif kind == "ComplexType":
            result[f"{SCHEMA}.{name}"] = _complex(name, node)
        elif kind == "EntityType" and name != CONTAINER:
            result.update(_entity(name, node))
    result[REFERENCE] = {
        "type": "object",
        "description": "An entity by its address.",
        "properties": {"@odata.id": {"type": "string", "example": "Set(00000000-0000-0000-0000-000000000000)"}},
    }
    result[ERROR] = _error()
    return result


def ref(name: str) -> Node:
    """A reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def type_schema(node: Node) -> Node:
    """The schema of a CSDL type expression: a property, parameter or return type."""
    name = node.get("$Type", "Edm.String")
    schema = dict(_PRIMITIVES[name]) if name in _PRIMITIVES else ref(name)
    if node.get("$Collection"):
        return {"type": "array", "items": schema}
    if "$MaxLength" in node:
        schema["maxLength"] = node["$MaxLength"]
    if node.get("$Nullable") and schema:
        schema = {"allOf": [schema], "nullable": True} if "$ref" in schema else {**schema, "nullable": True}
    return schema


def _own(node: Node) -> list[str]:
    return [name for name in node if not name.startswith(("$", "@"))]


def _complex(name: str, node: Node) -> Node:
    schema: Node = {
        "type": "object",
        "title": name,
        "properties": {member: type_schema(node[member]) for member in _own(node)},
    }
    if node.get("$OpenType"):
        schema["additionalProperties"] = True if name == OPEN_OBJECT else {"type": "string"}
    return schema


def _entity(name: str, node: Node) -> Node:
    base = node.get("$BaseType")
    answered: Node = {}
    written: Node = {}
    for member in _own(node):
        value = node[member]
        if value.get("$Kind") == "NavigationProperty":
            answered[member], written[member] = _navigation(value)
        else:
            answered[member] = type_schema(value)
            if not value.get("@Core.Computed"):
                written[member] = answered[member]
    return {
        f"{SCHEMA}.{name}{suffix}": _with_base(
            {"type": "object", "title": f"{name}{suffix}", "properties": members}, f"{base}{suffix}" if base else ""
        )
        for suffix, members in (("", answered), ("-create", written), ("-update", written))
    }


def _navigation(node: Node) -> tuple[Node, Node]:
    """(schema in responses, schema in bodies)."""
    if node.get("$Collection"):
        return (
            {"type": "array", "items": ref(node["$Type"])},
            {"type": "array", "items": ref(f"{node['$Type']}-create")},
        )
    nullable = {"nullable": True} if node.get("$Nullable") else {}
    link = {"allOf": [ref(REFERENCE)], **nullable}
    # Expanded, it is the entity itself, of the declared type or of one derived from it.
    return {"anyOf": [ref(REFERENCE), ref(node["$Type"])], **nullable}, link


def _with_base(schema: Node, base: str) -> Node:
    return {"allOf": [ref(base), schema]} if base else schema


def _error() -> Node:
    text: Node = {"type": "string"}
    return {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "code", "type", "info"],
                "properties": {
                    "message": {**text, "description": "For people, in the caller's language."},
                    "code": {"type": "integer", "description": "From the catalogue of error codes."},
                    "type": {**text, "description": "The error's stable name."},
                    "info": {**text, "description": "Diagnostics, or the id under which the log has it."},
                    "messageFormat": text,
                    "parameters": {"type": "array", "items": text},
                    "target": text,
                    "details": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["code", "message"],
                            "properties": {"code": {"type": "integer"}, "message": text, "target": text},
                        },
                    },
                },
            }
        },
    }


__all__ = ["ERROR", "REFERENCE", "Node", "ref", "schemas", "type_schema"]
