"""/api/openapi.json: the model as an OpenAPI 3.0 document (OASIS odata-openapi mapping 1.0; spec 02, 2.1).

It describes sets, entities, owned collections and operations. It leaves out paths over references, which would multiply
its size; clients that follow references read $metadata anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import orjson

from domain.model.custom_properties import definitions
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.metadata.csdl import OPEN_OBJECT, SCHEMA, csdl_tree, type_node
from domain.odata.metadata.model_documents import Document, model_document
from domain.odata.metadata.openapi_schemas import ERROR, REFERENCE, Node, ref, schemas, schemas_of, type_schema
from domain.odata.operations.catalogue import Operation, operations
from domain.odata.operations.standard import VERSION
from domain.query.bind.calculated_types import value_types
from foundation import errors

SERVICE_ROOT = "/api/domain/odata"
_TAG_OF_UNBOUND = "Operations"
_ERROR = {"4XX": {"$ref": "#/components/responses/error"}, "5XX": {"$ref": "#/components/responses/error"}}
_GUID: Node = {"type": "string", "format": "uuid"}
_KEY: Node = {"name": "Id", "in": "path", "required": True, "description": "key: Id", "schema": _GUID}
_NUMBER: Node = {"type": "integer", "minimum": 0}
_SHARED_PARAMETERS: Node = {
    "top": {"name": "$top", "in": "query", "description": "How many to show", "schema": _NUMBER},
    "skip": {"name": "$skip", "in": "query", "description": "How many to leave out", "schema": _NUMBER},
    "count": {"name": "$count", "in": "query", "description": "Count all that match", "schema": {"type": "boolean"}},
    "search": {"name": "$search", "in": "query", "description": "Words to search for", "schema": {"type": "string"}},
    "filter": {"name": "$filter", "in": "query", "description": "What to show", "schema": {"type": "string"}},
    "ifMatch": {"name": "If-Match", "in": "header", "description": "ETag", "schema": {"type": "string"}},
    "ifNoneMatch": {"name": "If-None-Match", "in": "header", "description": "ETag", "schema": {"type": "string"}},
}


def openapi_namespaces() -> list[str]:
    """The parts of the document: the namespaces of repositories, and "Operations" for the unbound operations."""
    return [*sorted({repository.namespace for repository in repositories}), _TAG_OF_UNBOUND]


def openapi_document(*, custom: bool, namespace: str = "") -> Document:
    """The cached document, or the part of it for a namespace; `custom`: with the instance's custom properties.

    Raises BadRequest (UnknownNamespace) for a namespace that the model does not have.
    """
    # Checked first, so that the cache has only known names as keys.
    if namespace and namespace not in openapi_namespaces():
        raise errors.BadRequest(errors.UNKNOWN_NAMESPACE, namespace, near(namespace, openapi_namespaces()))
    write = partial(openapi_tree, custom=custom, namespace=namespace)
    return model_document(f"openapi {custom} {namespace}", lambda: orjson.dumps(write()))


def openapi_tree(*, custom: bool = True, namespace: str = "") -> Node:
    """The document, or the part of it for a namespace: its sets, and the schemas that they need.

    The types of a part are as openapi_schemas.schemas_of says.
    """
    shown = [repository for repository in repositories if namespace in ("", repository.namespace)]
    unbound = namespace in ("", _TAG_OF_UNBOUND)
    paths = dict(_paths(shown, unbound=unbound, custom=custom))
    types = schemas(csdl_tree(custom=custom))
    if namespace:
        types = schemas_of(types, paths, [f"{SCHEMA}.{repository.entity_type}" for repository in shown])
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Domain API",
            "version": VERSION,
            "description": "The entities and operations of this instance by OData 4.01.",
        },
        "servers": [{"url": SERVICE_ROOT}],
        "tags": [{"name": repository.set_name} for repository in shown] + [{"name": _TAG_OF_UNBOUND}] * unbound,
        "paths": paths,
        "components": {
            "schemas": types,
            "parameters": _SHARED_PARAMETERS,
            "responses": {
                "error": {
                    "description": "Error",
                    "content": {"application/json": {"schema": ref(ERROR)}},
                }
            },
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _paths(shown: Iterable[Repository[Any]], *, unbound: bool, custom: bool) -> Iterator[tuple[str, Node]]:
    for repository in shown:
        yield from repository_paths(repository, custom=custom)
    if not unbound:
        return
    for operation in operations.all():
        if not operation.bound_to:
            yield f"/{operation.name}", _operation_item(operation, None)
    yield "/$batch", {"post": _batch()}


def repository_paths(repository: Repository[Any], *, custom: bool) -> Iterator[tuple[str, Node]]:
    """(path, path item) of all paths of the set."""
    writable = repository.access == "ReadWrite"
    root = f"/{repository.set_name}"
    item: Node = {"get": _get_collection(repository, repository, "", custom=custom)}
    if writable and not repository.abstract:
        item["post"] = _post(repository, repository, "")
    yield root, item
    entity: Node = {"parameters": [_KEY], "get": _get_entity(repository, custom=custom)}
    if writable:
        entity |= {"patch": _patch(repository), "delete": _delete(repository)}
    yield f"{root}({{Id}})", entity
    for child in repository.collections.values():
        owned = repositories[child.repository]
        item = {"parameters": [_KEY], "get": _get_collection(repository, owned, child.name, custom=custom)}
        if owned.access == "ReadWrite" and not owned.abstract:
            item["post"] = _post(repository, owned, child.name)
        yield f"{root}({{Id}})/{child.name}", item
    for operation in operations.of(repository):
        yield f"{root}({{Id}})/{operation.name}", _operation_item(operation, repository)


# --- sets and entities --------------------------------------------------------------------------------------------


def _shared(*names: str) -> list[Node]:
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


def _names(option: str, description: str, names: list[str]) -> Node:
    """A list of names, comma-separated (mapping, 4.5.2.3)."""
    schema: Node = {"type": "array", "uniqueItems": True, "items": {"type": "string", "enum": names}}
    return {"name": option, "in": "query", "description": description, "explode": False, "schema": schema}


def _selection(repository: Repository[Any], *, custom: bool) -> list[Node]:
    members = [*repository.attributes]
    if custom:
        members += [*definitions(repository.name), *value_types(repository)]
    expandable = [*repository.references, *repository.collections]
    result = [_names("$select", "Properties to show", members)]
    return result + ([_names("$expand", "Entities to show in place", expandable)] if expandable else [])


def _get_collection(tag: Repository[Any], shown: Repository[Any], collection: str, *, custom: bool) -> Node:
    sortable = [name for name, attribute in shown.attributes.items() if not attribute.is_reference]
    orders = [text for name in sortable for text in (name, f"{name} desc")]
    many = {
        "type": "object",
        "title": f"Collection of {shown.entity_type}",
        "properties": {
            "@odata.count": {"type": "integer"},
            "@odata.nextLink": {"type": "string"},
            "value": {"type": "array", "items": ref(f"{SCHEMA}.{shown.entity_type}")},
        },
    }
    return {
        "summary": f"Get {collection or 'entities from ' + shown.set_name}",
        "tags": [tag.set_name],
        "parameters": [
            *_shared("top", "skip", "search", "filter", "count"),
            _names("$orderby", "Order of what is shown", orders),
            *_selection(shown, custom=custom),
        ],
        "responses": {"200": _json("Retrieved", many), **_ERROR},
    }


def _get_entity(repository: Repository[Any], *, custom: bool) -> Node:
    return {
        "summary": f"Get an entity from {repository.set_name} by key",
        "tags": [repository.set_name],
        "parameters": [*_shared("ifNoneMatch"), *_selection(repository, custom=custom)],
        "responses": {
            "200": _json("Retrieved", ref(f"{SCHEMA}.{repository.entity_type}")),
            "304": {"description": "Not modified"},
            **_ERROR,
        },
    }


def _post(tag: Repository[Any], created: Repository[Any], collection: str) -> Node:
    return {
        "summary": f"Add an entity to {collection or created.set_name}",
        "tags": [tag.set_name],
        "requestBody": _body(ref(f"{SCHEMA}.{created.entity_type}-create")),
        "responses": {
            "201": _json("Created", ref(f"{SCHEMA}.{created.entity_type}")),
            "200": _json("Found instead, as @erpnet.action asked", ref(f"{SCHEMA}.{created.entity_type}")),
            "204": {"description": "Success, where Prefer: return=minimal asked for no body"},
            **_ERROR,
        },
    }


def _patch(repository: Repository[Any]) -> Node:
    return {
        "summary": f"Update an entity in {repository.set_name}",
        "tags": [repository.set_name],
        "parameters": _shared("ifMatch"),
        "requestBody": _body(ref(f"{SCHEMA}.{repository.entity_type}-update")),
        "responses": {
            "204": {"description": "Success"},
            "200": _json("Success, with the entity", ref(f"{SCHEMA}.{repository.entity_type}")),
            "201": _json("Created under the given key", ref(f"{SCHEMA}.{repository.entity_type}")),
            **_ERROR,
        },
    }


def _delete(repository: Repository[Any]) -> Node:
    return {
        "summary": f"Delete an entity from {repository.set_name}",
        "tags": [repository.set_name],
        "parameters": _shared("ifMatch"),
        "responses": {"204": {"description": "Success"}, **_ERROR},
    }


# --- operations ---------------------------------------------------------------------------------------------------


def _operation_item(operation: Operation, bound: Repository[Any] | None) -> Node:
    """The path item of an operation; a function's parameters are query options (URL Conventions 4.01, 5.2.1.1)."""
    kind = "function" if operation.is_function else "action"
    node: Node = {
        "summary": _summary(operation) or f"Invoke {kind} {operation.name}",
        "tags": [bound.set_name if bound is not None else _TAG_OF_UNBOUND],
        "responses": _results(operation),
    }
    typed = {parameter.name: _parameter_schema(parameter.type) for parameter in operation.parameters}
    if operation.is_function:
        node["parameters"] = [
            {
                "name": parameter.name,
                "in": "query",
                "required": not parameter.optional,
                "schema": typed[parameter.name],
            }
            for parameter in operation.parameters
        ]
    elif operation.raw_body:
        node["requestBody"] = {"content": {"*/*": {"schema": {}}}}
    elif operation.parameters:
        required = [parameter.name for parameter in operation.parameters if not parameter.optional]
        schema: Node = {"type": "object", "properties": typed}
        node["requestBody"] = _body({**schema, "required": required} if required else schema, required=bool(required))
    item: Node = {"get" if operation.is_function else "post": node}
    return {"parameters": [_KEY], **item} if bound is not None else item


def _parameter_schema(type_name: str) -> Node:
    """The schema of a parameter; one of an entity type takes a reference."""
    is_entity = type_name.startswith(f"{SCHEMA}.") and repositories.for_type(type_name) is not None
    return ref(REFERENCE) if is_entity else type_schema(type_node(type_name))


def _summary(operation: Operation) -> str:
    return (operation.description or type(operation).__doc__ or "").strip().partition("\n")[0].rstrip(".")


def _results(operation: Operation) -> Node:
    if operation.returns is None:
        return {"204": {"description": "Success"}, "200": {"description": "Success"}, **_ERROR}
    returned = operation.returns
    if operation.is_function and repositories.for_type(returned) is None:
        # A value is wrapped, an entity is not; an untyped result may be either.
        is_open = returned in ("Edm.Untyped", f"{SCHEMA}.{OPEN_OBJECT}")
        schema = {} if is_open else {"properties": {"value": type_schema(type_node(returned))}}
        return {"200": _json("Success", {"type": "object", **schema}), **_ERROR}
    if operation.members:
        return {"200": _json("Success", type_schema(type_node(returned))), **_ERROR}
    return {"200": {"description": "Success", "content": {"*/*": {"schema": {}}}}, **_ERROR}


def _batch() -> Node:
    """The path item of $batch (mapping, 4.5.9)."""
    return {
        "summary": "Send a group of requests",
        "tags": [_TAG_OF_UNBOUND],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"type": "object", "required": ["requests"]}},
                "multipart/mixed;boundary=request-separator": {"schema": {"type": "string"}},
            },
        },
        "responses": {"200": {"description": "Answers, part by part", "content": {"*/*": {"schema": {}}}}, **_ERROR},
    }


def _json(description: str, schema: Node) -> Node:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _body(schema: Node, *, required: bool = True) -> Node:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


__all__ = ["SERVICE_ROOT", "openapi_document", "openapi_namespaces", "openapi_tree", "repository_paths"]
