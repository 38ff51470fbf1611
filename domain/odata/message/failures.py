"""Failures as OData error responses (spec 07)."""

from __future__ import annotations

import json
import logging

from django.conf import settings
from django.db import DataError, IntegrityError, OperationalError

from domain.dataset.checks.unique_violations import operational_error
from domain.odata.message.message import JSON, ODataRequest, ODataResponse
from domain.syntax import NotSupportedConstruct, ODataSyntaxError
from foundation import errors
from foundation.phrases import Phrase

logger = logging.getLogger("platform.odata")


def failure(request: ODataRequest, error: Exception) -> ODataResponse:
    """The error as an answer; what is a bug of ours goes to the log with its trace."""
    known = known_error(error)
    if known is error and not isinstance(error, errors.PlatformError):
        logger.exception("unhandled exception in %s %s", request.method, request.path)
    rendered = errors.render(known, correlation_id=request.context.request_id, debug=settings.DEBUG)
    headers = {"Content-Type": f"{JSON};charset=utf-8", "Cache-Control": "no-store", **rendered.headers}
    # Escaped, because what callers sent stands in messages, and an error that cannot be written helps nobody.
    return ODataResponse(rendered.status, json.dumps(rendered.body, default=str).encode(), headers)


def known_error(error: Exception) -> Exception:
    """Foreign exceptions at the boundary become ours (spec 07)."""
    match error:
        case NotSupportedConstruct():
            return errors.NotSupported(error.construct, target=error.option or None)
        case ODataSyntaxError() if error.option:
            return errors.BadRequest(errors.BAD_QUERY_OPTION, error.option, error.located, target=error.option)
        case ODataSyntaxError():
            return errors.BadRequest(errors.BAD_URL, error.position, error.message)
        case DataError() | ValueError() if "NUL" in str(error) and "0x00" in str(error):
            # What is only searched for is not checked as what is stored is; this is psycopg's.
            return errors.BadRequest(errors.NUL_CHARACTER, "a comparison")
        case OperationalError():
            return operational_error(error)
        case IntegrityError() if "FOREIGN KEY" in str(error).upper():
            # Checked when the database commits: another request deleted, meanwhile, what this one refers to.
            return errors.Refused(errors.REFERENCE_IN_USE, Phrase("an entity"), str(error))
    return error
