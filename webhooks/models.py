"""Tables of webhooks: the outbox with its attempts, circuit breakers, and the health of templates.

The dataset does not write deliveries and attempts: the causing commit inserts the outbox row (`Dataset.defer_write`),
workers update it and insert its attempts (lease, record). Over OData both are read-only.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from django.db import models

from foundation.enums import EnumType
from foundation.fields import EncryptedJsonField, EnumField, GuidField, ReferenceField, utc_now
from foundation.models import AggregateRoot, Entity

DELIVERY_STATE = EnumType(
    "Systems.Config.WebHookDeliveriesRepository.State",
    {"Pending": 0, "Delivering": 1, "Delivered": 2, "Failed": 3, "Cancelled": 4, "Suspended": 5},
    edm_name="Systems_Config_WebHookDeliveries_State",
)
#: States in which a delivery blocks later events of its entity.
OPEN_STATES = ("Pending", "Delivering")
FINISHED_STATES = ("Delivered", "Failed", "Cancelled")
REDELIVERABLE_STATES = (*FINISHED_STATES, "Suspended")
#: The last error of deliveries that were cancelled with their template.
TEMPLATE_DELETED = "The webhook has been deleted."
_FINISHED = models.Q(finish_time_utc__isnull=False)


class Queue(NamedTuple):
    """Deliveries of one template to one destination (host:port): they share a circuit breaker and a limit."""

    web_hook_id: str
    destination: str


class WebHookDelivery(AggregateRoot):
    """One event of one template: the rendered request and the state of its delivery.

    web_hook_id           guid of the template; no reference, so that a template can be deleted before its history
    destination           host:port; "-" if the rendered URL has no valid host
    is_host_rendered      a placeholder is part of host or port: only hosts in EGRESS_ALLOW are allowed
    sequence              order of the events of one entity and template; see webhooks.outbox
    request_headers       as sent, secrets masked
    headers               [[name, value], …] as sent, for a secret [name, encrypted value, true]; or a text: the reason
                          why there are no headers
    read_repositories     the repositories, each between spaces, that the request has data of besides the entity's own
    attempt_count         attempts with an outcome
    lease_count           leases; more than attempts if workers died while they held one
    lease_token           identifies the holder, who may record the outcome; each lease has a new token
    next_attempt_time_utc due time; null once finished
    """

    # No index: each attempt changes it, and clients do not poll deliveries by it.
    aggregate_last_update_time_utc = models.DateTimeField(null=True, editable=False)
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
    headers = EncryptedJsonField()
    read_repositories = models.TextField(blank=True, default="")
    timeout_seconds = models.PositiveSmallIntegerField(default=10)
    max_retries = models.PositiveSmallIntegerField(default=0)
    creation_time_utc = models.DateTimeField(default=utc_now)
    next_attempt_time_utc = models.DateTimeField(null=True, blank=True)
    finish_time_utc = models.DateTimeField(null=True, blank=True)
    attempt_count = models.PositiveSmallIntegerField(default=0)
    lease_count = models.PositiveSmallIntegerField(default=0)
    lease_token = models.CharField(max_length=32, null=True, blank=True)
    lease_until_utc = models.DateTimeField(null=True, blank=True)
    last_status_code = models.PositiveSmallIntegerField(null=True, blank=True)
    last_error = models.CharField(max_length=254, null=True, blank=True)

    objects: ClassVar[models.Manager[WebHookDelivery]]

    class Meta:
        # A commit writes the first two indexes. They are not partial: SQLite does not use a partial index for a state
        # that is a parameter. The others index finished deliveries, so the worker writes them.
        indexes = [
            models.Index(fields=["state", "web_hook_id", "destination", "next_attempt_time_utc"], name="delivery_due"),
            models.Index(fields=["web_hook_id", "state", "entity_id", "sequence"], name="delivery_order"),
            models.Index(fields=["finish_time_utc"], name="delivery_finish", condition=_FINISHED),
            models.Index(fields=["web_hook_id", "finish_time_utc"], name="delivery_web_hook", condition=_FINISHED),
        ]


class WebHookAttempt(Entity):
    """One attempt; written once.

    outcome        "Delivered", "Failed" or "Refused" (never sent: the address is not allowed)
    response_body  the beginning of the response's body, as text
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
    """The circuit breaker of one template and destination with recent failures; without failures there is no row.

    open_until       closed while null; nothing is sent before
    probe_until      the lease of the one probe
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
        return Queue(str(self.web_hook_id), self.destination)


class TemplateAuthor(models.Model):
    """The user who saved a template last (domain.dataset.checks.authors)."""

    web_hook_id = GuidField(primary_key=True)
    author = models.CharField(max_length=36, default="", blank=True)

    objects: ClassVar[models.Manager[TemplateAuthor]]


class TemplateHealth(models.Model):
    """The run of failures of a template; no row without failures."""

    web_hook_id = GuidField(primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField()
    suspended_at = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager[TemplateHealth]]


class WorkerHeartbeat(models.Model):
    """A worker process and its last heartbeat; see webhooks.heartbeat.

    worker  host:pid
    """

    worker = models.CharField(max_length=128, primary_key=True)
    seen_at = models.DateTimeField()

    objects: ClassVar[models.Manager[WorkerHeartbeat]]
