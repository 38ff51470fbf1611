"""The kinds of trusted applications among which an administrator chooses, and the form of each.

To add a kind, add an ApplicationKind. The kind is not stored: it determines the settings of a new application, which
the full form shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from domain.admin.forms import EntityForm
from identity.scopes import DEFAULT_API_SCOPES, DESCRIPTIONS, OIDC_SCOPES

Text = str | Promise
_PEOPLE: Mapping[str, Any] = {"impersonate_as_internal_user_allowed": True}
_SERVICE: Mapping[str, Any] = {"system_user_allowed": True}
_PUBLIC: Mapping[str, Any] = {"client_type": "Public"}
_NAMES = ("name", "application_uri")
_RETURNS = ("impersonate_login_url", "impersonate_logout_url")
_OF_PEOPLE = ("openid", "profile", "email")
_OF_THE_API = ("read", "update", "exec")


@dataclass(frozen=True, slots=True)
class ApplicationKind:
    """A kind of trusted application.

    name     in URLs
    title    a noun
    meaning  a sentence that describes such an application
    icon     name in Material Symbols
    fields   Python names of the form's fields, in their order
    offered  the scopes that the form offers
    chosen   the scopes that are preselected
    settings Python name → value of the settings that the form does not show
    """

    name: str
    title: Text
    meaning: Text
    icon: str
    fields: tuple[str, ...]
    offered: tuple[str, ...]
    chosen: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


KINDS: Mapping[str, ApplicationKind] = {
    kind.name: kind
    for kind in (
        ApplicationKind(
            "web",
            _("Web application"),
            _("A server shows its pages and keeps a secret. People sign in with their browser."),
            "language",
            (*_NAMES, *_RETURNS, "impersonate_as_community_user_allowed", "scope"),
            (*OIDC_SCOPES, *_OF_THE_API),
            (*OIDC_SCOPES, *DEFAULT_API_SCOPES),
            _PEOPLE,
        ),
        ApplicationKind(
            "spa",
            _("Single page application"),
            _("A script in the browser of the person calls the API. It cannot keep a secret."),
            "web",
            (*_NAMES, *_RETURNS, "impersonate_as_community_user_allowed", "scope"),
            (*_OF_PEOPLE, *_OF_THE_API),
            (*_OF_PEOPLE, *DEFAULT_API_SCOPES),
            {**_PEOPLE, **_PUBLIC},
        ),
        ApplicationKind(
            "service",
            _("Service"),
            _("A program calls the API by itself, without people, with the rights of a system user."),
            "smart_toy",
            (*_NAMES, "system_user", "scope"),
            _OF_THE_API,
            DEFAULT_API_SCOPES,
            _SERVICE,
        ),
        ApplicationKind(
            "dual",
            _("Web application and service"),
            _("People sign in to it, and it also calls the API by itself, for example at night."),
            "hub",
            (*_NAMES, *_RETURNS, "system_user", "scope"),
            (*OIDC_SCOPES, *_OF_THE_API),
            (*OIDC_SCOPES, *DEFAULT_API_SCOPES),
            {**_PEOPLE, **_SERVICE},
        ),
        ApplicationKind(
            "device",
            _("Device"),
            _("A terminal, screen or command line without a browser of its own. A person connects it by a code."),
            "devices_other",
            (*_NAMES, "scope"),
            (*_OF_PEOPLE, *_OF_THE_API),
            (*_OF_PEOPLE, *DEFAULT_API_SCOPES),
            {**_PEOPLE, **_PUBLIC, "device_flow_allowed": True},
        ),
        ApplicationKind(
            "external",
            _("External identity only"),
            _("Customers and partners sign in, and the application learns who they are. It never calls the API."),
            "badge",
            (*_NAMES, *_RETURNS, "scope"),
            _OF_PEOPLE,
            _OF_PEOPLE,
            {"impersonate_as_community_user_allowed": True},
        ),
    )
}
#: In place of a kind's name in URLs: the form with all settings.
ALL_SETTINGS = "all"

_LABELS: Mapping[str, Text] = {
    "application_uri": _("Client id"),
    "impersonate_login_url": _("Where sign-ins return to"),
    "impersonate_logout_url": _("Where sign-outs return to"),
    "impersonate_as_community_user_allowed": _("External users, too"),
    "scope": _("What it may do"),
}
_HINTS: Mapping[str, Text] = {
    "name": _("What people read when they sign in."),
    "application_uri": _("A short unique name that the application sends, for example web-shop. It is not secret."),
    "impersonate_login_url": _(
        "The exact address in the application, for example https://shop.example/signin. Several have commas between "
        "them; http is for this computer only (http://localhost:5000/signin)."
    ),
    "impersonate_logout_url": _("The address in the application to which people come after they signed out."),
    "system_user": _(
        "Whose rights it works with. Empty: a new system user, which has no rights until an administrator gives it "
        "roles."
    ),
    "scope": _("What it may ask for at most; people can do no more through it than they can themselves."),
}


class ScopeChoices(UnfoldAdminCheckboxSelectMultipleWidget):  # type: ignore[misc]
    """Checkboxes for scopes, which are stored as one text, separated by spaces."""

    def format_value(self, value: Any) -> list[str]:
        """The scopes in the text."""
        chosen: list[str] = super().format_value((value or "").split())
        return chosen

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str:
        """The text of the checked scopes."""
        return " ".join(super().value_from_datadict(data, files, name) or ())


class KindForm(EntityForm):
    """The form of a new application of one kind; a page makes a subclass with the kind."""

    kind: ClassVar[ApplicationKind]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, form_field in self.fields.items():
            form_field.label = str(_LABELS.get(name, form_field.label))
            form_field.help_text = str(_HINTS.get(name, form_field.help_text))
        # People sign in to every kind that has it; without a browser it has the device flow instead.
        if (returns := self.fields.get("impersonate_login_url")) is not None:
            returns.required = True
            returns.widget.attrs["aria-required"] = "true"
        self.fields["scope"].widget = ScopeChoices(choices=list(_scope_choices(self.kind.offered)))


def kind_form(kind: ApplicationKind) -> type[KindForm]:
    """The form class of a kind."""
    return type("KindForm", (KindForm,), {"kind": kind})


def initial_values(kind: ApplicationKind) -> dict[str, Any]:
    """Python name → initial value in the form of a kind."""
    return {"scope": " ".join(kind.chosen)}


def _scope_choices(scopes: Iterable[str]) -> Iterable[tuple[str, str]]:
    return ((scope, f"{gettext(DESCRIPTIONS[scope])} ({scope})") for scope in scopes)
