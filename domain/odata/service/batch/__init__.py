"""$batch, multipart and JSON (spec 02, 2.5; OData Protocol 4.01, 11.7; OData JSON 4.01, 19).

parts         one request of a batch, and its answer
runner        carries parts out, one by one or group by group
conditions    the `if` of a request in a JSON batch
json_format   {"requests": […]} → {"responses": […]}
multipart     multipart/mixed in and out

A changeset or atomicity group is one dataset, all or nothing. Every part is authorised as a request of its own.
"""

from __future__ import annotations

from domain.odata.message.message import JSON, ODataRequest, ODataResponse
from domain.odata.service.batch import json_format, multipart
from domain.odata.service.batch.parts import Service
from foundation import errors
from foundation.phrases import Phrase

MAX_DEPTH = 1


def run(request: ODataRequest, service: Service) -> ODataResponse:
    """Answer a batch. Raises BadRequest for one that cannot be read; failures of parts stand in their answers."""
    if request.depth >= MAX_DEPTH:
        raise errors.BadRequest(errors.INVALID_BODY, Phrase("a batch may not contain a batch"))
    if request.content_type == "multipart/mixed":
        response = multipart.run(request, service)
    elif request.content_type == JSON:
        response = json_format.run(request, service)
    else:
        raise errors.UnsupportedMediaType(
            errors.UNSUPPORTED_MEDIA_TYPE,
            Phrase("multipart/mixed or application/json"),
            request.content_type or Phrase("nothing"),
        )
    response.headers["Cache-Control"] = "no-store"
    return response


__all__ = ["MAX_DEPTH", "Service", "run"]
