"""Forms of the account pages."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.password_validation import password_validators_help_text_html, validate_password
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from foundation import errors
from identity.limited_pages import limited_text
from identity.models import TrustedApplication, User
from identity.password_checks import password_is_right
from identity.reference_tokens import scopes_for
from identity.scopes import API_SCOPES, DESCRIPTIONS

_DAYS = [(7, _("7 days")), (30, _("30 days")), (90, _("90 days")), (365, _("1 year"))]


def _scope_label(scope: str) -> str:
    """The scope with its description, if it has one."""
    return f"{scope} – {gettext(DESCRIPTIONS[scope])}" if scope in DESCRIPTIONS else scope


class LoginForm(forms.Form):
    """Login and password."""

    login = forms.CharField(
        label=_("Login"),
        max_length=64,
        widget=forms.TextInput(
            attrs={"autocomplete": "username webauthn", "autocapitalize": "none", "autofocus": True}
        ),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=1024,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class ResetForm(forms.Form):
    """Login of the user who forgot the password."""

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
        label=_("New password again"),
        strip=False,
        max_length=1024,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
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
                if self.is_present_password(new):
                    raise ValidationError(_("This is the password that the account has already."), code="same")
            except ValidationError as exc:
                self.add_error("new_password", exc)
        return data

    def is_present_password(self, password: str) -> bool:
        """Whether the password is the user's current one."""
        return self.user.check_password(password)


class CurrentPasswordForm(forms.Form):
    """A form that requires the current password."""

    request: HttpRequest
    user: User
    #: The refusal after too many attempts; a view may set it before the validation.
    limited: errors.TooManyRequests | None = None
    old_password = forms.CharField(
        label=_("Current password"),
        strip=False,
        max_length=1024,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def clean_old_password(self) -> str:
        """Check the current password, so that an unattended browser is not enough to take over the account."""
        old: str = self.cleaned_data["old_password"]
        right = False
        if self.limited is None:
            try:
                right = password_is_right(self.request, self.user, old)
            except errors.TooManyRequests as limited:
                self.limited = limited
        if self.limited is not None:
            raise ValidationError(limited_text(self.limited), code="limited")
        if not right:
            raise ValidationError(_("The current password is wrong."), code="wrong")
        return old


class EmailForm(CurrentPasswordForm):
    """A new e-mail address."""

    email = forms.EmailField(
        label=_("New e-mail address"), max_length=254, widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )
    field_order = ("email", "old_password")

    def __init__(self, request: HttpRequest, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request, self.user = request, user


class PasswordForm(CurrentPasswordForm, NewPasswordForm):
    """The old password, and the new one twice."""

    ends_access = forms.BooleanField(
        label=_("Sign applications out everywhere and revoke my personal tokens"), required=False, initial=True
    )
    field_order = ("old_password", "new_password", "repeated", "ends_access")

    def __init__(self, request: HttpRequest, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.request = request

    def is_present_password(self, password: str) -> bool:
        """Whether the password is the current one; False if the old password is wrong, so that the form reveals
        nothing.
        """
        return password == self.cleaned_data.get("old_password")


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
        """The chosen application; call after validation."""
        return self.applications[self.cleaned_data["application_id"]]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        application = self.applications.get(data.get("application_id", ""))
        if application is not None:
            beyond = set(data.get("scopes", [])) - set(scopes_for(application))
            if beyond:
                self.add_error("scopes", _("This application may not have: %s") % ", ".join(sorted(beyond)))
        return data
