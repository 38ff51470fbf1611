"""Forms of the pages for people."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.password_validation import password_validators_help_text_html, validate_password
from django.core.exceptions import ValidationError
from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from identity.models import TrustedApplication, User
from identity.reference_tokens import scopes_for
from identity.scopes import API_SCOPES, DESCRIPTIONS

_DAYS = [(7, _("7 days")), (30, _("30 days")), (90, _("90 days")), (365, _("1 year"))]


def _scope_label(scope: str) -> str:
    """The scope with what it means, where it means something."""
    return f"{scope} – {gettext(DESCRIPTIONS[scope])}" if scope in DESCRIPTIONS else scope


class LoginForm(forms.Form):
    """Login and password."""

    login = forms.CharField(
        label=_("Login"),
        max_length=64,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none", "autofocus": True}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=1024,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class ResetForm(forms.Form):
    """Whose password it is."""

    login = forms.CharField(
        label=_("Login"), max_length=64, widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True})
    )


class NewPasswordForm(forms.Form):
    """A new password, twice."""

    new_password = forms.CharField(
        label=_("New password"),
        strip=False,
        max_length=1024,
        help_text=lazy(password_validators_help_text_html, str)(),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    repeated = forms.CharField(
        label=_("New password again"), strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        new = data.get("new_password")
        if new and new != data.get("repeated"):
            self.add_error("repeated", _("The two passwords differ."))
        if new:
            try:
                validate_password(new, self.user)
                if self.user.check_password(new):
                    raise ValidationError(_("This is the password that the account has already."), code="same")
            except ValidationError as exc:
                self.add_error("new_password", exc)
        return data


class CurrentPasswordForm(forms.Form):
    """Asks for the password that the user has."""

    user: User
    refusal: str
    old_password = forms.CharField(
        label=_("Current password"), strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )

    def clean_old_password(self) -> str:
        """Whoever finds an open browser must not take the account over."""
        if self.refusal:
            raise ValidationError(self.refusal, code="limited")
        old: str = self.cleaned_data["old_password"]
        if not self.user.check_password(old):
            raise ValidationError(_("The current password is wrong."), code="wrong")
        return old


class EmailForm(CurrentPasswordForm):
    """Another e-mail address of one's own."""

    email = forms.EmailField(
        label=_("New e-mail address"), max_length=254, widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )
    field_order = ("email", "old_password")

    def __init__(self, user: User, *args: Any, refusal: str = "", **kwargs: Any) -> None:
        """`refusal`: as of PasswordForm."""
        super().__init__(*args, **kwargs)
        self.user, self.refusal = user, refusal


class PasswordForm(CurrentPasswordForm, NewPasswordForm):
    """The old password, and the new one twice."""

    ends_access = forms.BooleanField(
        label=_("Sign applications out everywhere and revoke my personal tokens"), required=False, initial=True
    )
    field_order = ("old_password", "new_password", "repeated", "ends_access")

    def __init__(self, user: User, *args: Any, refusal: str = "", **kwargs: Any) -> None:
        """`refusal` says why the current password is not even looked at."""
        super().__init__(user, *args, **kwargs)
        self.refusal = refusal


class ReferenceTokenForm(forms.Form):
    """A new personal token, for one of the applications that allow it."""

    name = forms.CharField(label=_("What is it for?"), max_length=254)
    application_id = forms.ChoiceField(label=_("Application"))
    scopes = forms.MultipleChoiceField(label=_("Scopes"), widget=forms.CheckboxSelectMultiple)
    days = forms.TypedChoiceField(label=_("Lifetime"), choices=_DAYS, coerce=int, initial=30)

    def __init__(self, applications: list[TrustedApplication], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.applications = {str(found.pk): found for found in applications}
        choice = self.fields["application_id"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [(str(found.pk), found.name) for found in applications]
        possible = {scope for found in applications for scope in scopes_for(found)}
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)
        scopes.choices = [(scope, _scope_label(scope)) for scope in API_SCOPES if scope in possible]

    @property
    def application(self) -> TrustedApplication:
        """The chosen application; after validation."""
        return self.applications[self.cleaned_data["application_id"]]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        application = self.applications.get(data.get("application_id", ""))
        if application is not None:
            beyond = set(data.get("scopes", [])) - set(scopes_for(application))
            if beyond:
                self.add_error("scopes", _("This application may not have: %s") % ", ".join(sorted(beyond)))
        return data
