"""Event sinks: message brokers to which the change stream is delivered, and their progress (spec 13, 13.5)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from foundation.fields import EncryptedTextField, utc_now
from identity.models import User


class EventSink(models.Model):
    """A broker, the destination of events in it, and the selection of events.

    servers       host[:port], separated by commas; of RabbitMQ with /virtual-host
    destination   the first part of NATS subjects, RabbitMQ's exchange, or Kafka's topic
    repositories  names, separated by commas; "" for all, also future ones
    operations    Create, Update, Delete, separated by commas; "" for all
    reader        user with whose rights events are read; nothing is delivered without an active reader
    """

    class Broker(models.TextChoices):
        """Each has a module in event_sinks.brokers."""

        NATS = "NATS", _("NATS JetStream")
        RABBITMQ = "RabbitMQ", "RabbitMQ"
        KAFKA = "Kafka", "Apache Kafka"

    name = models.CharField(_("Name"), max_length=100, unique=True)
    is_active = models.BooleanField(_("Active"), default=True)
    broker = models.CharField(_("Broker"), max_length=16, choices=Broker.choices)
    servers = models.CharField(
        _("Servers"),
        max_length=500,
        help_text=_(
            "host:port, several separated by commas; of RabbitMQ followed by /virtual-host. The setting EGRESS_ALLOW"
            " must list each host."
        ),
    )
    uses_tls = models.BooleanField(_("TLS"), default=True)
    user_name = models.CharField(_("User name"), max_length=254, blank=True, default="")
    password = EncryptedTextField(_("Password"), null=True, blank=True)
    destination = models.CharField(
        _("Destination"),
        max_length=200,
        help_text=_("The first part of NATS subjects, RabbitMQ's exchange, or Kafka's topic."),
    )
    repositories = models.TextField(
        _("Repositories"),
        blank=True,
        default="",
        help_text=_("Names separated by commas, for example Crm.Sales.SalesOrders. Empty: all of them."),
    )
    operations = models.CharField(
        _("Events"),
        max_length=40,
        blank=True,
        default="",
        help_text=_("Create, Update, Delete, separated by commas. Empty: all of them."),
    )
    reader = models.ForeignKey(
        User,
        verbose_name=_("Reader"),
        on_delete=models.DO_NOTHING,
        # The dataset deletes users, and follows only references between entities.
        db_constraint=False,
        related_name="+",
        help_text=_("Events are delivered as this user may read them."),
    )

    objects: ClassVar[models.Manager[EventSink]]

    class Meta:
        ordering = ("name",)
        verbose_name = _("event sink")
        verbose_name_plural = _("event sinks")

    def __str__(self) -> str:
        return self.name


class SinkState(models.Model):
    """The progress of a sink, separate from its configuration.

    last            position in the change feed up to which the broker has confirmed all events
    moved_at        time of the last change of the position
    delivered       number of confirmed events, including repeated ones
    failures        failed attempts since the last success, the first of them at failing_since
    last_error      of the last failed attempt, in English; "" after a success
    next_attempt    earliest time of the next attempt
    lease_token     of the worker that delivers; another may take over after lease_until
    """

    sink = models.OneToOneField(EventSink, primary_key=True, on_delete=models.CASCADE, related_name="state")
    last = models.BigIntegerField(default=0)
    moved_at = models.DateTimeField(default=utc_now)
    delivered = models.BigIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    last_error = models.TextField(default="")
    next_attempt = models.DateTimeField(default=utc_now)
    lease_token = models.CharField(max_length=32, default="")
    lease_until = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager[SinkState]]

    def __str__(self) -> str:
        return f"{self.sink} at {self.last}"
