"""Handles $batch, multipart and JSON (spec 02, 2.5; OData Protocol 4.01, 11.7; OData JSON 4.01, 19).

parts         one request of a batch, and its response
runner        runs the parts, one by one or group by group
conditions    the `if` of a request in a JSON batch
json_format   {"requests": […]} → {"responses": […]}
multipart     multipart/mixed in and out

A changeset or atomicity group is one dataset, all or nothing. Every part is authorised separately.
"""

from __future__ import annotations

from domain.odata.message.json_body import invalid_body
from domain.odata.message.message import JSON, NO_STORE, ODataRequest, ODataResponse
from domain.odata.service.batch import json_format, multipart
from domain.odata.service.batch.parts import Serve
from foundation import errors
from foundation.messages import TranslatableMessage as Message

MAX_DEPTH = 1


def run(request: ODataRequest, serve: Serve) -> ODataResponse:
    """Handle a batch. Raises BadRequest for an invalid one; failures of parts are in their responses."""
    if request.depth >= MAX_DEPTH:
        raise invalid_body(Message("a batch may not contain a batch"))
    if request.content_type == "multipart/mixed":
        response = multipart.run(request, serve)
    elif request.content_type in (JSON, ""):
        response = json_format.run(request, serve)
    else:
        raise errors.UnsupportedMediaType(
            errors.UNSUPPORTED_MEDIA_TYPE,
            Message("multipart/mixed or application/json"),
            request.content_type,
        )
    response.headers.update(NO_STORE)
    return response


__all__ = ["MAX_DEPTH", "run"]
