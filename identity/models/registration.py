"""Dynamic client registration: its policy, and initial access tokens (RFC 7591)."""

from __future__ import annotations

import re
from typing import ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.http.request import validate_host
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from foundation.fields import guid_primary_key, utc_now
from identity.scopes import ALL_SCOPES

# Also a whole domain; no "*", which would be every host.
_HOST = re.compile(r"\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*(:[1-9][0-9]{0,4})?")


class RegistrationPolicy(models.Model):
    """The policy of applications that register themselves. One row; without it they may not.

    document_hosts  "host", ".domain" for it and all names below, "host:port" for another port than 443
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    is_allowed = models.BooleanField(
        _("Applications may register themselves"),
        default=False,
        help_text=_("With an initial access token that an administrator has given to them (RFC 7591)."),
    )
    document_hosts = models.TextField(
        _("Hosts of metadata documents"),
        default="",
        blank=True,
        help_text=_(
            "Applications with a client ID metadata document at one of these hosts may be used, without a token: host "
            "names with spaces between, .example.com for all names of a domain. Empty: none."
        ),
    )
    scopes = models.CharField(
        _("Scopes"),
        max_length=254,
        default="openid profile email",
        blank=True,
        help_text=_("What such an application may ask for, with spaces between."),
    )
    needs_approval = models.BooleanField(
        _("Disabled at first"),
        default=True,
        help_text=_("A new application is disabled until an administrator enables it."),
    )

    objects: ClassVar[models.Manager[RegistrationPolicy]]

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="identity_registrationpolicy_single")]
        verbose_name = verbose_name_plural = "registration policy"

    def __str__(self) -> str:
        return "Registration policy"

    def admits_document(self, host: str, port: int) -> bool:
        """Whether a metadata document may be at this host, in lower case."""
        entries = (entry.partition(":") for entry in self.document_hosts.split())
        return any(validate_host(host, [name]) and port == int(given or 443) for name, _colon, given in entries)

    def clean(self) -> None:
        """Raises ValidationError for wrong hosts, and for scopes that do not exist or are for services alone."""
        self.document_hosts = " ".join(self.document_hosts.lower().split())
        for entry in self.document_hosts.split():
            if not _HOST.fullmatch(entry):
                text = gettext(
                    "%(entry)s is not a host name such as app.example.com, .example.com or app.example.com:8443."
                )
                raise ValidationError({"document_hosts": text % {"entry": entry}})
        wrong = [scope for scope in self.scopes.split() if scope not in ALL_SCOPES]
        if wrong:
            raise ValidationError({"scopes": gettext("Unknown scopes: %(scopes)s.") % {"scopes": ", ".join(wrong)}})


class RegistrationToken(models.Model):
    """An initial access token (RFC 7591, 3); only its digest is stored. Deleting it revokes it.

    uses_left  applications that may still be registered with it
    """

    id = guid_primary_key()
    digest = models.CharField(max_length=64, unique=True, editable=False)
    name = models.CharField(_("Name"), max_length=100, help_text=_("For whom it is; noted at each application."))
    uses_left = models.PositiveSmallIntegerField(_("Applications left"))
    created = models.DateTimeField(default=utc_now, editable=False)
    expires = models.DateTimeField()

    objects: ClassVar[models.Manager[RegistrationToken]]

    class Meta:
        verbose_name = "initial access token"

    def __str__(self) -> str:
        return self.name
