"""Sample programs for the flows of a trusted application: curl, Python, JavaScript and C#.

The templates are programs (templates/identity/admin/snippets); tests run all but those in C#. No program contains a
secret: they read it from the environment.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from identity.applications import SECRET
from identity.instance import base_url, issuer
from identity.models import TrustedApplication
from identity.models.applications import SERVICE_SUFFIX


@dataclass(frozen=True, slots=True)
class Snippet:
    """A program; `key` identifies it on the page."""

    key: str
    language: str
    code: str


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow of an application, with a program in each language."""

    title: str | Promise
    snippets: list[Snippet]


def _literal(text: str) -> str:
    """A string literal of Python, JavaScript and C#."""
    return json.dumps(text, ensure_ascii=False)


#: Extension of the template → (name of the language, function that quotes a text for it).
_LANGUAGES: dict[str, tuple[str, Callable[[str], str]]] = {
    "sh": ("curl", shlex.quote),
    "py": ("Python", _literal),
    "mjs": ("JavaScript", _literal),
    "cs": ("C#", _literal),
}
_TITLES = {
    "service": _("Call the API by itself"),
    "code": _("Sign people in"),
    "device": _("Connect a device"),
}


def flows_of(request: HttpRequest, application: TrustedApplication) -> list[Flow]:
    """The flows of the application with their programs; empty if these would need private keys of the application."""
    if application.client_authentication != SECRET or application.dpop_required or application.pushed_requests_required:
        return []
    return [
        Flow(_TITLES[name], list(_snippets(request, application, name)))
        for name, is_allowed in (
            ("service", application.system_user_allowed),
            ("code", application.is_interactive and application.login_urls),
            ("device", application.is_interactive and application.device_flow_allowed),
        )
        if is_allowed
    ]


def service_client_id(application: TrustedApplication) -> str:
    """The client id by which the application runs as a service (spec 01, 1.4)."""
    return f"{application.application_uri}{SERVICE_SUFFIX if application.is_interactive else ''}"


def _snippets(request: HttpRequest, application: TrustedApplication, flow: str) -> Iterator[Snippet]:
    values, flags = _values(request, application, flow), _flags(application)
    in_browser = flow == "code" and application.is_public and values["redirect_uri"].startswith("http")
    for ending, (language, quote) in _LANGUAGES.items():
        name = "browser" if in_browser and ending in {"mjs", "cs"} else flow
        context = {**flags, **{key: quote(value) for key, value in values.items()}}
        code = render_to_string(f"identity/admin/snippets/{name}.{ending}.txt", context)
        yield Snippet(f"{flow}-{ending}", language, code.strip())


def _flags(application: TrustedApplication) -> dict[str, bool]:
    reads = not application.scopes or "read" in application.scopes
    return {
        "secret": application.needs_secret,
        "calls_api": reads and (application.impersonate_as_internal_user_allowed or application.system_user_allowed),
    }


def _values(request: HttpRequest, application: TrustedApplication, flow: str) -> dict[str, str]:
    base = base_url(request)
    client_id = service_client_id(application) if flow == "service" else application.application_uri
    redirect_uri = application.login_urls[0] if application.login_urls else ""
    authorize = f"{base}{reverse('oauth2_provider:authorize')}"
    asked = {
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "response_type": "code",
        "scope": " ".join(application.scopes or ["openid"]),
    }
    return {
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "redirect_path": urlsplit(redirect_uri).path or "/",
        "scope": asked["scope"],
        "issuer": issuer(request),
        "authorize_url": authorize,
        "start_url": f"{authorize}?{urlencode(asked)}",
        "token_url": f"{base}{reverse('oauth2_provider:token')}",
        "device_url": f"{base}{reverse('oauth2_provider:device-authorization')}",
        "api_url": f"{base}/api/domain/odata/",
    }
