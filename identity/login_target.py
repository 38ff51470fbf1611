"""The redirect target of a sign-in: a URL of this instance, from the parameter `next`."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from identity.oauth.clients import client_load

#: Parameter of an authorization request whose user declined the factor of acr_values.
DECLINED = "_declined"


def login_page(target: str) -> HttpResponseRedirect:
    """A redirect to the login page, and from there to the target."""
    return HttpResponseRedirect(f"{settings.LOGIN_URL}?{urlencode({'next': target})}")


def second_factor_page(target: str) -> HttpResponseRedirect:
    """A redirect to the page of the second factor, and from there to the target."""
    return HttpResponseRedirect(f"{reverse('identity:second_factor')}?{urlencode({'next': target})}")


def safe_next(request: HttpRequest) -> str:
    """The redirect target after the login: a URL of this instance, or ""."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    # Checked without the query: that of an authorization request (state, id_token_hint) is often longer than the 2,048
    # characters that Django accepts for a URL.
    address = target.partition("?")[0]
    safe = url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
    return target if safe else ""


@dataclass(frozen=True, slots=True)
class Destination:
    """The application to which a login redirects: its registered redirect URI, and its name on the login page."""

    redirect_uri: str
    name: str


def destination_of(target: str) -> Destination | None:
    """The destination of an authorization request.

    An application that registered itself is named by the host of its redirect URI, because its own name is unverified.
    """
    parts = urlsplit(target)
    if parts.path != reverse("oauth2_provider:authorize"):
        return None
    query = parse_qs(parts.query)
    application = client_load(query.get("client_id", [""])[0])
    if application is None or not application.login_urls:
        return None
    given = query.get("redirect_uri", application.login_urls)[0]
    if not application.redirect_uri_allowed(given):
        return None
    is_checked = not application.has_registered_itself
    return Destination(given, application.name if is_checked else urlsplit(given).netloc or given)


def client_of(target: str) -> str | None:
    """The registered redirect URI of an authorization request."""
    destination = destination_of(target)
    return destination.redirect_uri if destination else None


def acr_values_of(target: str) -> str:
    """The parameter acr_values of an authorization request; "" for other targets."""
    parts = urlsplit(target)
    is_authorization = parts.path == reverse("oauth2_provider:authorize")
    return parse_qs(parts.query).get("acr_values", [""])[0] if is_authorization else ""
