"""Renders failures as OData error responses (spec 07)."""

from __future__ import annotations

import json
import logging

from django.conf import settings
from django.db import DatabaseError, DataError, IntegrityError, OperationalError

from domain.dataset.checks.database_errors import operational_error
from domain.model import model_version
from domain.odata.message.message import JSON, NO_STORE, ODataResponse
from domain.syntax import NotSupportedConstruct, ODataSyntaxError
from foundation import errors
from foundation.error_summaries import summary_of
from foundation.messages import TranslatableMessage as Message
from identity.context import CallContext

logger = logging.getLogger("platform.odata")


def failure(error: Exception, context: CallContext, place: str) -> ODataResponse:
    """The error as a response. A bug of the platform is logged with its traceback and `place`, the method and path."""
    known = known_error(error)
    if known is error and not isinstance(error, errors.PlatformError):
        # The id is passed because the thread may not be one of a request.
        logger.exception("unhandled exception in %s", place, extra={"request_id": context.request_id})
    rendered = errors.render(known, correlation_id=context.request_id, debug=settings.DEBUG)
    headers = {"Content-Type": f"{JSON};charset=utf-8", **NO_STORE, **rendered.headers}
    # Escaped, because messages quote callers' text, which may have lone surrogates.
    body = json.dumps(rendered.body, default=str).encode()
    return ODataResponse(rendered.status, body, headers, error=summary_of(known))


def known_error(error: Exception) -> Exception:
    """The PlatformError for an exception of the parser or the database; other exceptions unchanged (spec 07)."""
    match error:
        case NotSupportedConstruct():
            return errors.NotSupported(error.construct, target=error.option or None)
        case ODataSyntaxError() if error.option:
            return errors.BadRequest(errors.BAD_QUERY_OPTION, error.option, error.located, target=error.option)
        case ODataSyntaxError():
            return errors.BadRequest(errors.BAD_URL, error.position, error.message)
        case DataError() | ValueError() if "NUL" in str(error) and "0x00" in str(error):
            # psycopg refuses NUL in parameters of queries; stored values are checked before.
            return errors.BadRequest(errors.NUL_CHARACTER, "a comparison")
        case OperationalError() if (known := operational_error(error)) is not error:
            return known
        case IntegrityError() if "FOREIGN KEY" in str(error).upper():
            # Checked when the database commits: another request has deleted the target meanwhile.
            return errors.Refused(errors.REFERENCE_IN_USE, Message("an entity"), str(error))
        case DatabaseError() if model_version.has_changed():
            # The statement has columns of a custom entity that were dropped.
            return model_version.ModelChanged()
    return error
