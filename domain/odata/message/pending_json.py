"""JSON of pending entities that queries do not show, because of row policies on values that come later."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import orjson

from domain.dataset.checks.measures import effective_measure
from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.odata.message.message import JSON, ODataRequest, ODataResponse
from domain.odata.message.references import reference_path
from foundation.kinds import Kind


def pending_response(record: Record, request: ODataRequest, status: int) -> ODataResponse:
    """The entity's default representation from the dataset alone."""
    body: dict[str, Any] = {
        "@odata.context": f"{request.service_root}$metadata#{record.repository.set_name}/$entity",
        "@odata.id": reference_path(record.repository, record.id),
    }
    for attribute in record.repository.default_members:
        body[attribute.name] = json_value(record, attribute)
    return ODataResponse(
        status,
        orjson.dumps(body, default=_default),
        {"Content-Type": f"{JSON};odata.metadata=minimal;charset=utf-8", "Cache-Control": "no-store"},
    )


def shown_value(record: Record, attribute: Attribute) -> Any:
    """As `json_value`, for any JSON that orjson writes: decimals keep their digits."""
    value = json_value(record, attribute)
    if isinstance(value, dict):
        return {name: _exact(inner) for name, inner in value.items()}
    return _exact(value)


def _exact(value: Any) -> Any:
    return _default(value) if isinstance(value, Decimal) else value


def json_value(record: Record, attribute: Attribute) -> Any:
    """An attribute's value as the API shows it."""
    value = record.values.get(attribute.name)
    if value is None:
        return None
    match attribute.kind:
        case Kind.REFERENCE:
            return {"@odata.id": reference_path(repositories[attribute.target], value)}
        case Kind.AMOUNT:
            return {"Value": value, "Currency": effective_measure(record, attribute)}
        case Kind.QUANTITY:
            return {"Value": value, "Unit": effective_measure(record, attribute)}
        case Kind.DATETIME:
            return value.isoformat().replace("+00:00", "Z")
        case Kind.BINARY:
            return base64.urlsafe_b64encode(value).decode()
        case _:
            return value


def _default(value: Any) -> Any:
    if isinstance(value, Decimal):
        text = format(value.normalize(), "f")
        return orjson.Fragment(text)
    raise TypeError(type(value).__name__)
