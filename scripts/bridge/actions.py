"""Implements the calls of `Action` (spec 04, 4.2)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from foundation import errors
from foundation.egress import client
from foundation.egress.client import EgressFailed, EgressRequest, Headers
from foundation.execution_slot import release_slot
from foundation.guids import is_guid
from foundation.messages import TranslatableMessage as Message
from identity import rate_limits
from identity.context import CallContext
from identity.models import Role, Session
from scripts.sandbox.well_formed_json import well_formed

NOTIFICATIONS = "Systems.Core.Notifications"
ATTACHMENTS = "General.Documents.DocumentFileAttachments"
MAX_HTTP_SECONDS = 10.0
#: Limit of a user without the right to create notifications.
NOTIFICATIONS_PER_MINUTE = 20


def user_of(context: CallContext) -> dict[str, Any]:
    """The user of the context, in the form for scripts."""
    caller = context.user
    if caller is None:
        return {"id": None, "name": "", "login": "", "roles": [], "locale": context.language, "email": ""}
    roles = Role.objects.filter(role_users__user_id=caller.id, is_active=True).order_by("name").distinct()
    return {
        "id": caller.id,
        "name": caller.name,
        "login": caller.login,
        "roles": list(roles.values_list("name", flat=True)),
        "locale": context.language,
        "email": caller.email,
    }


def session_of(context: CallContext) -> dict[str, Any]:
    """The licensed session; both values are None without one."""
    if context.session_id is None:
        return {"id": None, "startedAt": None}
    opened = Session.objects.filter(id=context.session_id).values_list("opened", flat=True).first()
    return {"id": context.session_id, "startedAt": opened}


def count_notification(context: CallContext) -> None:
    """Count a notification of a caller without the right to create one. Raises TooManyRequests."""
    if context.user is None or context.permissions.allows(NOTIFICATIONS, "create"):
        return
    try:
        rate_limits.count(f"script-notifications:{context.user.id}", NOTIFICATIONS_PER_MINUTE)
    except errors.TooManyRequests as limited:
        seconds = limited.retry_after_seconds
        raise errors.TooManyRequests(
            NOTIFICATIONS_PER_MINUTE, seconds, retry_after_seconds=seconds, code=errors.NOTIFICATIONS_LIMITED
        ) from limited


def notify(dataset: Dataset, user_id: Any, message: str) -> Record:
    """Create a notification in the dataset. Its anchor is the login of the script's caller, because the text is not
    trusted.
    """
    if not isinstance(user_id, str) or not is_guid(user_id):
        raise errors.BadRequest(errors.INVALID_LITERAL, user_id, "Edm.Guid", "Action.notify.user", target="id")
    if dataset.load("Systems.Security.Users", user_id) is None:
        raise errors.Refused(errors.REFERENCE_NOT_FOUND, "User", "Systems_Security_Users", user_id, target="id")
    sender = dataset.context.user
    values = {
        "User": user_id.lower(),
        "NotificationClass": "Script",
        "Subject": message[:256],
        "Anchor": sender.login[:128] if sender is not None else None,
    }
    return dataset.create(NOTIFICATIONS, values)


def attach(dataset: Dataset, document: Record, name: str, data: Any) -> Record:
    """Attach a file to a document in the dataset."""
    if not document.repository.is_document:
        raise errors.BadRequest(errors.INVALID_BODY, Message("{0} is not a document", document.repository.entity_type))
    if isinstance(data, list):
        try:
            content = bytes(data)
        except (TypeError, ValueError) as exc:
            raise errors.BadRequest(errors.INVALID_BODY, Message("the content of a file is text or bytes")) from exc
    else:
        content = str(data).encode()
    return dataset.create(
        ATTACHMENTS, {"FileName": name, "EmbeddedFileContents": content}, parent=document, by_client=True
    )


def http(
    method: str, url: str, body: str, is_json: bool, headers: Any, deadline: float, traceparent: str = ""
) -> dict[str, Any]:
    """Send a request under the egress rules of webhooks, within the script's time, as part of the caller's trace.

    headers: {name: value}, or text with a line `Name: value` for each. A refused or failed request gives a result, not
    an exception: {"isSuccess", "statusCode", "body", "headers": [[name, value]…], "errorMessage"}.
    """
    sent = _headers(headers)
    if body and not any(name.lower() == "content-type" for name, _ in sent):
        sent.append(("Content-Type", "application/json" if is_json else "text/plain; charset=utf-8"))
    if traceparent and not any(name.lower() == "traceparent" for name, _ in sent):
        sent.append(("traceparent", traceparent))
    seconds = max(0.05, min(MAX_HTTP_SECONDS, deadline - time.monotonic()))
    request = EgressRequest(
        "POST" if method == "POST" else "GET",
        url,
        tuple(sent),
        (well_formed(body) if is_json else body).encode(),
        connect_timeout_seconds=min(5.0, seconds),
        total_timeout_seconds=seconds,
    )
    try:
        release_slot()
        response = client.send(request)
    except EgressFailed as exc:
        return _answer(False, 0, "", str(exc))
    except errors.Refused as exc:
        return _answer(False, 0, "", exc.message)
    text = response.body.decode("utf-8", "replace")
    success = 200 <= response.status < 300
    message = "" if success else f"{response.status} {response.reason}".strip()
    return _answer(success, response.status, text, message, response.headers)


def _headers(given: Any) -> list[tuple[str, str]]:
    if given is None:
        return []
    if isinstance(given, str):
        return [_header(line) for line in given.replace("\r\n", "\n").split("\n") if line.strip()]
    if not isinstance(given, Mapping):
        raise errors.BadRequest(
            errors.INVALID_BODY, Message("headers are lines 'Name: value', or an object of names and texts")
        )
    return [(str(name), str(value)) for name, value in given.items()]


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise errors.BadRequest(errors.INVALID_BODY, Message("a header is 'Name: value', not '{0}'", line[:100]))
    return name.strip(), value.strip()


def _answer(success: bool, status: int, body: str, message: str, headers: Headers = ()) -> dict[str, Any]:
    listed = [list(header) for header in headers]
    return {"isSuccess": success, "statusCode": status, "body": body, "headers": listed, "errorMessage": message}
