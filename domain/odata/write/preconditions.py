"""Checks ETags of headers and bodies against stored versions (RFC 9110, 13.1; OData Protocol 4.01, 11.4.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.dataset.records.record import Record
from domain.odata.message.message import ODataRequest
from domain.odata.message.references import annotation, reference_path
from foundation import errors
from foundation.texts import comma_separated


def check_preconditions(request: ODataRequest, record: Record) -> None:
    """Check If-Match and If-None-Match against the root's version. Raises VersionConflict."""
    header = request.headers.get("if-match", "").strip()
    if header and header != "*" and not _names_version(header, record):
        raise _conflict(record)
    check_if_none_match(request, record)


def check_if_none_match(request: ODataRequest, record: Record) -> None:
    """Check If-None-Match; `*` matches every existing entity (OData Protocol 4.01, 11.4.4). Raises VersionConflict."""
    header = request.headers.get("if-none-match", "").strip()
    if header == "*" or (header and _names_version(header, record)):
        raise _conflict(record)


def reads_etags(request: ODataRequest) -> bool:
    """Whether ETags in the body are preconditions, as in OData 4.01. Clients of 4.0 send back the ETags they have read.

    Without OData-Version the body has the version of the response.
    """
    return (request.headers.get("odata-version", "").strip() or request.version) == "4.01"


def check_etag(body: Mapping[str, Any], record: Record) -> None:
    """Check the ETag that a body has for an existing entity. Raises VersionConflict."""
    given = str(annotation(body, "etag"))
    if given != "*" and not _names_version(given, record):
        raise _conflict(record)


def _names_version(etags: str, record: Record) -> bool:
    current = f'"{record.root.version}"'
    return any(part.removeprefix("W/") == current for part in comma_separated(etags))


def _conflict(record: Record) -> errors.VersionConflict:
    return errors.VersionConflict(errors.PRECONDITION_FAILED, reference_path(record.repository, record.id))
