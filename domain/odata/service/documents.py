"""Responds with the service document and $metadata (OData JSON 4.01, 5; CSDL 4.01)."""

from __future__ import annotations

from dataclasses import fields

from domain.dataset.checks import access
from domain.model.registry import repositories
from domain.odata.message.message import (
    JSON,
    NO_STORE,
    XML,
    ODataRequest,
    ODataResponse,
    asks_for,
    json_response,
    negotiate,
)
from domain.odata.metadata.csdl import csdl_document
from domain.odata.metadata.model_documents import document_response
from domain.odata.operations.catalogue import operations
from domain.odata.read.reader import content_type
from domain.syntax.ast import QueryOptions
from foundation import errors
from foundation.messages import TranslatableMessage as Message

_OF_DOCUMENTS = frozenset({"format", "schemaversion", "custom", "aliases", "position"})
_OF_DATA = [option.name for option in fields(QueryOptions) if option.name not in _OF_DOCUMENTS]
_OF_A_DOCUMENT = Message("the address is of a document")


def check_options(options: QueryOptions, reason: Message) -> None:
    """Refuse all system options except $format and $schemaversion."""
    name = options.first_given(_OF_DATA)
    if name is not None:
        shown = f"${name.removesuffix('_time')}"
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, shown, reason, target=shown)


def service_document(request: ODataRequest) -> ODataResponse:
    """The readable entity sets by name, and the function imports; this model has no singletons."""
    check_options(request.options, _OF_A_DOCUMENT)
    negotiated = negotiate(request.headers.get("accept", ""), request.options.format, (JSON,))
    entries = [
        {"name": repository.set_name, "kind": "EntitySet", "url": repository.set_name}
        for repository in repositories
        if access.allowed(request.context, repository, "read")
    ]
    imports = [
        {"name": operation.name, "kind": "FunctionImport", "url": operation.name}
        for operation in operations.all()
        if operation.is_listed
    ]
    context = {} if negotiated.metadata == "none" else {"@odata.context": f"{request.service_root}$metadata"}
    return json_response(
        {**context, "value": [*entries, *imports]},
        headers={"Content-Type": content_type(negotiated), **NO_STORE},
    )


def metadata(request: ODataRequest) -> ODataResponse:
    """$metadata as CSDL XML, or CSDL JSON by $format or Accept; 304 for a matching ETag.

    CSDL JSON exists from 4.01 on: a request for it gets 4.01, unless OData-MaxVersion forbids that. With `options=flat`
    no entity type has a base type.
    """
    check_options(request.options, _OF_A_DOCUMENT)
    only_xml = request.version == "4.0" and "odata-maxversion" in request.headers
    served = (XML,) if only_xml else (XML, JSON)
    media_type = negotiate(request.headers.get("accept", ""), request.options.format, served).media_type
    version = "4.01" if media_type == JSON else request.version
    document = csdl_document(media_type, version, flat=asks_for(request.options, "flat"))
    response = document_response(document, media_type, request.headers)
    response.headers["OData-Version"] = version
    return response
