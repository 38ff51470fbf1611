"""Responses to writes that carry an idempotency key: a repeated request gets the first response (spec 13, 13.4).

The response is stored in the database transaction of the write, so neither exists without the other: after a crash
between write and response the repeated request finds both or none. Keys belong to a user and application. The response
may contain protected data, so a caller gets it only with at least the scopes and the same data permissions as then.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import orjson
from django.db import connection
from django.db.models import Count, Sum

from domain.dataset.tables.models import IdempotentResponse
from foundation import errors
from foundation.execution_slot import defer_to_slot
from foundation.fields import utc_now
from identity.context import CallContext

#: How long a key is remembered.
LIFETIME: Final = timedelta(hours=24)
#: Maximum of one response's body.
MAX_RESPONSE_BYTES: Final = 1 << 20
#: Maximum responses of one caller, and their maximum total bytes.
MAX_RESPONSES: Final = 100_000
MAX_BYTES: Final = 256 << 20
#: Maximum wait of a repeated request for the first one.
WAIT_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05
#: Interval at which the responses of a caller are counted again.
_USAGE_SECONDS: Final = 30.0
_MAX_USAGES: Final = 10_000
_DATA_SCOPES: Final = frozenset({"read", "update", "exec"})
#: Part of the hash, so that these locks differ from those of looked-up values (lookups.advisory_locks).
_SEED: Final = 3
#: Rows deleted by one statement: on SQLite each blocks the other writers for some milliseconds.
_ROWS_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A key of a caller, as digests.

    owner         the user and application
    digest        the owner and the key
    fingerprint   the request: method, URL, body
    rights        the caller's data permissions, and the company, location and role of the request
    scopes        scopes for data that the caller's token has; no digest
    """

    owner: str
    digest: str
    fingerprint: str
    rights: str
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The first response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def request_key(context: CallContext, key: str, fingerprint: str) -> RequestKey:
    """The key of the caller of this context. `key` has the name of its header in front."""
    owner = _digest(context.user_id, context.application)
    rights = _digest(context.permissions.key, context.company_id, context.location_id, context.role_id)
    return RequestKey(owner, _digest(owner, key), fingerprint, rights, context.scopes & _DATA_SCOPES)


def response_find(key: RequestKey) -> StoredResponse | None:
    """The response to the first request with the key; None for the first, which then holds the key until it ends.

    Call in the database transaction of the write. Waits while another transaction holds the key: on SQLite its
    beginning waits. Raises Conflict after WAIT_SECONDS, UnprocessableContent for a key of another request, Forbidden
    for a caller with fewer scopes or other rights than that of the first request, and TooManyRequests beyond
    MAX_RESPONSES and MAX_BYTES.
    """
    _lock(key)
    row = IdempotentResponse.objects.filter(digest=key.digest).first()
    if row is not None and row.made_at > utc_now() - LIFETIME:
        if row.fingerprint != key.fingerprint:
            raise errors.UnprocessableContent(errors.IDEMPOTENCY_KEY_REUSED)
        response = orjson.loads(row.response)
        _check_authority(key, response)
        return StoredResponse(response["status"], response["headers"], response["body"].encode("latin-1"))
    if row is not None:
        row.delete()
    _check_usage(key.owner)
    return None


def response_store(key: RequestKey, response: StoredResponse) -> None:
    """Store the response. Raises PayloadTooLarge beyond MAX_RESPONSE_BYTES."""
    if len(response.body) > MAX_RESPONSE_BYTES:
        raise errors.PayloadTooLarge(errors.IDEMPOTENT_ANSWER_TOO_LARGE, MAX_RESPONSE_BYTES)
    # Latin-1 has a character for each byte.
    fields = {
        "status": response.status,
        "headers": dict(response.headers),
        "body": response.body.decode("latin-1"),
        "rights": key.rights,
        "scopes": sorted(key.scopes),
    }
    IdempotentResponse.objects.create(
        digest=key.digest,
        owner=key.owner,
        fingerprint=key.fingerprint,
        response=orjson.dumps(fields).decode(),
        size=len(response.body),
        made_at=utc_now(),
    )


def responses_prune() -> int:
    """Delete responses past their time; returns their number."""
    old, deleted = IdempotentResponse.objects.filter(made_at__lte=utc_now() - LIFETIME), 0
    while digests := list(old.values_list("digest", flat=True)[:_ROWS_AT_ONCE]):
        deleted += IdempotentResponse.objects.filter(digest__in=digests).delete()[0]
    return deleted


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(" ".join(part or "" for part in parts).encode()).hexdigest()


def _check_authority(key: RequestKey, response: Mapping[str, Any]) -> None:
    """Raise Forbidden for a token with fewer scopes, and after a change of the caller's rights.

    Only the request's work could check whether the new rights suffice, and it must not run again.
    """
    # An earlier release stored neither.
    for scope in response.get("scopes", ()):
        if scope not in key.scopes:
            raise errors.Forbidden(errors.SCOPE_MISSING, scope)
    if response.get("rights") != key.rights:
        raise errors.Forbidden(errors.IDEMPOTENT_ANSWER_WITHHELD)


def _lock(key: RequestKey) -> None:
    """Hold the key until the transaction ends. SQLite has one writing transaction at a time."""
    if connection.vendor != "postgresql":
        return
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))", [key.digest, _SEED])
            if cursor.fetchone()[0]:
                return
        if time.monotonic() > deadline:
            raise errors.Conflict(errors.REQUEST_IN_PROGRESS, 1, retry_after_seconds=1)
        time.sleep(_POLL_SECONDS)
        defer_to_slot()


#: Owner → when counted, responses, bytes.
_usages: dict[str, tuple[float, int, int]] = {}


def _check_usage(owner: str) -> None:
    """Raise TooManyRequests for a caller with too many responses. Counting takes milliseconds: the count is cached."""
    counted, responses, size = _usages.get(owner, (0.0, 0, 0))
    if time.monotonic() - counted > _USAGE_SECONDS or not counted:
        stored = IdempotentResponse.objects.filter(owner=owner).aggregate(responses=Count("digest"), size=Sum("size"))
        if len(_usages) >= _MAX_USAGES:
            _usages.clear()
        responses, size = stored["responses"], stored["size"] or 0
        _usages[owner] = time.monotonic(), responses, size
    if responses >= MAX_RESPONSES or size >= MAX_BYTES:
        raise errors.TooManyRequests(
            MAX_RESPONSES, MAX_BYTES >> 20, retry_after_seconds=60, code=errors.TOO_MANY_IDEMPOTENCY_KEYS
        )
