"""The query parameters of a link (docs/guides/integrators.md): checked one by one, then together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.translation import gettext as _

from identity.applications import PAGE_APPLICATIONS, url_problem
from identity.scopes import KNOWN_SCOPES, SERVICE_TOKEN_SCOPES


class NameField(forms.ChoiceField):
    """A choice among names, in any case; the default without the parameter."""

    def __init__(self, names: Sequence[str], default: str) -> None:
        super().__init__(choices=[(name, name) for name in names], required=False)
        self.default = default
        self._names = {name.lower(): name for name in names}

    def to_python(self, value: Any) -> str:
        text = str(value or "")
        return self._names.get(text.lower(), text) or self.default

    def validate(self, value: str) -> None:
        if value not in self._names.values():
            expected = ", ".join(self._names.values())
            raise ValidationError(_("It must be one of: %(names)s.") % {"names": expected})


class UriField(forms.CharField):
    """The identity of an application: its client_id."""

    def __init__(self) -> None:
        super().__init__(max_length=254, strip=False)

    def validate(self, value: str) -> None:
        super().validate(value)
        if not value.isprintable() or any(character.isspace() for character in value):
            raise ValidationError(_("It must not contain spaces or control characters."))
        if value in PAGE_APPLICATIONS:
            raise ValidationError(_("This is an application of the platform itself."))


class LinkForm(forms.Form):
    """The parameters of a link. Repeated parameters are problems; unknown ones are ignored and reported."""

    applicationUri = UriField()

    def __init__(self, query: QueryDict) -> None:
        super().__init__({name: query.get(name, "") for name in query})
        self.unknown = sorted(name for name in query if name not in self.fields)
        self._repeated = [name for name, values in query.lists() if len(values) > 1 and name in self.fields]

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        for name in self._repeated:
            self.add_error(name, _("It is given more than once."))
        return given

    def problems(self) -> list[tuple[str, str]]:
        """(parameter, problem), in order."""
        return [(name, str(text)) for name, texts in self.errors.items() for text in texts]


class InstallForm(LinkForm):
    """The parameters of /manage/apps/install."""

    applicationName = forms.CharField(max_length=254, required=False)
    clientType = NameField(("Confidential", "Public", "None"), "None")
    redirectUri = forms.CharField(max_length=500, required=False)
    impersonate = NameField(("none", "internal", "all"), "none")
    requestSecret = NameField(("true", "false"), "false")
    serviceAccess = NameField(("none", "clientCredentials", "referenceToken"), "none")
    referenceTokens = NameField(("none", "authenticatedUsers", "administratorsOnly"), "none")
    scope = forms.CharField(max_length=1000, required=False)

    def clean_redirectUri(self) -> str:
        """A single URI: refuses a comma, which separates URIs in the stored list."""
        uri: str = self.cleaned_data["redirectUri"]
        if uri and "," in uri:
            raise ValidationError(_("It must be one address, without a comma."))
        if uri and (problem := url_problem(uri)):
            raise ValidationError(problem)
        return uri

    def clean_scope(self) -> str:
        """Known scopes, each once."""
        scopes = list(dict.fromkeys(self.cleaned_data["scope"].split()))
        if unknown := [scope for scope in scopes if scope not in KNOWN_SCOPES]:
            raise ValidationError(_("Unknown scopes: %(scopes)s.") % {"scopes": ", ".join(unknown)})
        return " ".join(scopes)

    def clean(self) -> dict[str, Any]:
        """The rules between parameters."""
        given = super().clean()
        if self.errors:
            return given
        signs_in, service = given["impersonate"] != "none", given["serviceAccess"]
        if signs_in and not given["redirectUri"]:
            self.add_error("redirectUri", _("An application that signs people in needs the address to return to."))
        if given["clientType"] == "Public":
            self._check_public(given, signs_in=signs_in)
        if service == "referenceToken" and not set(given["scope"].split()) & set(SERVICE_TOKEN_SCOPES):
            self.add_error("scope", _("A token for the service needs a scope of the API: read, update or exec."))
        return given

    def _check_public(self, given: dict[str, Any], *, signs_in: bool) -> None:
        if not signs_in:
            self.add_error("impersonate", _("A public application signs people in: internal or all."))
        if not given["redirectUri"] and signs_in is False:
            self.add_error("redirectUri", _("A public application needs the address to return to."))
        if given["requestSecret"] == "true":
            self.add_error("requestSecret", _("A public application cannot keep a secret."))
        if given["serviceAccess"] != "none":
            self.add_error("serviceAccess", _("A public application cannot keep the secret that a service needs."))
