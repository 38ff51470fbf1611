"""Tables of the instance itself."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class RecordedRequest(models.Model):
    """A failed or slow request (platform_site.recorded_requests), without body and secrets.

    request_id    X-Request-Id of the response; a caller may send several requests with one id
    path          below /api/ with the query string
    error_type    type of the error (spec 07), or its name in OAuth or SCIM; "" if the response has neither
    failed_parts  failed parts of a batch or objects of an import; the error is that of the first
    rule_id       guid of the business rule that raised the error; "" for none
    caller        the caller whose bounds apply: user and application, or the client's address
    process       host name and process id
    """

    request_id = models.CharField(_("Request id"), max_length=64, db_index=True)
    at = models.DateTimeField(_("Time"), db_index=True)
    method = models.CharField(_("Method"), max_length=16)
    path = models.TextField(_("Path"))
    status = models.PositiveSmallIntegerField(_("Status"))
    error_type = models.CharField(_("Error"), max_length=64, blank=True)
    error_code = models.IntegerField(_("Error code"), null=True)
    message = models.TextField(_("Message"), blank=True)
    failed_parts = models.PositiveIntegerField(_("Failed parts"), default=0)
    duration_ms = models.FloatField(_("Duration"))
    queries = models.PositiveIntegerField(_("Database queries"))
    user_id = models.CharField(max_length=36, blank=True)
    user_login = models.CharField(_("User"), max_length=64, blank=True)
    application = models.CharField(_("Application"), max_length=254, blank=True)
    session_id = models.CharField(_("Session"), max_length=36, blank=True)
    client_address = models.CharField(_("Address"), max_length=64, blank=True)
    rule_id = models.CharField(_("Business rule"), max_length=36, blank=True)
    caller = models.CharField(max_length=300)
    process = models.CharField(_("Process"), max_length=80)

    objects: ClassVar[models.Manager[RecordedRequest]]

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("failed or slow request")
        verbose_name_plural = _("failed and slow requests")
        indexes = [models.Index(fields=["caller", "id"], name="recorded_by_caller")]

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.status}"
