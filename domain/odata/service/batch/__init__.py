"""Handles $batch, multipart and JSON (spec 02, 2.5; OData Protocol 4.01, 11.7; OData JSON 4.01, 19).

parts         one request of a batch, and its response
runner        runs the parts, one by one or group by group
conditions    the `if` of a request in a JSON batch
json_format   {"requests": […]} → {"responses": […]}
multipart     multipart/mixed in and out

A changeset or atomicity group is one dataset, all or nothing. Every part is authorised separately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from domain.odata.message.json_body import invalid_body
from domain.odata.message.message import JSON, NO_STORE, ODataRequest, ODataResponse, negotiate
from domain.odata.service.batch import json_format, multipart
from domain.odata.service.batch.parts import Serve
from domain.odata.service.batch.runner import preferred_continuation
from domain.odata.service.documents import check_options
from foundation import errors
from foundation.messages import TranslatableMessage as Message

MAX_DEPTH = 1
_OF_PARTS = Message("it belongs to the requests of the batch")


def run(request: ODataRequest, serve: Serve) -> ODataResponse:
    """Handle a batch. Raises BadRequest for an invalid one, NotAcceptable, UnsupportedMediaType.

    Failures of parts are in their responses.
    """
    if request.depth >= MAX_DEPTH:
        raise invalid_body(Message("a batch may not contain a batch"))
    check_options(request.options, _OF_PARTS)
    media_type = request.content_type or JSON
    run_in_format = _FORMATS.get(media_type)
    if run_in_format is None:
        raise errors.UnsupportedMediaType(
            errors.UNSUPPORTED_MEDIA_TYPE, Message("multipart/mixed or application/json"), media_type
        )
    # The response has the format of the request: NotAcceptable if Accept excludes it.
    negotiate(request.headers.get("accept", ""), request.options.format, (media_type,))
    for name in ("If-Match", "If-None-Match"):
        if name.lower() in request.headers:
            raise errors.BadRequest(errors.INVALID_HEADER, name, _OF_PARTS)
    response = run_in_format(request, serve)
    if (preferred := preferred_continuation(request)) is not None:
        response.headers["Preference-Applied"] = f"odata.continue-on-error={'true' if preferred else 'false'}"
    response.headers.update(NO_STORE)
    return response


_FORMATS: Mapping[str, Callable[[ODataRequest, Serve], ODataResponse]] = {
    "multipart/mixed": multipart.run,
    JSON: json_format.run,
}


__all__ = ["MAX_DEPTH", "run"]
