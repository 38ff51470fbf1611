"""Sends one attempt over the network, without database access (spec 06, 6.2).

POST; the rendered headers in order; User-Agent unless the template sets it; webhook-id (the delivery's id, the same on
each attempt: the receiver's idempotency key), webhook-timestamp, and with a secret webhook-signature (Standard Webhooks
1.0). 2xx is delivered, everything else is not; redirects are not followed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from foundation import errors, spans
from foundation.egress import client
from foundation.egress.client import EgressFailed, EgressRequest, EgressResponse
from foundation.egress.policy import destination_of
from foundation.fields import utc_now
from foundation.texts import storable
from webhooks.authentication import authentication_schemes
from webhooks.breaker import RECEIVER_DOWN_STATUSES
from webhooks.conf import webhook_settings
from webhooks.demo_destination import sent_to
from webhooks.headers import MASK, Header, header_text, masked, secrets_of, value_of
from webhooks.lease import Lease
from webhooks.reschedule import parse_retry_after

logger = logging.getLogger(__name__)

USER_AGENT = "BusinessPlatform-Webhooks/1.0"
#: The receiver rejects further deliveries (RFC 9110, 15.5.11; Standard Webhooks).
GONE = 410
#: Statuses whose Retry-After is honoured (RFC 9110, 15.6.4; RFC 6585, 4).
_RETRY_AFTER_STATUSES = frozenset({429, 503})
_ERROR_LENGTH = 254


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one attempt.

    delivered      a 2xx response
    permanent      no retry can help: 410, a forbidden address, a request that cannot be sent
    is_receiver_down  the failure counts for the circuit breaker (webhooks.breaker); False if nothing was sent
    """

    started_at: datetime
    duration_ms: int
    delivered: bool
    status: int | None = None
    error: str | None = None
    permanent: bool = False
    is_receiver_down: bool = False
    retry_after: timedelta | None = None
    address: str | None = None
    request_head: str = ""
    response_head: str | None = None
    response_body: str | None = None

    @property
    def name(self) -> str:
        """The outcome in the attempt's row."""
        if self.delivered:
            return "Delivered"
        return "Refused" if self.permanent and self.status is None else "Failed"


@dataclass(slots=True)
class _Clock:
    """Start time of an attempt: wall clock and monotonic clock."""

    at: datetime = field(default_factory=utc_now)
    began: float = field(default_factory=time.perf_counter)

    def milliseconds(self) -> int:
        return round((time.perf_counter() - self.began) * 1000)


def delivery_send(lease: Lease) -> Outcome:
    """Send one leased delivery. Never raises: every error is an outcome."""
    try:
        return _traced(lease)
    except Exception as exc:
        # A bug: without an outcome the run would wait for this attempt until it is killed.
        logger.exception("webhook: an attempt failed", extra={"delivery": lease.delivery_id})
        return _failed(_Clock(), "", f"{type(exc).__name__}: {exc}", permanent=True)


def _traced(lease: Lease) -> Outcome:
    """The outcome of an attempt, in a span if tracing is on."""
    if not spans.are_configured():
        return _attempt(lease)
    with spans.span("POST webhook", kind="CLIENT", traceparent=value_of(lease.headers, "traceparent") or "") as span:
        outcome = _attempt(lease)
        span.describe(
            {
                "http.request.method": "POST",
                "server.address": lease.destination,
                "http.response.status_code": outcome.status or "",  # None without a response
                "platform.web_hook": lease.web_hook_code,
                "platform.delivery": lease.delivery_id,
                "platform.attempt": lease.attempt_no,
            },
            failed=not outcome.delivered,
        )
    return outcome


def _attempt(lease: Lease) -> Outcome:
    clock = _Clock()
    head = ""
    if lease.unreadable:
        return _failed(clock, head, lease.unreadable, permanent=True)
    try:
        headers = sent_headers(lease, timestamp=int(clock.at.timestamp()))
        head = _request_head(lease, headers)
        url, policy = sent_to(lease.url)
        response = client.send(
            EgressRequest(
                "POST",
                url,
                headers,
                lease.body,
                connect_timeout_seconds=webhook_settings().connect_timeout_seconds,
                total_timeout_seconds=lease.timeout_seconds,
                listed_hosts_only=lease.is_host_rendered,
            ),
            policy=policy,
        )
    except EgressFailed as exc:
        return _failed(clock, head, f"{exc.kind}: {exc}", is_receiver_down=True)
    except errors.PlatformError as exc:
        return _failed(clock, head, exc.message, permanent=True)
    except Exception as exc:
        # A bug or an invalid signing secret: shown at the delivery; it must not block other deliveries.
        return _failed(clock, head, f"{type(exc).__name__}: {exc}", permanent=True)
    return _outcome_of_response(clock, head, response, secrets=[*lease.secrets, *secrets_of(headers)])


def sent_headers(lease: Lease, *, timestamp: int) -> list[Header]:
    """Every header but Host and Content-Length, which the HTTP client adds."""
    headers = list(lease.headers)
    if value_of(headers, "User-Agent") is None:
        headers.append(("User-Agent", USER_AGENT))
    headers.append(("webhook-id", lease.delivery_id))
    headers.append(("webhook-timestamp", str(timestamp)))
    return headers + authentication_schemes.headers(
        lease.secrets, message_id=lease.delivery_id, timestamp=timestamp, body=lease.body
    )


def _request_head(lease: Lease, headers: list[Header]) -> str:
    try:
        destination = destination_of(lease.url)
    except ValueError:
        return ""  # an invalid rendered host: nothing is sent, foundation.egress.client says why
    lines = [("Host", destination.host_header), *masked(headers), ("Content-Length", str(len(lease.body)))]
    return f"POST {destination.target} HTTP/1.1\n{header_text(lines)}"


def _failed(
    clock: _Clock, head: str, error: str, *, permanent: bool = False, is_receiver_down: bool = False
) -> Outcome:
    return Outcome(
        clock.at,
        clock.milliseconds(),
        delivered=False,
        error=storable(error)[:_ERROR_LENGTH],
        permanent=permanent,
        is_receiver_down=is_receiver_down,
        request_head=head,
    )


def _outcome_of_response(clock: _Clock, head: str, response: EgressResponse, *, secrets: Sequence[str]) -> Outcome:
    """The outcome of a response; secrets that the receiver echoes are masked in it."""
    delivered = 200 <= response.status < 300
    # Masked before it is truncated, so that no part of a secret remains at the end.
    text = _without(secrets, response.body.decode(errors="replace"))[: webhook_settings().stored_answer_bytes]
    response_head = f"HTTP/1.1 {response.status} {response.reason}\n{header_text(masked(response.headers))}"
    return Outcome(
        clock.at,
        clock.milliseconds(),
        delivered=delivered,
        status=response.status,
        error=None if delivered else storable(_without(secrets, _reason(response)))[:_ERROR_LENGTH],
        permanent=response.status == GONE,
        is_receiver_down=response.status in RECEIVER_DOWN_STATUSES,
        retry_after=parse_retry_after(response.header("Retry-After"))
        if response.status in _RETRY_AFTER_STATUSES
        else None,
        address=response.address,
        request_head=head,
        response_head=storable(_without(secrets, response_head)),
        response_body=storable(text),
    )


def _without(secrets: Sequence[str], text: str) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _reason(response: EgressResponse) -> str:
    if response.status == GONE:
        return "410: the receiver wants this no more"
    if 300 <= response.status < 400:
        return f"{response.status}: redirects are not followed"
    return f"{response.status} {response.reason}".strip()
