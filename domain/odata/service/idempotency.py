"""Executes repeated writes once: Idempotency-Key, and OData's Repeatability-Request-ID (spec 13, 13.4).

Idempotency-Key            IETF draft-ietf-httpapi-idempotency-key-header
Repeatability-Request-ID   with Repeatability-First-Sent; the response has Repeatability-Result (OASIS Repeatable
                           Requests 1.0)

A request with one of them runs in one database transaction, in which its response is stored, too. A later request with
the same key gets that response. After a temporary failure (the database is busy, a limit is reached, an internal error)
the transaction is rolled back and no response is stored, so that the client can retry.

On SQLite the transaction holds the lock of the only writer: domain.dataset.transactions.write_lock_time limits the time
of callers who may change nothing, and reads (`POST Set/$query`) are not repeatable.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final

from django.db import transaction

from domain.dataset.commit.retries import RetryState, run_with_retries
from domain.dataset.tables.write_transaction import write_transaction
from domain.dataset.transactions import write_lock_time
from domain.dataset.transactions.stored_responses import (
    LIFETIME,
    RequestKey,
    StoredResponse,
    request_key,
    response_find,
    response_store,
)
from domain.model import model_version
from domain.odata.message.failures import failure
from domain.odata.message.message import ODataResponse, ReceivedRequest
from domain.odata.service.current_model import with_current_model
from domain.odata.service.parsing import is_query
from foundation import errors
from foundation.fields import utc_now
from foundation.messages import TranslatableMessage as Message

KEY: Final = "idempotency-key"
REQUEST_ID: Final = "repeatability-request-id"
FIRST_SENT: Final = "repeatability-first-sent"
#: All request headers of idempotency.
HEADERS: Final = frozenset({KEY, REQUEST_ID, FIRST_SENT})
#: Header of a stored response.
REPLAYED: Final = "Idempotent-Replayed"
RESULT: Final = "Repeatability-Result"

_WRITING: Final = frozenset({"POST", "PATCH", "PUT", "DELETE", "MERGE"})
_WRITING_SCOPES: Final = frozenset({"update", "exec"})
#: Headers that change the effect of a write.
_MEANING: Final = ("transactionid", "prefer", "if-match", "if-none-match", "content-type", "erpcontextparameters")
#: Maximum by which a client's clock may be ahead.
_AHEAD: Final = timedelta(minutes=15)
#: A string (RFC 9651, 3.3.3) without escaped quotes or, as many clients send, the bare text.
_VALUE: Final = re.compile(r'"(?P<quoted>[ !#-\[\]-~]{1,255})"|(?P<bare>[!#-~]{1,255})')

#: The boundary of a multipart media type (RFC 2046, 5.1.1), with all that follows it.
_BOUNDARY: Final = re.compile(
    r';\s*boundary\s*=\s*(?:"(?P<quoted>[^"]{1,70})"|(?P<plain>[^\s;,"]{1,70})).*', re.IGNORECASE | re.ASCII
)


def is_repeatable(received: ReceivedRequest) -> bool:
    """Whether the request is a write with an idempotency key, of a caller who may write."""
    headers = received.headers
    if (
        received.method not in _WRITING
        or is_query(received)
        or not (KEY in headers or REQUEST_ID in headers or FIRST_SENT in headers)
    ):
        return False
    # A token without a writing scope must get its own refusal, not the stored response of another token's request.
    return not received.context.scopes.isdisjoint(_WRITING_SCOPES)


def respond_once(received: ReceivedRequest, serve: Callable[[], ODataResponse]) -> ODataResponse:
    """The response to the first request with this key: the stored one, else that of `serve`, which never raises."""
    is_odata = KEY not in received.headers
    try:
        key = request_key(received.context, _key(received), _fingerprint(received))
        response = with_current_model(partial(run_with_retries, partial(_attempt, received, key, serve)))
    except Exception as error:
        response = failure(error, received.context, f"{received.method} {received.path}")
        if is_odata:
            response.headers[RESULT] = "rejected"
        return response
    if is_odata:
        response.headers[RESULT] = "accepted"
    return response


def _attempt(
    received: ReceivedRequest, key: RequestKey, serve: Callable[[], ODataResponse], retry: RetryState
) -> ODataResponse:
    with write_transaction(), write_lock_time.limited(received.context):
        retry.begin()
        stored = response_find(key)
        if stored is not None:
            return ODataResponse(stored.status, stored.body, {**stored.headers, REPLAYED: "true"})
        if received.body_file is not None:
            received.body_file.seek(0)
        response = serve()
        is_kept = _is_kept(response)
        if is_kept:
            response_store(key, StoredResponse(response.status, response.headers, response.body))
        else:
            transaction.set_rollback(True)
    if not is_kept and model_version.has_changed():
        # `serve` does not detect a changed model inside this transaction.
        raise model_version.ModelChanged
    return response


def _is_kept(response: ODataResponse) -> bool:
    """Whether the response is final, a success or a refusal, so that it is stored."""
    is_temporary = response.status in (429, 503) or response.push is not None
    is_bug = response.error is not None and response.error.code == errors.INTERNAL_ERROR.number
    return not (is_temporary or is_bug)


def _key(received: ReceivedRequest) -> str:
    """The key, prefixed by its header's name. Raises BadRequest, and VersionConflict for an old request."""
    headers = received.headers
    if KEY in headers and (REQUEST_ID in headers or FIRST_SENT in headers):
        raise errors.BadRequest(
            errors.INVALID_HEADER, "Idempotency-Key", Message("Repeatability-Request-ID is in the request, too")
        )
    if KEY in headers:
        return f"{KEY} {_value(headers[KEY], 'Idempotency-Key')}"
    _check_first_sent(headers.get(FIRST_SENT, ""))
    return f"{REQUEST_ID} {_value(headers.get(REQUEST_ID, ''), 'Repeatability-Request-ID')}"


def _value(text: str, name: str) -> str:
    match = _VALUE.fullmatch(text.strip())
    if match is None:
        raise errors.BadRequest(errors.INVALID_HEADER, name, Message("it is a text of 1 to 255 ASCII characters"))
    return match["quoted"] or match["bare"]


def _check_first_sent(text: str) -> None:
    """Refuse a request so old that its stored response may have expired: it could be executed twice."""
    try:
        sent = parsedate_to_datetime(text)
    except (ValueError, OverflowError) as exc:
        raise errors.BadRequest(
            errors.INVALID_HEADER, "Repeatability-First-Sent", Message("it is a date as in Date (RFC 9110, 5.6.7)")
        ) from exc
    sent = sent if sent.tzinfo is not None else sent.replace(tzinfo=UTC)
    now: datetime = utc_now()
    if not now - LIFETIME < sent < now + _AHEAD:
        raise errors.VersionConflict(errors.REPEATABILITY_EXPIRED, int(LIFETIME.total_seconds() // 3600))


def _fingerprint(received: ReceivedRequest) -> str:
    """A digest of the request: method, URL, headers of _MEANING, body. A multipart boundary does not count: clients
    choose another one when they send the same parts again.
    """
    headers = dict(received.headers)
    delimiter = b""
    if (boundary := _BOUNDARY.search(headers.get("content-type", ""))) is not None:
        headers["content-type"] = headers["content-type"][: boundary.start()]
        delimiter = b"--" + (boundary["quoted"] or boundary["plain"]).encode()
    meaning = (headers.get(name, "") for name in _MEANING)
    parts = (received.method, received.path, received.query, *meaning)
    digest = hashlib.sha256("\0".join(parts).encode() + b"\0")
    body = received.body_file or io.BytesIO(received.body)
    body.seek(0)
    is_line_start = True
    while block := body.readline(1 << 16):
        is_delimiter = delimiter and is_line_start and block.startswith(delimiter)
        digest.update(b"\0--\0" + block[len(delimiter) :] if is_delimiter else block)
        is_line_start = block.endswith(b"\n")
    return digest.hexdigest()


__all__ = ["HEADERS", "is_repeatable", "respond_once"]
