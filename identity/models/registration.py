"""Dynamic client registration (RFC 7591): the administrator's policy, and the tokens that allow one to register."""

from __future__ import annotations

from typing import ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from foundation.fields import guid_primary_key, utc_now
from identity.scopes import ALL_SCOPES


class RegistrationPolicy(models.Model):
    """Whether applications may register themselves, and what they may get. One row; none: they may not."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    is_allowed = models.BooleanField(
        _("Applications may register themselves"),
        default=False,
        help_text=_("With an initial access token that an administrator has given to them (RFC 7591)."),
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

    def clean(self) -> None:
        """Raises ValidationError for scopes that do not exist, or are for services alone."""
        wrong = [scope for scope in self.scopes.split() if scope not in ALL_SCOPES]
        if wrong:
            raise ValidationError({"scopes": _now("Unknown scopes: %(scopes)s.") % {"scopes": ", ".join(wrong)}})


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
