"""Forms of the pages about second factors."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class CodeForm(forms.Form):
    """A code of the authenticator app."""

    code = forms.CharField(
        label=_("Code"),
        max_length=16,
        help_text=_("The six digits that the app shows now."),
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric"}),
    )


class RecoveryForm(forms.Form):
    """A recovery code."""

    recovery_code = forms.CharField(
        label=_("Recovery code"),
        max_length=64,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )


class PasskeyForm(forms.Form):
    """The name of a passkey, and the browser's response in a registration."""

    name = forms.CharField(
        label=_("Name"), max_length=64, help_text=_("By which you tell it from others: Phone, Security key at work")
    )
    state = forms.CharField(widget=forms.HiddenInput, required=False)
    credential = forms.CharField(widget=forms.HiddenInput, required=False)
