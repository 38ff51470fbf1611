"""/api/asyncapi.json: the change stream as an AsyncAPI 3.0 document.

Its entities are named as in /api/openapi.json, without $ref: the official parser resolves each reference separately,
and had not parsed such a document after three minutes.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from domain.event_stream.cloud_events import OPERATIONS, SOURCE_PATH, type_of
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.operations.standard import VERSION

_TEXT = {"type": "string"}
_PARAMETERS = {
    "since": "A cursor, or beginning; without one from now on. Last-Event-ID takes precedence.",
    "repository": "Names of repositories, separated by commas; derived ones are included. All without it.",
    "event": f"{', '.join(OPERATIONS.values())}, separated by commas. All without it.",
    "wait": "Of a long poll, the seconds after which it answers without events: 0 to 120.",
}


def asyncapi_tree() -> dict[str, Any]:
    """The document."""
    messages = {
        type_of(repository.name, letter): _message(repository, letter)
        for repository in repositories
        if not repository.view_of
        for letter in OPERATIONS
    }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Change stream",
            "version": VERSION,
            "description": "Committed changes of entities as CloudEvents 1.0, in the order of their commits.",
        },
        "defaultContentType": "application/json",
        **_servers(),
        "channels": {
            "changes": {
                "address": f"{SOURCE_PATH}/events",
                "description": (
                    "Server-Sent Events by Accept: text/event-stream, each a message. Else a long poll, whose answer "
                    "is #/components/schemas/LongPoll: messages, and the cursor after them."
                ),
                "bindings": {"http": {"bindingVersion": "0.3.0"}},
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
            }
        },
        "operations": {
            "listen": {
                "action": "send",
                "channel": {"$ref": "#/channels/changes"},
                "bindings": {"http": {"method": "GET", "query": _query(), "bindingVersion": "0.3.0"}},
                "security": [{"$ref": "#/components/securitySchemes/bearer"}],
            }
        },
        "components": {
            "messages": messages,
            "schemas": {"CloudEvent": _envelope(), "LongPoll": _long_poll()},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _servers() -> dict[str, Any]:
    """The instance as the only server, if its URL is configured: the document does not depend on the request."""
    if not settings.BASE_URL:
        return {}
    address = urlsplit(settings.BASE_URL)
    return {"servers": {"instance": {"host": address.netloc, "protocol": address.scheme}}}


def _message(repository: Repository[Any], letter: str) -> dict[str, Any]:
    name = type_of(repository.name, letter)
    entity = {
        "type": ["object", "null"],
        "description": f"Erp.{repository.entity_type} of /api/openapi.json, as it is now; null if it is gone.",
        "$comment": f"openapi.json#/components/schemas/Erp.{repository.entity_type}",
    }
    data = {"properties": {"entity": entity}}
    constant = {"properties": {"type": {"const": name}, "data": data}}
    return {"name": name, "payload": {"allOf": [{"$ref": "#/components/schemas/CloudEvent"}, constant]}}


def _query() -> dict[str, Any]:
    return {"type": "object", "properties": {name: {**_TEXT, "description": of} for name, of in _PARAMETERS.items()}}


def _long_poll() -> dict[str, Any]:
    events = {"type": "array", "items": {"$ref": "#/components/schemas/CloudEvent"}}
    return {"type": "object", "required": ["events", "cursor"], "properties": {"events": events, "cursor": dict(_TEXT)}}


def _envelope() -> dict[str, Any]:
    """The attributes that all events have."""
    texts = ("id", "source", "type", "subject", "time", "datacontenttype", "cursor")
    changes = {
        "type": ["object", "null"],
        "description": "Attribute → [old, new] of this commit, where the change history keeps them.",
        "additionalProperties": {"type": "array", "minItems": 2, "maxItems": 2},
    }
    return {
        "type": "object",
        "required": ["specversion", *texts, "data"],
        "properties": {
            "specversion": {"const": "1.0"},
            **{name: dict(_TEXT) for name in texts},
            "data": {"type": "object", "required": ["entity", "changes"], "properties": {"changes": changes}},
        },
    }
