"""One attempt: exactly the request of the delivery, over the network, with nothing of the database (spec 06, 6.2).

POST; the rendered headers in their order; User-Agent unless the template has its own; webhook-id (the delivery's id,
the same on each attempt: the receiver's idempotency key), webhook-timestamp, and with a secret webhook-signature as
Standard Webhooks 1.0 says. 2xx is delivered, everything else is not; a redirect is an answer like any other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from foundation import errors, spans
from foundation.egress import client
from foundation.egress.client import EgressFailed, EgressRequest, EgressResponse
from foundation.egress.policy import destination_of
from foundation.fields import utc_now
from webhooks.breaker import TROUBLE_STATUSES
from webhooks.claim import Claim
from webhooks.conf import webhook_settings
from webhooks.headers import MASK, Header, header_text, masked, secrets_of, value_of
from webhooks.reschedule import parse_retry_after
from webhooks.signing import signature_header

USER_AGENT = "BusinessPlatform-Webhooks/1.0"
#: The receiver says that it never wants this again (RFC 9110, 15.5.11; Standard Webhooks).
GONE = 410
#: Answers whose Retry-After is honoured (RFC 9110, 15.6.4; RFC 6585, 4).
_PATIENT = frozenset({429, 503})
_ERROR_LENGTH = 254


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt.

    delivered      a 2xx answer
    permanent      no retry would help: 410, an address that is not allowed, a request that cannot be sent
    host_trouble   the failure counts for the circuit breaker (webhooks.breaker); False for refusals of our own
    """

    started_at: datetime
    duration_ms: int
    delivered: bool
    status: int | None = None
    error: str | None = None
    permanent: bool = False
    host_trouble: bool = False
    retry_after: timedelta | None = None
    address: str | None = None
    request_head: str = ""
    response_head: str | None = None
    response_body: str | None = None

    @property
    def name(self) -> str:
        """As the attempt's row says it."""
        if self.delivered:
            return "Delivered"
        return "Refused" if self.permanent and self.status is None else "Failed"


@dataclass(slots=True)
class _Clock:
    """When the attempt began, by the calendar and by the stopwatch."""

    at: datetime = field(default_factory=utc_now)
    began: float = field(default_factory=time.perf_counter)

    def milliseconds(self) -> int:
        return round((time.perf_counter() - self.began) * 1000)


def delivery_send(claim: Claim) -> Outcome:
    """Send one claimed delivery. Never raises: whatever happens is the outcome."""
    if not spans.are_wanted():
        return _attempt(claim)
    with spans.span("POST webhook", kind="CLIENT", traceparent=value_of(claim.headers, "traceparent") or "") as span:
        outcome = _attempt(claim)
        span.tell(
            {
                "http.request.method": "POST",
                "server.address": claim.destination,
                "http.response.status_code": outcome.status or "",  # none where nobody answered
                "platform.web_hook": claim.web_hook_code,
                "platform.delivery": claim.delivery_id,
                "platform.attempt": claim.attempt_no,
            },
            failed=not outcome.delivered,
        )
    return outcome


def _attempt(claim: Claim) -> Outcome:
    clock = _Clock()
    head = ""
    if claim.unreadable:
        return _failed(clock, head, claim.unreadable, permanent=True)
    try:
        headers = sent_headers(claim, timestamp=int(clock.at.timestamp()))
        head = _request_head(claim, headers)
        answer = client.send(
            EgressRequest(
                "POST",
                claim.url,
                headers,
                claim.body,
                connect_timeout_seconds=webhook_settings().connect_timeout_seconds,
                total_timeout_seconds=claim.timeout_seconds,
                listed_hosts_only=claim.is_host_rendered,
            )
        )
    except EgressFailed as exc:
        return _failed(clock, head, f"{exc.kind}: {exc}", host_trouble=True)
    except errors.PlatformError as exc:
        return _failed(clock, head, exc.message, permanent=True)
    except Exception as exc:
        # A bug of ours or a signing secret that is none: visible at the delivery, and no other one must wait for it.
        return _failed(clock, head, f"{type(exc).__name__}: {exc}", permanent=True)
    return _answered(clock, head, answer, secrets=[*claim.secrets, *secrets_of(headers)])


def sent_headers(claim: Claim, *, timestamp: int) -> list[Header]:
    """Every header but Host and Content-Length, which belong to the connection."""
    headers = list(claim.headers)
    if value_of(headers, "User-Agent") is None:
        headers.append(("User-Agent", USER_AGENT))
    headers.append(("webhook-id", claim.delivery_id))
    headers.append(("webhook-timestamp", str(timestamp)))
    if claim.secrets:
        signature = signature_header(claim.secrets, message_id=claim.delivery_id, timestamp=timestamp, body=claim.body)
        headers.append(("webhook-signature", signature))
    return headers


def _request_head(claim: Claim, headers: list[Header]) -> str:
    try:
        destination = destination_of(claim.url)
    except ValueError:
        return ""  # a rendered host that is none: nothing is sent, foundation.egress.client says why
    lines = [("Host", destination.host_header), *masked(headers), ("Content-Length", str(len(claim.body)))]
    return f"POST {destination.target} HTTP/1.1\n{header_text(lines)}"


def _failed(clock: _Clock, head: str, error: str, *, permanent: bool = False, host_trouble: bool = False) -> Outcome:
    return Outcome(
        clock.at,
        clock.milliseconds(),
        delivered=False,
        error=error[:_ERROR_LENGTH],
        permanent=permanent,
        host_trouble=host_trouble,
        request_head=head,
    )


def _answered(clock: _Clock, head: str, answer: EgressResponse, *, secrets: Sequence[str]) -> Outcome:
    """What is kept of the answer; secrets that the receiver sends back are masked in it."""
    delivered = 200 <= answer.status < 300
    # Masked before it is cut, so that no secret is cut in two and its beginning kept.
    text = _without(secrets, answer.body.decode(errors="replace"))[: webhook_settings().stored_answer_bytes]
    text = text.replace("\x00", "\ufffd")
    response_head = f"HTTP/1.1 {answer.status} {answer.reason}\n{header_text(masked(answer.headers))}"
    return Outcome(
        clock.at,
        clock.milliseconds(),
        delivered=delivered,
        status=answer.status,
        error=None if delivered else _without(secrets, _reason(answer))[:_ERROR_LENGTH],
        permanent=answer.status == GONE,
        host_trouble=answer.status in TROUBLE_STATUSES,
        retry_after=parse_retry_after(answer.header("Retry-After")) if answer.status in _PATIENT else None,
        address=answer.address,
        request_head=head,
        response_head=_without(secrets, response_head),
        response_body=text,
    )


def _without(secrets: Sequence[str], text: str) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _reason(answer: EgressResponse) -> str:
    if answer.status == GONE:
        return "410: the receiver wants this no more"
    if 300 <= answer.status < 400:
        return f"{answer.status}: redirects are not followed"
    return f"{answer.status} {answer.reason}".strip()
