"""Renders pending entities as JSON from the dataset, where row policies hide them from queries.

Policies do so while values that they test are not set yet.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import orjson

from domain.dataset.checks.currencies_and_units import effective_measure
from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.odata.message.message import JSON, NO_STORE, ODataRequest, ODataResponse, reads_standard_base64
from domain.odata.message.references import reference_path
from foundation.kinds import Kind
from foundation.texts import utc_text

EncodeBinary = Callable[[bytes], bytes]


def pending_response(record: Record, request: ODataRequest, status: int) -> ODataResponse:
    """The entity's default representation from the dataset alone."""
    body: dict[str, Any] = {
        "@odata.context": f"{request.service_root}$metadata#{record.repository.set_name}/$entity",
        "@odata.id": reference_path(record.repository, record.id),
    }
    for attribute in record.repository.default_members:
        body[attribute.name] = json_value(record, attribute, encode=binary_encoder(request.headers))
    return ODataResponse(
        status,
        orjson.dumps(body, default=_default, option=orjson.OPT_UTC_Z),
        {"Content-Type": f"{JSON};odata.metadata=minimal;charset=utf-8", **NO_STORE},
    )


def binary_encoder(headers: Mapping[str, str]) -> EncodeBinary:
    """The encoder of Edm.Binary for the caller: base64 or base64url."""
    return base64.b64encode if reads_standard_base64(headers) else base64.urlsafe_b64encode


def shown_value(record: Record, attribute: Attribute, *, encode: EncodeBinary = base64.urlsafe_b64encode) -> Any:
    """As `json_value`, for orjson: decimals are exact JSON numbers."""
    value = json_value(record, attribute, encode=encode)
    if isinstance(value, dict):
        return {name: _exact(inner) for name, inner in value.items()}
    return _exact(value)


def _exact(value: Any) -> Any:
    return _default(value) if isinstance(value, Decimal) else value


def json_value(record: Record, attribute: Attribute, *, encode: EncodeBinary = base64.urlsafe_b64encode) -> Any:
    """The value of an attribute in API form; decimals stay Decimal."""
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
            return utc_text(value)
        case Kind.BINARY:
            return encode(value).decode()
        case _:
            return value


def _default(value: Any) -> Any:
    if isinstance(value, Decimal):
        text = format(value.normalize(), "f")
        return orjson.Fragment(text)
    raise TypeError(type(value).__name__)
