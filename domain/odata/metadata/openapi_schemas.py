"""Types of the model as OpenAPI schemas (OASIS odata-openapi mapping 1.0, 4.6 "Components").

Generated from the CSDL tree, so that the two documents agree. Every entity type has three schemas: for responses (all
members optional, because of $select), `-create` and `-update` for bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from domain.odata.metadata.csdl import CONTAINER, OPEN_OBJECT, SCHEMA

Node = dict[str, Any]

REFERENCE = "odata.reference"
ERROR = "odata.error"
_SCHEMAS = "#/components/schemas/"

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


def schemas_of(known: Node, paths: Node, entity_types: Iterable[str]) -> Node:
    """The schemas that `paths` refer to, for reading one part of the model.

    Entity types have their members if they are, or are bases of, `entity_types`. References are links, never the entity
    in place: tools write examples by following schemas, which connect all types in circles.
    """
    complete: set[str] = set()
    for name in entity_types:
        base: str | None = name
        while base:
            complete |= {base, f"{base}-create", f"{base}-update"}
            base = _base(known[base])
    result: Node = {}
    waiting = [*_references(paths), REFERENCE, ERROR]
    while waiting:
        name = waiting.pop()
        if name in result:
            continue
        is_entity = f"{name.removesuffix('-create').removesuffix('-update')}-create" in known
        if name in complete:
            result[name] = _with_links(known[name])
        elif is_entity:
            result[name] = {"type": "object", "title": name.removeprefix(f"{SCHEMA}.")}
        else:
            result[name] = known[name]
        waiting.extend(_references(result[name]))
    return result


def _with_links(schema: Node) -> Node:
    if "allOf" in schema:
        base, own = schema["allOf"]
        return {"allOf": [base, _with_links(own)]}
    members = {
        name: _link(nullable="nullable" in member) if "anyOf" in member else member
        for name, member in schema["properties"].items()
    }
    return {**schema, "properties": members}


def _link(*, nullable: bool) -> Node:
    return {"allOf": [ref(REFERENCE)], **({"nullable": True} if nullable else {})}


def _base(schema: Node) -> str | None:
    return str(schema["allOf"][0]["$ref"]).removeprefix(_SCHEMAS) if "allOf" in schema else None


def _references(node: Any) -> Iterator[str]:
    """The names of the schemas that a part of the document refers to."""
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name == "$ref" and value.startswith(_SCHEMAS):
                yield value.removeprefix(_SCHEMAS)
            else:
                yield from _references(value)


def ref(name: str) -> Node:
    """A reference to a schema."""
    return {"$ref": f"{_SCHEMAS}{name}"}


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
    # Expanded, it is the entity itself, of the declared type or of one derived from it.
    return {"anyOf": [ref(REFERENCE), ref(node["$Type"])], **nullable}, _link(nullable=bool(nullable))


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


__all__ = ["ERROR", "REFERENCE", "Node", "ref", "schemas", "schemas_of", "type_schema"]
