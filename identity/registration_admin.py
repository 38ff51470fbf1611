"""Admin pages of dynamic client registration: the policy, and initial access tokens."""

from __future__ import annotations

import datetime

from django import forms
from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from identity.admin_bases import IssuingAdmin, SingleRowAdmin
from identity.models import RegistrationPolicy, RegistrationToken
from identity.oauth.registration import registration_token_issue


@admin.register(RegistrationPolicy)
class RegistrationPolicyAdmin(SingleRowAdmin):
    """Whether applications may register themselves; a change applies to the next request."""

    fields = ("is_allowed", "document_hosts", "scopes", "needs_approval")
    list_display = ("__str__", "is_allowed", "document_hosts", "scopes", "needs_approval")


class RegistrationTokenForm(forms.ModelForm):  # type: ignore[type-arg]
    """A new token: its name, number of uses and lifetime."""

    uses = forms.IntegerField(label=_("Applications"), min_value=1, max_value=1000, initial=1)
    days = forms.IntegerField(label=_("Days"), min_value=1, max_value=365, initial=7)

    class Meta:
        model = RegistrationToken
        fields = ("name",)

    def save(self, commit: bool = True) -> RegistrationToken:
        given = self.cleaned_data
        lifetime = datetime.timedelta(days=given["days"])
        self.token, row = registration_token_issue(name=given["name"], uses=given["uses"], lifetime=lifetime)
        self.instance = row
        return row

    def save_m2m(self) -> None:
        """Nothing to save."""


@admin.register(RegistrationToken)
class RegistrationTokenAdmin(IssuingAdmin):
    """Initial access tokens; a new one is shown once, and deleting one revokes it."""

    form = RegistrationTokenForm
    list_display = ("name", "uses_left", "created", "expires")
    ordering = ("-created",)
