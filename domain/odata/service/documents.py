"""The service document and $metadata as answers (OData JSON 4.01, 5; CSDL 4.01)."""

from __future__ import annotations

from dataclasses import fields, replace

from domain.dataset.checks import access
from domain.model.registry import repositories
from domain.odata.message.message import (
    JSON,
    XML,
    ODataRequest,
    ODataResponse,
    json_response,
    negotiate,
    odata_version,
)
from domain.odata.metadata.csdl import csdl_document
from domain.odata.metadata.model_documents import document_response
from domain.odata.operations.catalogue import operations
from domain.odata.read.reader import content_type
from domain.syntax.ast import NO_OPTIONS, QueryOptions
from foundation import errors
from foundation.phrases import Phrase


def _check_options(options: QueryOptions) -> None:
    """A document knows $format and $schemaversion; custom options mean nothing here, as everywhere."""
    of_data = replace(options, format=None, schemaversion=None, custom=(), aliases=())
    for option in fields(of_data):
        if option.compare and getattr(of_data, option.name) != getattr(NO_OPTIONS, option.name):
            name = f"${option.name}"
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, name, Phrase("the address is of a document"), target=name)


def service_document(request: ODataRequest, options: QueryOptions) -> ODataResponse:
    """The entity sets that the caller may read, by name, and the function imports; this model has no singletons."""
    _check_options(options)
    negotiated = negotiate(request.headers.get("accept", ""), options.format, (JSON,))
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
        headers={"Content-Type": content_type(negotiated), "Cache-Control": "no-store"},
    )


def metadata(request: ODataRequest, options: QueryOptions) -> ODataResponse:
    """$metadata as CSDL XML, or CSDL JSON where that is asked for; 304 where the caller has it already."""
    _check_options(options)
    negotiated = negotiate(request.headers.get("accept", ""), options.format, (XML, JSON))
    document = csdl_document(negotiated.media_type, odata_version(request.headers))
    return document_response(document, negotiated.media_type, request.headers)
