"""Tables of the webhooks: the outbox with its attempts, circuit breakers, and the health of templates.

Deliveries are the one kind of entity that the dataset does not write: the outbox row is inserted by the commit that
caused it (`Dataset.defer_write`), and workers move it on (claim, record). Over OData they are read-only.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from django.db import models

from foundation.enums import EnumType
from foundation.fields import EnumField, GuidField, ReferenceField, SealedJsonField, utc_now
from foundation.models import AggregateRoot, Entity

DELIVERY_STATE = EnumType(
    "Systems.Config.WebHookDeliveriesRepository.State",
    {"Pending": 0, "Delivering": 1, "Delivered": 2, "Failed": 3, "Cancelled": 4, "Suspended": 5},
    edm_name="Systems_Config_WebHookDeliveries_State",
)
#: States in which a delivery holds back later events of its entity.
OPEN_STATES = ("Pending", "Delivering")
FINISHED_STATES = ("Delivered", "Failed", "Cancelled")
REDELIVERABLE_STATES = (*FINISHED_STATES, "Suspended")
#: The last error of what was cancelled with its template.
TEMPLATE_DELETED = "The webhook has been deleted."
_FINISHED = models.Q(finish_time_utc__isnull=False)


class Queue(NamedTuple):
    """Deliveries of one template to one destination (host:port): they share a circuit breaker and a limit."""

    web_hook_id: str
    destination: str


class WebHookDelivery(AggregateRoot):
    """One event of one template: the rendered request and how far its delivery has come.

    web_hook_id           guid of the template; no reference, so that a template can be deleted before its history
    destination           host:port; "-" where the rendered URL has no valid host
    is_host_rendered      a placeholder is part of host or port: only hosts that EGRESS_ALLOW lists are sent to
    sequence              order of the events of one entity and template; see webhooks.outbox
    request_headers       as sent, secrets masked
    headers               [[name, value], …] as sent, for a secret [name, sealed value, true]; a text instead says why
                          there are none
    attempt_count         attempts with an outcome
    claim_count           claims; more than attempts when workers died over it
    claim_token           who may record the outcome; another claim writes another token
    next_attempt_time_utc when it is due; null once finished
    """

    web_hook_id = GuidField()
    web_hook_code = models.CharField(max_length=32)
    repository_name = models.CharField(max_length=128)
    entity_id = GuidField()
    event_type = models.CharField(max_length=64, blank=True)
    rule_code = models.CharField(max_length=16, null=True, blank=True)
    is_test = models.BooleanField(default=False)
    state = EnumField(DELIVERY_STATE, default="Pending")
    destination = models.CharField(max_length=262)
    is_host_rendered = models.BooleanField(default=False)
    sequence = models.BigIntegerField()
    request_url = models.TextField()
    request_headers = models.TextField(blank=True)
    request_body = models.TextField(blank=True)
    headers = SealedJsonField()
    timeout_seconds = models.PositiveSmallIntegerField(default=10)
    max_retries = models.PositiveSmallIntegerField(default=0)
    creation_time_utc = models.DateTimeField(default=utc_now)
    next_attempt_time_utc = models.DateTimeField(null=True, blank=True)
    finish_time_utc = models.DateTimeField(null=True, blank=True)
    attempt_count = models.PositiveSmallIntegerField(default=0)
    claim_count = models.PositiveSmallIntegerField(default=0)
    claim_token = models.CharField(max_length=32, null=True, blank=True)
    lease_until_utc = models.DateTimeField(null=True, blank=True)
    last_status_code = models.PositiveSmallIntegerField(null=True, blank=True)
    last_error = models.CharField(max_length=254, null=True, blank=True)

    objects: ClassVar[models.Manager[WebHookDelivery]]

    class Meta:
        # A commit pays for the first two. They are not partial: SQLite does not use a partial index for a state that
        # comes as a parameter. The others are of finished deliveries, so that it is the worker who writes them.
        indexes = [
            models.Index(fields=["state", "web_hook_id", "destination", "next_attempt_time_utc"], name="delivery_due"),
            models.Index(fields=["web_hook_id", "entity_id", "sequence"], name="delivery_lane"),
            models.Index(fields=["finish_time_utc"], name="delivery_finish", condition=_FINISHED),
            models.Index(fields=["web_hook_id", "finish_time_utc"], name="delivery_web_hook", condition=_FINISHED),
        ]


class WebHookAttempt(Entity):
    """One attempt, written once.

    outcome        "Delivered", "Failed" or "Refused" (never sent: the address is not allowed)
    response_body  the beginning of the answer's body, as text
    """

    delivery = ReferenceField("WebHookDelivery", owner=True)
    attempt_no = models.PositiveSmallIntegerField()
    start_time_utc = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    outcome = models.CharField(max_length=16)
    status_code = models.PositiveSmallIntegerField(null=True, blank=True)
    error = models.CharField(max_length=254, null=True, blank=True)
    address = models.CharField(max_length=64, null=True, blank=True)
    worker = models.CharField(max_length=128, blank=True)
    request_head = models.TextField()
    response_head = models.TextField(null=True, blank=True)
    response_body = models.TextField(null=True, blank=True)

    objects: ClassVar[models.Manager[WebHookAttempt]]


class CircuitBreaker(models.Model):
    """The circuit breaker of one template and destination that failed lately; without failures there is no row.

    open_until       closed while null; nothing is sent before
    probe_until      the lease of the one attempt that half-opens it
    times_opened     openings since the last success
    """

    pk = models.CompositePrimaryKey("web_hook_id", "destination")
    web_hook_id = GuidField()
    destination = models.CharField(max_length=262)
    failures = models.PositiveIntegerField(default=0)
    times_opened = models.PositiveIntegerField(default=0)
    open_until = models.DateTimeField(null=True)
    probe_until = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager[CircuitBreaker]]

    @property
    def queue(self) -> Queue:
        """The queue that the circuit breaker belongs to."""
        return Queue(str(self.web_hook_id), self.destination)


class TemplateHealth(models.Model):
    """The run of failures of a template; one without failures has no row."""

    web_hook_id = GuidField(primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField()
    suspended_at = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager[TemplateHealth]]


class WorkerHeartbeat(models.Model):
    """A worker process and when it was last heard of; see webhooks.heartbeat.

    worker     host:pid
    under_way  attempts that it was sending then
    """

    worker = models.CharField(max_length=128, primary_key=True)
    seen_at = models.DateTimeField()
    under_way = models.PositiveIntegerField(default=0)

    objects: ClassVar[models.Manager[WorkerHeartbeat]]
