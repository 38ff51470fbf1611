"""Licensed sessions, the licence that limits them, and the rate limits (spec 01, 1.8 and 1.9)."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from foundation.fields import guid_primary_key, utc_now
from identity.models.applications import TrustedApplication
from identity.models.users import User


class Session(models.Model):
    """A licensed session of one identity through one application; while open it holds one licence slot.

    key               the `sid` of its tokens, or the id of a reference token
    expires           closing time without a further request; never after `absolute_expires`
    absolute_expires  the end of a service session; None for users
    database_position position that replicas must have replayed for its reads (identity.session_positions)
    """

    id = guid_primary_key()
    key = models.CharField(max_length=64)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="licensed_sessions")
    application = models.ForeignKey(TrustedApplication, on_delete=models.CASCADE, related_name="licensed_sessions")
    is_service = models.BooleanField(default=False)
    client_address = models.CharField(max_length=64, blank=True, default="")
    opened = models.DateTimeField(default=utc_now)
    last_activity = models.DateTimeField(default=utc_now)
    expires = models.DateTimeField()
    absolute_expires = models.DateTimeField(null=True)
    closed = models.DateTimeField(null=True, db_index=True)
    close_reason = models.CharField(max_length=32, blank=True, default="")
    database_position = models.BigIntegerField(default=0)

    objects: ClassVar[models.Manager[Session]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["key"], condition=Q(closed__isnull=True), name="identity_session_open_once")
        ]
        indexes = [
            models.Index(fields=["expires"], condition=Q(closed__isnull=True), name="identity_session_open"),
            models.Index(fields=["opened"], name="identity_session_opened"),
        ]

    def __str__(self) -> str:
        return f"{self.user.login} – {self.application.application_uri}"

    @property
    def is_open(self) -> bool:
        return self.closed is None


class BrowserSignIn(models.Model):
    """A user signed in to the instance's own pages in a browser (identity.browser_sign_ins).

    Deleted with its session.
    """

    session = models.OneToOneField("sessions.Session", on_delete=models.CASCADE, primary_key=True, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="browser_sign_ins")
    user_agent = models.CharField(max_length=300, blank=True)
    client_address = models.CharField(max_length=64, blank=True)
    since = models.DateTimeField()
    last_used = models.DateTimeField()

    objects: ClassVar[models.Manager[BrowserSignIn]]

    def __str__(self) -> str:
        return f"{self.user_id} at {self.client_address}"


class SignInApplication(models.Model):
    """An application that took part in a browser's sign-in (identity.oauth.sign_in); it is notified of the sign-out."""

    sign_in = models.UUIDField()
    application = models.ForeignKey(TrustedApplication, on_delete=models.CASCADE, related_name="+")
    last_joined = models.DateTimeField(db_index=True)

    objects: ClassVar[models.Manager[SignInApplication]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sign_in", "application"], name="identity_signinapplication_once")
        ]

    def __str__(self) -> str:
        return f"{self.application_id} in {self.sign_in}"


class Licence(models.Model):
    """The licence of this instance; one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    sessions = models.PositiveIntegerField(default=25, help_text=_("Concurrent sessions."))
    features = models.JSONField(default=list, blank=True, help_text=_('For example ["AdvancedBpm"].'))

    objects: ClassVar[models.Manager[Licence]]

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="identity_licence_single")]

    def __str__(self) -> str:
        return f"{self.sessions} sessions"


class ReservedSeat(models.Model):
    """Slots that are reserved for a user."""

    licence = models.ForeignKey(Licence, on_delete=models.CASCADE, related_name="reserved_seats", default=1)
    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="reserved_seat")
    seats = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1)])

    objects: ClassVar[models.Manager[ReservedSeat]]

    def __str__(self) -> str:
        return f"{self.seats} for {self.user}"


class RateLimits(models.Model):
    """Requests a minute; 0 means no limit. One row; a change applies to the next request."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    application_per_minute = models.PositiveIntegerField(
        default=0, help_text=_("API requests of one application, unless it has a limit of its own.")
    )
    user_per_minute = models.PositiveIntegerField(
        default=0, help_text=_("API requests of one user of one application.")
    )
    token_per_minute = models.PositiveIntegerField(default=0, help_text=_("Token requests of one application."))
    token_failures_per_minute = models.PositiveIntegerField(
        default=30, help_text=_("Wrong secrets of one application, or unknown tokens, from one address.")
    )
    login_failures_per_minute = models.PositiveIntegerField(
        default=10, help_text=_("Failed logins of one login name from one address; further tries are slowed down.")
    )
    login_address_per_minute = models.PositiveIntegerField(
        default=60, help_text=_("Failed logins from one address; further tries are slowed down.")
    )
    sessions_per_minute = models.PositiveIntegerField(
        default=60, help_text=_("Sessions that one user of one application opens.")
    )

    objects: ClassVar[models.Manager[RateLimits]]

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="identity_ratelimits_single")]
        verbose_name = verbose_name_plural = "rate limits"

    def __str__(self) -> str:
        return "Rate limits"
